// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <signal.h>

#include "tests/unit/rpc_tls/protected_pair.h"

namespace pnfsrdma::rpc_tls {
namespace {

// A client that is not ours, and new keys whenever it likes (RFC 8446, 4.6.3).
class KeyUpdate : public ProtectedPair {
 protected:
  KeyUpdate() {
    signal(SIGPIPE, SIG_IGN);
    context_.reset(SSL_CTX_new(TLS_client_method()));
    const unsigned char protocols[] = "\x06sunrpc";
    SSL_CTX_set_alpn_protos(context_.get(), protocols, 7);
    SSL_CTX_use_certificate_chain_file(context_.get(), authority_.file("client.pem").c_str());
    SSL_CTX_use_PrivateKey_file(context_.get(), authority_.file("client.key").c_str(), SSL_FILETYPE_PEM);
  }
  void shake_hands() {
    socket_ = alone();
    put(socket_.get(), probe());
    std::byte answer[36];  // mark, XID, reply, accepted, verifier of 8 bytes, success
    ASSERT_TRUE(run_until([&] {
      return recv(socket_.get(), answer, sizeof answer, MSG_DONTWAIT | MSG_PEEK) == sizeof answer;
    }));
    ASSERT_EQ(recv(socket_.get(), answer, sizeof answer, MSG_DONTWAIT), ssize_t{sizeof answer});
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.get());
    ASSERT_TRUE(run_until([&] { return SSL_connect(ssl_.get()) == 1; }));
    ASSERT_TRUE(run_until([&] { return secured_ == 1; }));
  }
  bool renew_keys(int kind = SSL_KEY_UPDATE_REQUESTED) {
    return SSL_key_update(ssl_.get(), kind) == 1 && SSL_do_handshake(ssl_.get()) == 1;
  }
  bool write(ByteSpan bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  // Until the server has enough of it. How often.
  int rounds_until_the_end(const std::function<bool()>& round) {
    int rounds = 0;
    while (!server_end_ && rounds < 3000 && round()) {
      ++rounds;
      loop_.run_once(Milliseconds(0));
    }
    EXPECT_TRUE(run_until([&] { return rounds == 3000 || server_end_; }));
    EXPECT_EQ(server_end_.value_or(Error(0, "none")).number(), EPROTO);
    return rounds;
  }

  Owned<SSL_CTX, SSL_CTX_free> context_;
  FileDescriptor socket_;
  Owned<SSL, SSL_free> ssl_;
};

TEST_F(KeyUpdate, ManyAreTakenFromWhoSendsData) {
  shake_hands();
  Bytes call = call_record({5, kProgram, 1, 3, {}, {}});
  const Bytes arguments = pattern(2000);
  std::byte mark[rpc::kMarkSize];
  rpc::write_record_mark(mark, call.size() - rpc::kMarkSize + arguments.size());
  std::ranges::copy(mark, call.begin());
  call.insert(call.end(), arguments.begin(), arguments.end());
  for (int i = 1; i <= 500; ++i) {
    ASSERT_TRUE(renew_keys());
    ASSERT_TRUE(write(call));
    std::byte answer[28 + 2000];
    size_t got = 0;
    ASSERT_TRUE(run_until([&] {
      const int now = SSL_read(ssl_.get(), answer + got, static_cast<int>(sizeof answer - got));
      got += now > 0 ? static_cast<size_t>(now) : 0;
      return got == sizeof answer;
    })) << i;
    EXPECT_TRUE(std::ranges::equal(ByteSpan(answer).subspan(28), arguments));
  }
  EXPECT_EQ(calls_, 500);
  EXPECT_TRUE(server_->is_open());
}

// Each costs the server's loop more than a call does.
TEST_F(KeyUpdate, WithoutDataItIsSoonTheEnd) {
  for (const int kind : {SSL_KEY_UPDATE_REQUESTED, SSL_KEY_UPDATE_NOT_REQUESTED}) {
    secured_ = 0;
    shake_hands();
    EXPECT_LE(rounds_until_the_end([&] { return renew_keys(kind); }), 100);
  }
}

TEST_F(KeyUpdate, AFewBytesInBetweenAreNotEnough) {
  shake_hands();
  std::byte mark[rpc::kMarkSize];
  rpc::write_record_mark(mark, 500'000);
  ASSERT_TRUE(write(mark));
  EXPECT_LE(rounds_until_the_end([&] { return renew_keys() && write(Bytes(16)); }), 100);
}

// All of it is there before the server looks.
TEST_F(KeyUpdate, ManyAtOnceAreNotWorkedOffInOneTurn) {
  shake_hands();
  int sent = 0;
  while (sent < 1500 && renew_keys()) ++sent;  // as many as the socket takes
  ASSERT_GT(sent, 100);
  const SteadyTime begun = loop_.now();
  EXPECT_TRUE(run_until([&] { return server_end_.has_value() || loop_.now() - begun > Milliseconds(2000); }));
  ASSERT_TRUE(server_end_.has_value());
  EXPECT_EQ(server_end_->number(), EPROTO);
}

}  // namespace
}  // namespace pnfsrdma::rpc_tls
