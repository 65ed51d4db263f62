// SPDX-License-Identifier: Apache-2.0
#include "shared/http/peer_stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>

#include "shared/base/sync.h"
#include "tests/doubles/test_authority.h"

namespace pnfsrdma::http {
namespace {

namespace fs = std::filesystem;

// Takes what comes, for a minute.
class Taker final : public PeerStream {
 public:
  using PeerStream::PeerStream;
  bool is_readable() const override { return wait(POLLIN, deadline_); }
  bool is_writable() const override { return wait(POLLOUT, deadline_); }
  ssize_t read(char* buffer, size_t size) override { return receive(buffer, size, deadline_); }
  ssize_t write(const char* bytes, size_t size) override {
    return send_all(bytes, size, deadline_) ? static_cast<ssize_t>(size) : -1;
  }

 private:
  const SteadyTime deadline_ = steady_now() + Milliseconds(60'000);
};

// A client with TLS that is not ours, and new keys whenever it likes (RFC 8446, 4.6.3).
class KeyRenewal : public ::testing::Test {
 protected:
  KeyRenewal() {
    signal(SIGPIPE, SIG_IGN);
    authority_.issue("server", {});
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate_file(context_.get(), authority_.file("server.pem").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), authority_.file("server.key").c_str(), SSL_FILETYPE_PEM);
    clients_.reset(SSL_CTX_new(TLS_client_method()));
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_ = FileDescriptor(ends[0]);
    thread_ = Thread([this, end = ends[1]] { serve(FileDescriptor(end)); });
    tls_.reset(SSL_new(clients_.get()));
    SSL_set_fd(tls_.get(), client_.get());
    EXPECT_EQ(SSL_connect(tls_.get()), 1);
  }
  ~KeyRenewal() override {
    stopping_ = true;
    thread_.join();
    fs::remove_all(folder_);
  }

  bool renew_keys(int kind = SSL_KEY_UPDATE_NOT_REQUESTED) {
    return SSL_key_update(tls_.get(), kind) == 1 && SSL_do_handshake(tls_.get()) == 1;
  }
  bool write(const std::string& bytes) {
    return SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  bool ends_soon() const {
    for (const SteadyTime begun = steady_now(); !ended_ && steady_now() - begun < Milliseconds(5000);)
      sleep_for(Milliseconds(5));
    return ended_;
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<size_t> taken_ = 0;
  Owned<SSL, SSL_free> tls_;

 private:
  void serve(FileDescriptor socket) {
    Taker taker(std::move(socket), context_.get(), stopping_);
    EXPECT_TRUE(taker.handshake(steady_now() + Milliseconds(10'000)));
    char buffer[4096];
    for (ssize_t got = 0; (got = taker.read(buffer, sizeof buffer)) > 0;) taken_ += static_cast<size_t>(got);
    ended_ = true;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("peer-stream." + std::to_string(getpid()));
  TestAuthority authority_{folder_};
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL_CTX, SSL_CTX_free> clients_;
  FileDescriptor client_;
  Thread thread_;
};

TEST_F(KeyRenewal, WithoutDataItIsSoonTheEnd) {
  int rounds = 0;
  while (rounds < 100'000 && !ended_ && renew_keys()) ++rounds;
  EXPECT_TRUE(ends_soon());
  EXPECT_LT(rounds, 100'000);
}

TEST_F(KeyRenewal, AFewBytesInBetweenAreNotEnough) {
  int rounds = 0;
  while (rounds < 10'000 && !ended_ && renew_keys() && write("0123456789")) ++rounds;
  EXPECT_TRUE(ends_soon());
  EXPECT_LT(rounds, 10'000);
}

TEST_F(KeyRenewal, ManyAreTakenFromWhoSendsData) {
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(renew_keys());
    ASSERT_TRUE(write(std::string(2000, 'x')));
  }
  for (const SteadyTime begun = steady_now();
       taken_ < 1'000'000 && steady_now() - begun < Milliseconds(10'000);)
    sleep_for(Milliseconds(5));
  EXPECT_EQ(taken_, 1'000'000U);
  EXPECT_FALSE(ended_);
}

}  // namespace
}  // namespace pnfsrdma::http
