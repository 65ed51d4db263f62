// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/nfs_program.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "server/mds/ops/layout_callbacks.h"
#include "shared/nfs4/compound.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

// Server and client in one loop, joined by a socket pair.
class NfsProgramTest : public ::testing::Test {
 protected:
  NfsProgramTest() { connect(); }
  ~NfsProgramTest() override {
    client_connection_->close();
    server_connection_->close();
  }

  void connect() {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    server_connection_ = rpc::Connection::start(host_.loop, FileDescriptor(sockets[0]), {},
                                                nfs_service(server_.compounds, idle_).on_call);
    client_connection_ = rpc::Connection::start(
        host_.loop, FileDescriptor(sockets[1]), {},
        [this](const rpc::ConnectionPointer&, rpc::IncomingCall call, rpc::Responder responder) {
          serve_callback(call, std::move(responder));
        });
  }

  Result<rpc::Reply> call(uint32_t program, uint32_t version, uint32_t procedure, Bytes arguments = {},
                          const rpc::OpaqueAuth& credential = rpc::to_opaque(rpc::AuthSys{})) {
    std::optional<Result<rpc::Reply>> answer;
    client_connection_->call(program, version, procedure, credential, std::move(arguments),
                             Milliseconds(10'000),
                             [&](Result<rpc::Reply> reply) { answer = std::move(reply); });
    for (int turn = 0; !answer && turn < 50; ++turn) host_.turn();
    CHECK(answer.has_value());
    return std::move(*answer);
  }
  nfs4::CompoundResults compound(const Operations& operations) {
    nfs4::CompoundArguments arguments;
    arguments.header = {.tag = "", .minor_version = 2};
    arguments.operations = operations;
    auto reply =
        call(nfs4::kProgram, nfs4::kVersion, nfs4::kProcedureCompound, xdr::encode_to_bytes(arguments));
    CHECK(reply.has_value());
    auto results = xdr::decode_from<nfs4::CompoundResults>(reply->results);
    CHECK(results.has_value());
    return std::move(*results);
  }
  // A session whose backchannel is this connection.
  void make_session() {
    nfs4::ExchangeIdArguments exchange;
    exchange.owner = client_.owner;
    const auto exchanged = compound({exchange});
    client_.id = response_at<nfs4::ExchangeIdResponse>(exchanged, 0).result.client_id;
    auto arguments = client_.session_arguments(1);
    arguments.flags = nfs4::kSessionBackChannel;
    arguments.callback_program = 0x40000000;
    const auto created = compound({arguments});
    const auto& response = response_at<nfs4::CreateSessionResponse>(created, 0);
    ASSERT_TRUE(response.ok());
    EXPECT_EQ(response.result.flags, nfs4::kSessionBackChannel);
    client_.session = response.result.session_id;
  }
  // The client's side of CB_COMPOUND: answers as the test says.
  void serve_callback(const rpc::IncomingCall& call, rpc::Responder responder) {
    callback_program_ = call.header.program;
    auto reader = nfs4::CallbackCompoundReader::open(call.arguments);
    CHECK(reader.has_value());
    Bytes reply;
    nfs4::CallbackResultWriter writer(reply, {});
    const auto first = reader->next();
    const auto& sequence = std::get<nfs4::CallbackSequenceArguments>(*first.arguments);
    callback_seqids_.push_back(sequence.sequence_id);
    callback_slots_.push_back(sequence.slot_id);
    writer.add(
        nfs4::CallbackSequenceResponse(nfs4::CallbackSequenceResult{.session_id = sequence.session_id,
                                                                    .sequence_id = sequence.sequence_id,
                                                                    .slot_id = sequence.slot_id}));
    const auto second = reader->next();
    recalls_.push_back(std::get<nfs4::CallbackLayoutRecallArguments>(*second.arguments));
    writer.add(nfs4::CallbackLayoutRecallResponse(recall_status_));
    if (answer_callbacks_) return responder.reply(std::move(reply));
    responder.drop();
  }
  LayoutRecall recall_of_root() const {
    LayoutRecall what;
    what.client = client_.id;
    what.inode = kRootInode;
    what.export_id = 1;
    what.stateid.seqid = 2;
    return what;
  }
  std::optional<RecallAnswer> recall() {
    auto answer = std::make_shared<std::optional<RecallAnswer>>();
    callbacks_.recall_layout(recall_of_root(), [answer](RecallAnswer given) { *answer = given; });
    for (int turn = 0; !*answer && turn < 20; ++turn) host_.turn();
    return *answer;
  }
  uint32_t flags() {
    const auto results = compound({client_.next_sequence()});
    return response_at<nfs4::SequenceResponse>(results, 0).result.status_flags;
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
  IdleConnections idle_{host_.loop, server_.sessions, server_.limits.lease};
  LayoutCallbacks callbacks_{server_.callbacks,        server_.clients, server_.opens,
                             server_.delegation_table, *server_.names,  *server_.handles};
  rpc::ConnectionPointer server_connection_;
  rpc::ConnectionPointer client_connection_;
  uint32_t callback_program_ = 0;
  std::vector<uint32_t> callback_seqids_, callback_slots_;
  std::vector<nfs4::CallbackLayoutRecallArguments> recalls_;
  Status recall_status_ = Status::kOk;
  bool answer_callbacks_ = true;
};

TEST_F(NfsProgramTest, NullIsAnswered) {
  const auto reply = call(nfs4::kProgram, nfs4::kVersion, nfs4::kProcedureNull);
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->results.empty());
}

TEST_F(NfsProgramTest, OtherProgramsVersionsAndProceduresAreRefused) {
  EXPECT_FALSE(call(nfs4::kProgram, 3, 0).has_value());
  EXPECT_FALSE(call(nfs4::kProgram, 2, 0).has_value());
  EXPECT_FALSE(call(100005, 4, 0).has_value());
  EXPECT_FALSE(call(nfs4::kProgram, nfs4::kVersion, 2).has_value());
}

TEST_F(NfsProgramTest, GarbageAndUnknownFlavoursAreRefused) {
  EXPECT_FALSE(call(nfs4::kProgram, nfs4::kVersion, nfs4::kProcedureCompound, Bytes(3)).has_value());
  rpc::OpaqueAuth gss;
  gss.flavor = rpc::AuthFlavor::kGss;
  EXPECT_FALSE(call(nfs4::kProgram, nfs4::kVersion, nfs4::kProcedureCompound, {}, gss).has_value());
}

TEST_F(NfsProgramTest, LayoutIsRecalledOverTheBackchannel) {
  make_session();
  EXPECT_EQ(recall(), RecallAnswer::kAccepted);
  recall_status_ = Status::kNomatchingLayout;
  EXPECT_EQ(recall(), RecallAnswer::kNoMatching);
  recall_status_ = Status::kDelay;
  EXPECT_EQ(recall(), RecallAnswer::kDelay);
  EXPECT_EQ(callback_program_, 0x40000000U);
  EXPECT_EQ(callback_seqids_, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(flags(), 0U);
}

TEST_F(NfsProgramTest, BrokenPathIsShownUntilTheClientBindsAnother) {
  make_session();
  client_connection_->close();
  server_connection_->close();
  connect();
  EXPECT_EQ(flags(), nfs4::kSequenceCallbackPathDown | nfs4::kSequenceCallbackPathDownSession);
  nfs4::BindConnectionToSessionArguments bind;
  bind.session_id = client_.session;
  bind.direction = nfs4::DirectionFromClient::kForeOrBoth;
  bind.use_rdma_mode = true;
  const auto bound = compound({bind});
  // A TCP connection does not become another one.
  EXPECT_FALSE(response_at<nfs4::BindConnectionToSessionResponse>(bound, 0).result.use_rdma_mode);
  EXPECT_EQ(response_at<nfs4::BindConnectionToSessionResponse>(bound, 0).result.direction,
            nfs4::DirectionFromServer::kBoth);
  EXPECT_EQ(flags(), 0U);
  EXPECT_EQ(recall(), RecallAnswer::kAccepted);
}

// The client would answer it as it has answered that one.
TEST_F(NfsProgramTest, NoOtherCallbackComesUnderTheNumberOfOneWhoseAnswerWasLost) {
  make_session();
  answer_callbacks_ = false;
  std::vector<RecallAnswer> answers;
  const auto demand = [&](uint32_t seqid) {
    LayoutRecall what = recall_of_root();
    what.stateid.seqid = seqid;
    callbacks_.recall_layout(what, [&](RecallAnswer given) { answers.push_back(given); });
    for (int turn = 0; turn < 10; ++turn) host_.turn();
  };
  demand(2);
  ASSERT_EQ(recalls_.size(), 1U);
  client_connection_->close();
  server_connection_->close();
  for (int turn = 0; turn < 5; ++turn) host_.turn();
  connect();
  nfs4::BindConnectionToSessionArguments bind;
  bind.session_id = client_.session;
  bind.direction = nfs4::DirectionFromClient::kForeOrBoth;
  (void)compound({bind});
  answer_callbacks_ = true;
  demand(3);
  for (int tenth = 0; tenth < 10; ++tenth) {
    host_.clock.advance(Milliseconds(100));
    for (int turn = 0; turn < 10; ++turn) host_.turn();
  }
  ASSERT_EQ(recalls_.size(), 3U);
  const auto which = [&](size_t at) {
    return recalls_[at].what.get_if<nfs4::LayoutRecallType::kFile>()->stateid.seqid;
  };
  EXPECT_EQ((std::vector{which(0), which(1), which(2)}), (std::vector<uint32_t>{2, 3, 2}));
  EXPECT_EQ(callback_slots_, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(callback_seqids_, (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(answers, (std::vector{RecallAnswer::kAccepted, RecallAnswer::kAccepted}));
}

TEST_F(NfsProgramTest, RecallWithoutAPathEndsUnreachable) {
  make_session();
  client_connection_->close();
  server_connection_->close();
  EXPECT_EQ(recall(), std::nullopt);
  std::optional<RecallAnswer> answer;
  callbacks_.recall_layout(recall_of_root(), [&](RecallAnswer given) { answer = given; });
  for (int second = 0; !answer && second < 600; ++second) {
    host_.clock.advance(Milliseconds(100));
    host_.turn();
  }
  EXPECT_EQ(answer, RecallAnswer::kUnreachable);
}

TEST_F(NfsProgramTest, SilentClientIsUnreachableAndItsPathDown) {
  make_session();
  answer_callbacks_ = false;
  std::optional<RecallAnswer> answer;
  callbacks_.recall_layout(recall_of_root(), [&](RecallAnswer given) { answer = given; });
  for (int turn = 0; turn < 20; ++turn) host_.turn();
  EXPECT_EQ(answer, std::nullopt);
  host_.clock.advance(server_.limits.lease + Milliseconds(1));
  for (int turn = 0; turn < 5; ++turn) host_.turn();
  EXPECT_EQ(answer, RecallAnswer::kUnreachable);
  EXPECT_NE(flags() & nfs4::kSequenceCallbackPathDown, 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds
