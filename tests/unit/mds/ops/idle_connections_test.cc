// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/idle_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "server/mds/ops/nfs_program.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/record_stream.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

// A socket that gives itself out as RDMA.
class NamedRdma final : public rpc::MessageStream {
 public:
  explicit NamedRdma(std::shared_ptr<rpc::RecordStream> inner) : inner_(std::move(inner)) {}
  void start(Handlers handlers) override { inner_->start(std::move(handlers)); }
  void send(Bytes head, std::shared_ptr<const Bytes> body) override {
    inner_->send(std::move(head), std::move(body));
  }
  void pause() override { inner_->pause(); }
  void resume() override { inner_->resume(); }
  void close() override { inner_->close(); }
  size_t unsent_bytes() const override { return inner_->unsent_bytes(); }
  const std::string& peer() const override { return inner_->peer(); }
  std::string transport() const override { return "rdma-verbs"; }
  bool is_rdma() const override { return true; }

 private:
  std::shared_ptr<rpc::RecordStream> inner_;
};

// A server that looks once a lease, and one connection to it, over a socket pair.
class IdleConnectionsTest : public ::testing::Test {
 protected:
  explicit IdleConnectionsTest(bool rdma = false) {
    int sockets[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0);
    rpc::Service service = nfs_service(server_.compounds, idle_);
    const auto socket = std::make_shared<rpc::RecordStream>(host_.loop, FileDescriptor(sockets[0]),
                                                            service.options.record_bytes_max);
    std::shared_ptr<rpc::MessageStream> stream = socket;
    if (rdma) stream = std::make_shared<NamedRdma>(socket);
    server_connection_ = rpc::Connection::start(host_.loop, stream, service.options, service.on_call);
    service.on_accept(server_connection_);
    client_connection_ = rpc::Connection::start(
        host_.loop, FileDescriptor(sockets[1]), {},
        [this](const rpc::ConnectionPointer&, rpc::IncomingCall call, rpc::Responder responder) {
          callback_procedures_.push_back(call.header.procedure);
          responder.reply(Bytes());
        });
    idle_.start();
  }
  ~IdleConnectionsTest() override {
    client_connection_->close();
    server_connection_->close();
  }

