// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "shared/rpc/record.h"
#include "shared/xdr/codec.h"
#include "tests/unit/rpc_tls/protected_pair.h"

namespace pnfsrdma::rpc_tls {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Handshake : public ProtectedPair {
 protected:
  // The next record that comes on a socket which nobody else reads; empty: its end.
  Bytes next_record(int fd) {
    rpc::RecordReader reader;
    bool ended = false;
    EXPECT_TRUE(run_until([&] {
      std::byte byte;
      while (!reader.has_record() && !ended) {
        const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (got < 0) return false;
        ended = got == 0;
        EXPECT_TRUE(ended || reader.feed(ByteSpan(&byte, 1)));
      }
      return true;
    }));
    return reader.next().value_or(Bytes());
  }
  std::optional<rpc::ReplyHeader> next_reply(int fd) {
    const Bytes record = next_record(fd);
    xdr::Decoder decoder(record);
    rpc::ReplyHeader header;
    if (record.empty() || !xdr::decode(decoder, header)) return std::nullopt;
    return header;
  }
  std::optional<rpc::AuthStatus> refusal(int fd) {
    const auto reply = next_reply(fd);
    const auto* denied = reply ? reply->body.get_if<rpc::ReplyStatus::kDenied>() : nullptr;
    const auto* why = denied ? denied->get_if<rpc::RejectStatus::kAuthError>() : nullptr;
    return why ? std::optional(*why) : std::nullopt;
  }
  // A client that is not ours, in a thread: the probe, a handshake with this context, and one byte read. What
  // OpenSSL says at the end; empty: all went well.
  std::string strange_client(const std::function<void(SSL_CTX*)>& prepare) {
    signal(SIGPIPE, SIG_IGN);
    FileDescriptor socket = alone();
    std::string said = "nothing";
    std::atomic<bool> over = false;
    std::thread thread([&] {
      fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
      const Bytes asked = probe();
      const timeval patience{.tv_sec = 10, .tv_usec = 0};
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      std::byte answer[36];  // mark, XID, reply, accepted, verifier of 8 bytes, success
      const bool answered = write(socket.get(), asked.data(), asked.size()) > 0 &&
                            recv(socket.get(), answer, sizeof answer, MSG_WAITALL) == sizeof answer &&
                            as_text(ByteSpan(answer).subspan(24, 8)) == "STARTTLS";
      const Owned<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_client_method()));
      prepare(context.get());
      const Owned<SSL, SSL_free> ssl(SSL_new(context.get()));
      SSL_set_fd(ssl.get(), socket.get());
      char byte = 0;
      const bool good = answered && SSL_connect(ssl.get()) == 1 && SSL_read(ssl.get(), &byte, 1) == 1;
      const char* reason = ERR_reason_error_string(ERR_peek_error());
      said = !answered ? "no STARTTLS" : good ? "" : reason ? reason : "closed";
      over = true;
    });
    EXPECT_TRUE(run_until([&] { return over.load(); }));
    thread.join();
    socket.reset();
    EXPECT_TRUE(run_until([&] { return server_end_.has_value(); }));
    return said;
  }
  static void offer_sunrpc(SSL_CTX* context) {
    const unsigned char protocols[] = "\x06sunrpc";
    SSL_CTX_set_alpn_protos(context, protocols, 7);
  }
  void show_certificate(SSL_CTX* context, const std::string& name = "client") const {
    SSL_CTX_use_certificate_chain_file(context, authority_.file(name + ".pem").c_str());
    SSL_CTX_use_PrivateKey_file(context, authority_.file(name + ".key").c_str(), SSL_FILETYPE_PEM);
  }
};

