// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/metrics_server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "shared/rpc/dial.h"

namespace pnfsrdma::fuse_client {
namespace {

rpc::SocketAddress address(const std::string& text) {
  return rpc::SocketAddress::parse(text).value();
}

TEST(MetricsServer, AnswersMetricsAndNothingElse) {
  int asked = 0;
  const auto server = MetricsServer::start(address("127.0.0.1:0"), [&] {
    ++asked;
    return std::string("up 1\n");
  });
  ASSERT_TRUE(server) << server.error().to_string();
  httplib::Client client("127.0.0.1", (*server)->address().port());
  const auto answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "up 1\n");
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Get("/metrics/../etc/passwd")->status, 404);
  EXPECT_EQ(client.Post("/metrics")->status, 404);
  EXPECT_EQ(asked, 1);
}

TEST(MetricsServer, AnAddressInUseIsSaid) {
  const auto first = MetricsServer::start(address("127.0.0.1:0"), [] { return std::string(); });
  ASSERT_TRUE(first);
  const auto second = MetricsServer::start((*first)->address(), [] { return std::string(); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number(), EADDRINUSE);
}

TEST(MetricsServer, ASocketFileGoesWithItAndADeadOneIsTakenOver) {
  char folder[] = "/tmp/pnfsrdma-metrics-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/socket";
  {
    // Left behind: bound, and nobody listens.
    const FileDescriptor dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    const auto where = address(path);
    ASSERT_EQ(::bind(dead.get(), where.data(), where.size()), 0);
  }
  {
    const auto server = MetricsServer::start(address(path), [] { return std::string("x"); });
    ASSERT_TRUE(server) << server.error().to_string();
    // One that lives is not taken over.
    EXPECT_FALSE(MetricsServer::start(address(path), [] { return std::string(); }));
    EXPECT_TRUE(rpc::dial_and_wait(address(path), Milliseconds(1000)));
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  ::rmdir(folder);
}

TEST(MetricsServer, AFileThatIsNoSocketIsNotTakenAway) {
  char path[] = "/tmp/pnfsrdma-metrics-XXXXXX";
  const FileDescriptor file(::mkstemp(path));
  EXPECT_FALSE(MetricsServer::start(address(path), [] { return std::string(); }));
  EXPECT_EQ(::access(path, F_OK), 0);
  ::unlink(path);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
