// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cluster/host_files.h"
#include "cli/output/json_member.h"
#include "shared/base/owned.h"
#include "shared/base/x509.h"

namespace pnfsrdma::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Members whose etcd does not run, and hosts with bricks alone, a folder each.
class Invites : public ::testing::Test {
 protected:
  Invites() {
    char name[] = "/tmp/pnfsrdma-membership.XXXXXX";
    folder = ::mkdtemp(name);
    make_cluster("ours");
    for (const char* host : {"rack", "spare"}) {
      fs::create_directories(folder + "/" + host);
      std::ofstream(paths_of(host).brick_config)
          << R"({"pool": {"path": "/nowhere/pool", "size": "1G", "create": true}})";
    }
    // Where the daemon is not built, something that takes every configuration.
    fs::create_directories(folder + "/bin");
    std::ofstream(folder + "/bin/pnfsrdma-brickd") << "#!/bin/sh\n";
    fs::permissions(folder + "/bin/pnfsrdma-brickd", fs::perms::owner_all);
    ::setenv("PATH", (folder + "/bin:" + path_before).c_str(), 1);
  }
  ~Invites() override {
    waiting.clear();
    ::setenv("PATH", path_before.c_str(), 1);
    std::fclose(nothing);
    fs::remove_all(folder);
  }

  MemberPaths paths_of(const std::string& host) const {
    const std::string in = folder + "/" + host;
    return {.directory = in + "/cluster",
            .config = in + "/mdsd.json",
            .brick_config = in + "/brickd.json",
            .etcd_config = in + "/etcd"};
  }
  MembershipOptions options_of(const std::string& host) const {
    return {.paths = paths_of(host), .data_directory = folder + "/" + host, .starts = false};
  }
  void make_cluster(const std::string& name) {
    Membership member(options_of(name), quiet);
    const auto made = member.init(
        {.name = name, .address = "127.0.0.1", .client_port = 1, .peer_port = 2, .witness = true});
    ASSERT_TRUE(made) << made.error().title;
  }
  static uint16_t free_port() {
    const FileDescriptor bound(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    EXPECT_EQ(::bind(bound.get(), reinterpret_cast<sockaddr*>(&any), size), 0);
    EXPECT_EQ(::getsockname(bound.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    return ntohs(any.sin_port);
  }
  // What that member shows, while it waits.
  InvitationToken invite(const std::string& member, const std::string& address) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    waiting.push_back(std::async(std::launch::async, [=, this] {
      std::FILE* const shown = ::fdopen(ends[1], "w");
      Output output(shown, nothing);
      output.json = true;
      const auto invited = Membership(options_of(member), output)
                               .invite({Guest::kBrick, address}, free_port(), std::chrono::seconds(60));
      std::fclose(shown);
      return invited.has_value();
    }));
    std::string line;
    for (char letter = 0; ::read(ends[0], &letter, 1) == 1 && letter != '\n';) line += letter;
    ::close(ends[0]);
    return InvitationToken::parse(text_at(nlohmann::json::parse(line, nullptr, false), "/token")).value();
  }
  Outcome<> join(const std::string& host, const InvitationToken& token, const std::string& address) {
    return Membership(options_of(host), quiet).join(token, {.name = host, .address = address});
  }
  std::optional<std::string> text_of(const std::string& path) const { return *read_host_file(path); }
  bool trusts_nobody(const std::string& host) const {
    return !text_of(paths_of(host).authority()) && !text_of(paths_of(host).brick_certificate());
  }
  bool is_certificate_for(const std::string& host, const char* address) const {
    const auto certificate = x509::read_certificate(text_of(paths_of(host).brick_certificate()).value_or(""));
    return certificate && X509_check_ip_asc(certificate->get(), address, 0) == 1;
  }

  const std::string path_before = ::getenv("PATH");
  std::string folder;
  std::FILE* const nothing = std::fopen("/dev/null", "w");
  Output quiet{nothing, nothing};
  std::vector<std::future<bool>> waiting;
};

// Else whoever administers a host with a brick could pass for a member, or for another brick.
TEST_F(Invites, ABrickGetsACertificateForTheAddressThatIsNamedOnly) {
  const InvitationToken token = invite("ours", "127.0.0.7");
  for (const char* address : {"127.0.0.1", "127.0.0.8", "::ffff:127.0.0.7"}) {
    const auto refused = join("rack", token, address);
    ASSERT_FALSE(refused) << address;
    EXPECT_THAT(refused.error().title, HasSubstr("for the host at 127.0.0.7"));
    EXPECT_TRUE(trusts_nobody("rack"));
  }
  const auto joined = join("rack", token, "127.0.0.7");
  ASSERT_TRUE(joined) << joined.error().title << joined.error().detail;
  EXPECT_TRUE(waiting[0].get());
  EXPECT_TRUE(is_certificate_for("rack", "127.0.0.7"));
  EXPECT_FALSE(is_certificate_for("rack", "127.0.0.1"));
}

TEST_F(Invites, AnAddressIsOneAndNoMembers) {
  const auto code_of = [this](const std::string& address) {
    const auto refused = Membership(options_of("ours"), quiet)
                             .invite({Guest::kBrick, address}, free_port(), std::chrono::seconds(0));
    return refused.error().code;
  };
  EXPECT_EQ(code_of(""), ExitCode::kUsage);
  EXPECT_EQ(code_of("rack.example"), ExitCode::kUsage);
  EXPECT_EQ(code_of("127.0.0.1"), ExitCode::kConflict);
  EXPECT_EQ(code_of("127.0.0.7"), ExitCode::kFailed) << "nobody came";
}

// A reload of the daemon in between must not trust another authority.
TEST_F(Invites, WhomABrickTrustsComesWithItsCertificate) {
  InvitationToken token = invite("ours", "127.0.0.7");
  const std::string secret = std::exchange(token.secret, std::string(64, '0'));
  EXPECT_EQ(join("rack", token, "127.0.0.7").error().code, ExitCode::kNotPermitted);
  EXPECT_TRUE(trusts_nobody("rack"));
  token.secret = secret;
  ASSERT_TRUE(join("rack", token, "127.0.0.7"));
  const auto authority = text_of(paths_of("rack").authority());
  const auto certificate = text_of(paths_of("rack").brick_certificate());
  EXPECT_EQ(authority, text_of(paths_of("ours").authority()));

  make_cluster("theirs");
  token = invite("theirs", "127.0.0.7");
  const auto refused = join("rack", token, "127.0.0.7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kConflict);
  EXPECT_EQ(text_of(paths_of("rack").authority()), authority);
  EXPECT_EQ(text_of(paths_of("rack").brick_certificate()), certificate);
  // The token is as good as before.
  EXPECT_TRUE(join("spare", token, "127.0.0.7"));
  // Without its certificate the host may go over.
  fs::remove(paths_of("rack").brick_certificate());
  token = invite("theirs", "127.0.0.7");
  EXPECT_TRUE(join("rack", token, "127.0.0.7"));
  EXPECT_EQ(text_of(paths_of("rack").authority()), text_of(paths_of("theirs").authority()));
}

}  // namespace
}  // namespace pnfsrdma::cli