TEST_F(Handshake, BothKnowWhoTheOtherIsAndTheirCallsAreProtected) {
  ASSERT_TRUE(secure()) << started_->error().to_string();
  EXPECT_EQ(secured_, 1);
  EXPECT_THAT(client_seen_.names, ElementsAre("192.0.2.2", "client"));
  EXPECT_THAT(client_->tls_peer()->names, ElementsAre("192.0.2.1", "brick.example", "server"));
  const std::string secret = "what nobody else may read";
  const auto answer = call(Bytes(as_bytes(secret).begin(), as_bytes(secret).end()));
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(as_text(*answer), secret);
  EXPECT_EQ(calls_, 2) << "the null call that proves it, and this one";
  for (const std::string& seen : wire_->seen) EXPECT_THAT(seen, Not(HasSubstr("nobody else")));
}

// RFC 9289, 4.1 and 5: what is on the wire before it is protected.
TEST_F(Handshake, TheProbeIsANullCallAndItsAnswerSaysStartTls) {
  ASSERT_TRUE(secure());
  const std::string& asked = wire_->seen[0];
  EXPECT_EQ(to_hex(as_bytes(asked.substr(0, 4))), "80000028");
  EXPECT_EQ(to_hex(as_bytes(asked.substr(8, 36))),
            "00000000"
            "00000002"
            "0000004d"
            "00000001"
            "00000000"
            "00000007"
            "00000000"
            "00000000"
            "00000000");
  const std::string& answered = wire_->seen[1];
  EXPECT_EQ(answered.substr(24, 8), "STARTTLS");
  EXPECT_EQ(answered[36], 22) << "a TLS handshake record is next";
  EXPECT_EQ(asked[44], 22);
  EXPECT_THAT(asked.substr(44, 600), HasSubstr("sunrpc"));
}

TEST_F(Handshake, TheNameMayBeOneOfDns) {
  EXPECT_TRUE(secure("brick.example"));
}

TEST_F(Handshake, AServerOfAnotherNameIsNotTaken) {
  for (const char* name : {"192.0.2.9", "other.example", "server", "2001:db8::1"}) {
    started_.reset();
    const auto outcome = secure(name);
    ASSERT_FALSE(outcome) << name << ": the common name is no name of a host";
    EXPECT_EQ(outcome.error().number(), EACCES) << outcome.error().to_string();
    EXPECT_THAT(outcome.error().what(), HasSubstr("mismatch"));
    EXPECT_FALSE(client_->is_open());
    EXPECT_TRUE(run_until([&] { return !server_->is_open(); }));
    EXPECT_EQ(calls_, 0);
  }
}

TEST_F(Handshake, AServerOfAnotherAuthorityIsNotTaken) {
  TestAuthority other(folder_ / "other");
  other.issue("server", {.names = "IP:192.0.2.1"});
  server_tls_ = *Endpoint::open(Role::kServer, files_of("server", other, authority_));
  const auto outcome = secure();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), EACCES) << outcome.error().to_string();
  EXPECT_TRUE(run_until([&] { return server_end_.has_value(); }));
  EXPECT_EQ(server_end_->number(), EACCES) << server_end_->to_string();
  EXPECT_EQ(secured_, 0);
}

TEST_F(Handshake, AClientOfAnotherAuthorityIsNotTaken) {
  TestAuthority other(folder_ / "other");
  other.issue("client", {});
  client_tls_ = *Endpoint::open(Role::kClient, files_of("client", other, authority_));
  const auto outcome = secure();
  ASSERT_FALSE(outcome) << "in TLS 1.3 its handshake is over before the server has looked";
  EXPECT_EQ(outcome.error().number(), EACCES) << outcome.error().to_string();
  EXPECT_THAT(outcome.error().what(), HasSubstr("does not take our certificate"));
  EXPECT_EQ(secured_, 0);
  EXPECT_EQ(calls_, 0);
}

TEST_F(Handshake, WhatHasExpiredIsNotTaken) {
  authority_.issue("server", {.names = "IP:192.0.2.1", .expired = true});
  const auto fresh = server_tls_;
  server_tls_ = open(Role::kServer, "server");
  EXPECT_LT(server_tls_->credentials()->days_left(), 0);
  const auto outcome = secure();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().what(), HasSubstr("expired"));

  authority_.issue("client", {.expired = true});
  server_tls_ = fresh;
  client_tls_ = open(Role::kClient, "client");
  started_.reset();
  const auto other = secure();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().number(), EACCES) << other.error().to_string();
  EXPECT_EQ(secured_, 0);
}

