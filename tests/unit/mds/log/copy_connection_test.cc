// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "shared/base/sync.h"
#include "tests/doubles/test_authority.h"

namespace pnfsrdma::mds {
namespace {

namespace fs = std::filesystem;

// What is written to a peer that takes it slowly. Little fits between the two.
class CopyPeer : public ::testing::Test {
 protected:
  CopyPeer() {
    authority_.issue("member", {});
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate_file(context_.get(), authority_.file("member.pem").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), authority_.file("member.key").c_str(), SSL_FILETYPE_PEM);
    clients_.reset(SSL_CTX_new(TLS_client_method()));
    connect_both();
  }
  ~CopyPeer() override { fs::remove_all(folder_); }

  void connect_both() {
    const FileDescriptor listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    taker_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int little = 32 * 1024;
    for (const FileDescriptor* end : {&listening, static_cast<const FileDescriptor*>(&taker_)}) {
      setsockopt(end->get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
      setsockopt(end->get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    ASSERT_EQ(bind(listening.get(), place, size), 0);
    ASSERT_EQ(listen(listening.get(), 1), 0);
    ASSERT_EQ(getsockname(listening.get(), place, &size), 0);
    ASSERT_EQ(connect(taker_.get(), place, size), 0);
    giver_ = FileDescriptor(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Gives so many bytes to who takes `piece` of them every `every`. How many were taken; -1: the giver gave up.
  ssize_t give(size_t bytes, size_t piece, Milliseconds every, CopyPace pace) {
    ssize_t given = 0;
    Thread thread([&] {
      CopyConnection connection(std::move(giver_), context_.get(), stopping_, pace);
      if (connection.handshake()) given = connection.write(std::string(bytes, 'x').data(), bytes);
    });
    const Owned<SSL, SSL_free> tls(SSL_new(clients_.get()));
    SSL_set_fd(tls.get(), taker_.get());
    EXPECT_EQ(SSL_connect(tls.get()), 1);
    std::string into(piece, '\0');
    while (SSL_read(tls.get(), into.data(), static_cast<int>(piece)) > 0) sleep_for(every);
    taker_.reset();
    thread.join();
    return given;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("copy-peer." + std::to_string(getpid()));
  TestAuthority authority_{folder_};
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL_CTX, SSL_CTX_free> clients_;
  const std::atomic<bool> stopping_ = false;
  FileDescriptor giver_;
  FileDescriptor taker_;
};

// Each piece comes in time, and the whole would take minutes: nobody else is given a copy meanwhile.
TEST_F(CopyPeer, WhoTakesALittleNowAndThenIsSentAway) {
  const SteadyTime begun = steady_now();
  EXPECT_EQ(give(16 << 20, 16 * 1024, Milliseconds(200), {Milliseconds(2000), 10 << 20}), -1);
  EXPECT_LT(steady_now() - begun, Milliseconds(20'000));
}

TEST_F(CopyPeer, WhoTakesNothingIsSentAway) {
  const SteadyTime begun = steady_now();
  EXPECT_EQ(give(4 << 20, 16 * 1024, Milliseconds(3000), {Milliseconds(300), 1}), -1);
  EXPECT_LT(steady_now() - begun, Milliseconds(30'000));
}

// Far longer than the patience, which is for a stall.
TEST_F(CopyPeer, WhoIsFastEnoughOnTheWholeIsGivenAll) {
  EXPECT_EQ(give(4 << 20, 16 * 1024, Milliseconds(10), {Milliseconds(1000), 100 * 1024}), 4 << 20);
}

}  // namespace
}  // namespace pnfsrdma::mds