  void pass(Milliseconds time) {
    host_.clock.advance(time);
    for (int turn = 0; turn < 5; ++turn) host_.turn();
  }
  bool alive_after(int leases) {
    for (int i = 0; i < leases; ++i) pass(server_.limits.lease);
    return server_connection_->is_open();
  }
  void call(uint32_t procedure, Bytes arguments = {}) {
    client_connection_->call(nfs4::kProgram, nfs4::kVersion, procedure, rpc::to_opaque(rpc::AuthSys{}),
                             std::move(arguments), Milliseconds(10'000), [](const Result<rpc::Reply>&) {});
    for (int turn = 0; turn < 5; ++turn) host_.turn();
  }
  // The connection is the client's from its SEQUENCE on, and that of its callbacks if it binds it.
  void join(bool for_callbacks) { join(client_, for_callbacks); }
  void join(TestClient& client, bool for_callbacks) {
    client.connect();
    nfs4::CompoundArguments arguments{{.tag = "", .minor_version = 2}, {client.next_sequence()}};
    if (for_callbacks) {
      nfs4::BindConnectionToSessionArguments bind;
      bind.session_id = client.session;
      bind.direction = nfs4::DirectionFromClient::kForeOrBoth;
      arguments.operations = {bind};
    }
    call(nfs4::kProcedureCompound, xdr::encode_to_bytes(arguments));
    const auto session = server_.sessions.find(client.session);
    ASSERT_TRUE(session && session->bound(*server_connection_));
    ASSERT_EQ(session->bound_back(*server_connection_), for_callbacks);
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
  IdleConnections idle_{host_.loop, server_.sessions, server_.limits.lease};
  rpc::ConnectionPointer server_connection_;
  rpc::ConnectionPointer client_connection_;
  std::vector<uint32_t> callback_procedures_;
};

TEST_F(IdleConnectionsTest, OneWithoutASessionEndsWhenItIsSilentForTwoLeases) {
  call(nfs4::kProcedureNull);
  EXPECT_TRUE(alive_after(2));
  EXPECT_FALSE(alive_after(1));
}

TEST_F(IdleConnectionsTest, OneThatNeverSaidAnythingEnds) {
  EXPECT_TRUE(alive_after(2));
  EXPECT_FALSE(alive_after(1));
}

TEST_F(IdleConnectionsTest, OneThatSpeaksOnceALeaseStays) {
  for (int lease = 0; lease < 10; ++lease) {
    call(nfs4::kProcedureNull);
    EXPECT_TRUE(alive_after(1));
  }
}

TEST_F(IdleConnectionsTest, OneOfALiveSessionStaysHoweverSilent) {
  join(false);
  EXPECT_TRUE(alive_after(20));
  EXPECT_TRUE(callback_procedures_.empty()) << "it is not there for calls";
}

TEST_F(IdleConnectionsTest, OneEndsAfterItsClientIsGone) {
  join(true);
  EXPECT_TRUE(alive_after(5));
  server_.leases.expire_due();
  ASSERT_EQ(server_.sessions.size(), 0U);
  EXPECT_FALSE(alive_after(3));
}

TEST_F(IdleConnectionsTest, ASilentBackchannelIsCalled) {
  join(true);
  EXPECT_TRUE(alive_after(2));
  EXPECT_TRUE(callback_procedures_.empty());
  EXPECT_TRUE(alive_after(20));
  ASSERT_FALSE(callback_procedures_.empty());
  EXPECT_LT(callback_procedures_.size(), 10U) << "an answer is a sign of life";
  for (const uint32_t procedure : callback_procedures_) EXPECT_EQ(procedure, nfs4::kProcedureNull);
}

TEST_F(IdleConnectionsTest, OneThatIsTheBackchannelOfAnySessionIsCalledAndStays) {
  // Whichever of its sessions is looked at first or last.
  std::deque<TestClient> others;
  for (int i = 0; i < 3; ++i) join(others.emplace_back(server_, "before" + std::to_string(i)), false);
  join(true);
  for (int i = 0; i < 3; ++i) join(others.emplace_back(server_, "behind" + std::to_string(i)), false);
  EXPECT_TRUE(alive_after(20));
  EXPECT_FALSE(callback_procedures_.empty());
}

// A rack has lost its power: each that ends costs system calls.
TEST_F(IdleConnectionsTest, ManyEndSoManyATurn) {
  constexpr size_t kMany = 200;
  std::vector<rpc::ConnectionPointer> many;
  std::vector<FileDescriptor> peers;
  for (size_t i = 0; i < kMany; ++i) {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    peers.emplace_back(sockets[1]);
    many.push_back(
        rpc::Connection::start(host_.loop, FileDescriptor(sockets[0]), {},
                               [](const rpc::ConnectionPointer&, rpc::IncomingCall, rpc::Responder) {}));
    idle_.watch(many.back());
  }
  const auto open = [&] {
    return std::ranges::count_if(many, [](const auto& one) { return one->is_open(); });
  };
  for (int lease = 0; lease < 2; ++lease) pass(server_.limits.lease);
  ASSERT_EQ(open(), kMany);
  host_.clock.advance(server_.limits.lease);
  host_.turn();
  EXPECT_LT(open(), kMany);
  EXPECT_GE(open(), kMany - 64) << "in one turn";
  for (int turn = 0; turn < 10; ++turn) {
    const auto before = open();
    host_.turn();
    EXPECT_LE(before - open(), 64);
  }
  EXPECT_EQ(open(), 0);
}

class IdleRdmaConnectionsTest : public IdleConnectionsTest {
 protected:
  IdleRdmaConnectionsTest() : IdleConnectionsTest(true) {}
};

TEST_F(IdleRdmaConnectionsTest, OneOfALiveSessionThatOnlyBringsRequestsEndsWhenItIsSilentForTwoLeases) {
  join(false);
  EXPECT_TRUE(alive_after(2));
  EXPECT_FALSE(alive_after(1));
  EXPECT_NE(server_.sessions.find(client_.session), nullptr) << "it may connect again";
}

TEST_F(IdleRdmaConnectionsTest, OneThatSpeaksOnceALeaseStays) {
  join(false);
  for (int lease = 0; lease < 10; ++lease) {
    call(nfs4::kProcedureNull);
    EXPECT_TRUE(alive_after(1));
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