// A host with a brick alone: its certificate does not let it control the bricks of others.
TEST_F(Handshake, ACertificateForServersOnlyIsNoClients) {
  const auto refused = Endpoint::open(Role::kClient, files_of("server"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what(), HasSubstr("clientAuth"));
  EXPECT_THAT(strange_client([this](SSL_CTX* context) {
                offer_sunrpc(context);
                show_certificate(context, "server");
              }),
              HasSubstr("unsupported certificate"));
  EXPECT_EQ(secured_, 0);
}

TEST_F(Handshake, WhoShowsNoCertificateIsNotTaken) {
  EXPECT_THAT(strange_client(offer_sunrpc), HasSubstr("certificate required"));
  EXPECT_EQ(secured_, 0);
  EXPECT_EQ(server_end_->number(), EACCES);
}

TEST_F(Handshake, WhoDoesNotOfferSunrpcIsNotTaken) {
  strange_client([this](SSL_CTX* context) { show_certificate(context); });
  EXPECT_EQ(secured_, 0);
  EXPECT_THAT(server_end_->what(), HasSubstr("sunrpc"));
  EXPECT_THAT(strange_client([this](SSL_CTX* context) {
                show_certificate(context);
                SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>("\x02h2"), 3);
              }),
              HasSubstr("no application protocol"));
  EXPECT_EQ(secured_, 0);
}

TEST_F(Handshake, OlderVersionsOfTlsAreRefused) {
  EXPECT_THAT(strange_client([this](SSL_CTX* context) {
                offer_sunrpc(context);
                show_certificate(context);
                SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
              }),
              HasSubstr("protocol version"));
  EXPECT_EQ(secured_, 0);
}

TEST_F(Handshake, OnlyPeersThatAreNamedAreLetIn) {
  server_tls_ = open(Role::kServer, "server", {"another", "192.0.2.2"});
  EXPECT_TRUE(secure());
  server_tls_ = open(Role::kServer, "server", {"another", "192.0.2.3"});
  started_.reset();
  secured_ = 0;
  const auto outcome = secure();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), EACCES) << outcome.error().to_string();
  EXPECT_EQ(secured_, 0);
  EXPECT_THAT(server_end_->what(), HasSubstr("let in"));
}

// Whoever is to be shut out must not stay by a handshake that began before.
TEST_F(Handshake, WhoIsTakenOutOfTheListInTheMiddleOfItIsNotLetIn) {
  join();
  bool reloaded = false;
  wire_->look = [&](int from, Bytes&) {
    if (from != 0 || reloaded || wire_->seen[1].size() < 200) return true;
    reloaded = true;  // the client has the server's part, and sends its own
    EXPECT_TRUE(server_tls_->reload(files_of("server"), {"another"}));
    server_->reassess_tls();
    return true;
  };
  begin();
  EXPECT_TRUE(run_until([&] { return server_end_ && started_; }));
  ASSERT_TRUE(reloaded);
  EXPECT_FALSE(*started_);
  EXPECT_EQ(server_end_->number(), EACCES) << server_end_->to_string();
  EXPECT_EQ(secured_, 0);
  EXPECT_EQ(calls_, 0);
}

TEST_F(Handshake, AnAuthorityThatIsRemovedInTheMiddleOfItCountsNoMore) {
  TestAuthority other(folder_ / "other");
  for (const Role reloading : {Role::kServer, Role::kClient}) {
    started_.reset();
    server_tls_ = open(Role::kServer, "server");
    client_tls_ = open(Role::kClient, "client");
    join();
    bool reloaded = false;
    wire_->look = [&](int from, Bytes&) {
      const bool servers = from == 0 && wire_->seen[1].size() >= 200;
      const bool clients = from == 1 && wire_->seen[0].size() >= 200;
      if (reloaded || !(reloading == Role::kServer ? servers : clients)) return true;
      reloaded = true;
      const bool server = reloading == Role::kServer;
      EXPECT_TRUE((server ? server_tls_ : client_tls_)
                      ->reload(files_of(server ? "server" : "client", authority_, other)));
      (server ? server_ : client_)->reassess_tls();
      return true;
    };
    begin();
    EXPECT_TRUE(run_until([&] { return started_ && !server_->is_open(); }));
    ASSERT_TRUE(reloaded);
    EXPECT_FALSE(*started_);
    const auto& end = reloading == Role::kServer ? server_end_ : client_end_;
    EXPECT_EQ(end.value_or(Error(0, "none")).number(), EACCES);
    EXPECT_EQ(calls_, 0);
  }
}

TEST_F(Handshake, CallsWithoutItAreRefused) {
  const FileDescriptor socket = alone();
  put(socket.get(), call_record({5, kProgram, 1, 3, {}, {}}));
  EXPECT_EQ(refusal(socket.get()), rpc::AuthStatus::kTooWeak);
  put(socket.get(), call_record({6, kProgram, 1, 0, {}, {}}));
  EXPECT_EQ(refusal(socket.get()), rpc::AuthStatus::kTooWeak) << "null calls too: they keep leases";
  EXPECT_EQ(calls_, 0);
}

TEST_F(Handshake, WhereItIsOnlyOfferedCallsGoWithoutIt) {
  server_options_.tls_required = false;
  join();
  EXPECT_TRUE(call(pattern(100)));
  client_->close();
  EXPECT_TRUE(secure());
  EXPECT_TRUE(call(pattern(100)));
}

TEST_F(Handshake, AServerThatDoesNotOfferItHearsOfNothingElse) {
  server_tls_ = nullptr;
  server_options_.tls_required = false;
  const auto outcome = secure();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().number(), ENOTSUP) << outcome.error().to_string();
  EXPECT_FALSE(client_->is_open());
  EXPECT_EQ(wire_->seen[0].size(), 44u) << "the probe alone";
}

TEST_F(Handshake, OtherCallsWaitUntilItIsOver) {
  join();
  begin();
  const auto early = call(pattern(10));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().number(), EAGAIN);
  EXPECT_TRUE(run_until([this] { return started_.has_value(); }));
  EXPECT_TRUE(*started_);
  EXPECT_EQ(calls_, 1) << "the null call that proves it";
}

TEST_F(Handshake, AProbeIsANullCallWithNothingInItAndComesOnce) {
  const FileDescriptor socket = alone();
  put(socket.get(), probe(1, 3));
  EXPECT_EQ(refusal(socket.get()), rpc::AuthStatus::kBadCredential);
  put(socket.get(), call_record({2, kProgram, 1, 0, {rpc::AuthFlavor::kTls, Bytes(4)}, {}}));
  EXPECT_EQ(refusal(socket.get()), rpc::AuthStatus::kBadCredential);
  put(socket.get(),
      call_record({3, kProgram, 1, 0, {rpc::AuthFlavor::kTls, {}}, {rpc::AuthFlavor::kSys, Bytes(8)}}));
  EXPECT_EQ(refusal(socket.get()), rpc::AuthStatus::kBadCredential);
  EXPECT_TRUE(server_->is_open());

  // Within TLS (RFC 9289, 4.1).
  ASSERT_TRUE(secure());
  std::optional<int> number;
  client_->call(kProgram, 1, 0, {rpc::AuthFlavor::kTls, {}}, {}, kLong,
                [&](Result<rpc::Reply> reply) { number = reply ? 0 : reply.error().number(); });
  EXPECT_TRUE(run_until([&] { return number.has_value(); }));
  EXPECT_EQ(number, EACCES);
  EXPECT_TRUE(call(pattern(10)));
}

// Whoever puts calls behind the probe would have them taken for protected ones.
TEST_F(Handshake, BytesBehindTheProbeEndTheConnection) {
  const FileDescriptor socket = alone();
  Bytes both = probe();
  const Bytes injected = call_record({9, kProgram, 1, 3, {}, {}});
  both.insert(both.end(), injected.begin(), injected.end());
  put(socket.get(), both);
  EXPECT_TRUE(next_record(socket.get()).empty()) << "no answer, not even STARTTLS (RFC 9289, 5.1.1)";
  EXPECT_FALSE(server_->is_open());
  EXPECT_EQ(calls_, 0);
}

TEST_F(Handshake, BytesBehindItsAnswerEndTheConnectionToo) {
  join();
  wire_->look = [](int from, Bytes& bytes) {
    if (from == 1) bytes.resize(bytes.size() + 3);
    return true;
  };
  begin();
  ASSERT_TRUE(run_until([&] { return started_.has_value(); }));
  ASSERT_FALSE(*started_);
  EXPECT_EQ(started_->error().number(), EPROTO);
}

TEST_F(Handshake, GarbageEndsIt) {
  const FileDescriptor socket = alone();
  put(socket.get(), probe());
  EXPECT_FALSE(next_record(socket.get()).empty());
  put(socket.get(), pattern(3000));
  EXPECT_TRUE(run_until([&] { return server_end_.has_value(); }));
  EXPECT_EQ(server_end_->number(), EPROTO) << server_end_->to_string();
}

TEST_F(Handshake, WhoStopsInItIsEnded) {
  server_options_.tls_patience = Milliseconds(150);
  const FileDescriptor silent = alone();
  put(silent.get(), probe());
  EXPECT_FALSE(next_record(silent.get()).empty());
  EXPECT_TRUE(run_until([&] { return server_end_.has_value(); }));
  EXPECT_EQ(server_end_->number(), ETIMEDOUT);

  const FileDescriptor mute = alone();
  EXPECT_TRUE(run_until([&] { return server_end_.has_value(); })) << "who says nothing at all is, too";
  EXPECT_EQ(server_end_->number(), ETIMEDOUT);

  // One that has come in lives on.
  ASSERT_TRUE(secure());
  const SteadyTime until = loop_.now() + Milliseconds(300);
  run_until([&] { return loop_.now() > until; });
  EXPECT_TRUE(call(pattern(10)));
}

TEST_F(Handshake, AClientDoesNotWaitForEver) {
  join();
  wire_->look = [](int from, Bytes&) { return from == 0; };
  begin("192.0.2.1", Milliseconds(100));
  ASSERT_TRUE(run_until([&] { return started_.has_value(); }));
  ASSERT_FALSE(*started_);
  EXPECT_EQ(started_->error().number(), ETIMEDOUT);
}

TEST_F(Handshake, ByteByByteItWorksToo) {
  join();
  wire_->piece = 1;
  begin();
  ASSERT_TRUE(run_until([&] { return started_.has_value(); }));
  EXPECT_TRUE(*started_) << started_->error().to_string();
}

TEST_F(Handshake, MessagesWithoutEndAreCutOff) {
  const FileDescriptor socket = alone();
  put(socket.get(), probe());
  EXPECT_FALSE(next_record(socket.get()).empty());
  // A ClientHello that announces 16 MiB, in records that are sound.
  Bytes part(5 + 16384);
  part[0] = std::byte{22};
  part[1] = std::byte{3};
  part[2] = std::byte{1};
  store_big_endian<uint16_t>(part.data() + 3, 16384);
  part[5] = std::byte{1};
  part[6] = std::byte{0xff};
  size_t sent = 0;
  EXPECT_TRUE(run_until([&] {
    const ssize_t put = send(socket.get(), part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) sent += static_cast<size_t>(put);
    return server_end_.has_value();
  }));
  EXPECT_LT(sent, size_t{1} << 20);
}

TEST_F(Handshake, ItIsNotResumedAndNothingComesEarly) {
  ASSERT_TRUE(secure());
  // Tickets would be the server's first data: nothing of it comes before a call's answer.
  const size_t before = wire_->seen[1].size();
  for (int i = 0; i < 50; ++i) loop_.run_once(Milliseconds(1));
  EXPECT_EQ(wire_->seen[1].size(), before);
}

}  // namespace
}  // namespace pnfsrdma::rpc_tls
