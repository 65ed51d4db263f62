// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpc_rdma/connection_fixture.h"

namespace pnfsrdma::rpc_rdma::testing {
namespace {

using nfs4::Status;

class RpcRdma : public ConnectionTest {};

nfs4::ReadArguments read_of(uint64_t offset, uint32_t count) {
  nfs4::ReadArguments arguments;
  arguments.offset = offset;
  arguments.count = count;
  return arguments;
}
nfs4::WriteArguments write_of(uint64_t offset, const Bytes& data) {
  nfs4::WriteArguments arguments;
  arguments.offset = offset;
  arguments.data = nfs4::Data::view_of(data);
  return arguments;
}

template <typename Response>
const Response& only(const nfs4::CompoundResults& results) {
  static const Response kNone(Status::kServerFault);
  const bool right =
      results.operations.size() == 1 && std::holds_alternative<Response>(results.operations[0]);
  EXPECT_TRUE(right);
  return right ? std::get<Response>(results.operations[0]) : kNone;
}

TEST_P(RpcRdma, AShortCallAndItsReplyTravelInline) {
  const auto client = connect();
  EXPECT_EQ(client->thresholds(), (Thresholds{4096, 4096}));
  const Answer answer = exchange(*client, 7, {nfs4::PutRootFileHandleArguments{}});
  EXPECT_EQ(answer.results.status, Status::kOk);
  const auto counters = client->queue_pair().counters();
  EXPECT_EQ(counters.responder_read_bytes + counters.responder_write_bytes, 0U);
}

TEST_P(RpcRdma, ReadDataOfAnyLengthArrives) {
  const auto client = connect();
  uint32_t xid = 1;
  for (const uint32_t count : {0U, 1U, 3U, 1000U, 3900U, 4096U, 4097U, 65'535U, 1U << 20}) {
    const Answer answer = exchange(*client, xid++, {read_of(count, count)});
    const auto& response = only<nfs4::ReadResponse>(answer.results);
    ASSERT_EQ(response.status, Status::kOk);
    EXPECT_TRUE(std::ranges::equal(response.result.data.span(), file_bytes(count, count))) << count;
  }
}

TEST_P(RpcRdma, ReadDataIsPlacedAndNotSent) {
  const auto client = connect();
  exchange(*client, 1, {read_of(0, 1 << 20)});
  EXPECT_EQ(client->queue_pair().counters().responder_write_bytes, 1U << 20);
}

TEST_P(RpcRdma, SeveralReadsInOneCompoundGetTheirOwnChunks) {
  const auto client = connect();
  const Answer answer = exchange(*client, 1, {read_of(5, 5001), read_of(9, 0), read_of(77, 4098)});
  ASSERT_EQ(answer.results.operations.size(), 3U);
  const uint64_t offsets[] = {5, 9, 77};
  const size_t counts[] = {5001, 0, 4098};
  for (size_t i = 0; i < 3; ++i) {
    const auto& response = std::get<nfs4::ReadResponse>(answer.results.operations[i]);
    EXPECT_TRUE(std::ranges::equal(response.result.data.span(), file_bytes(offsets[i], counts[i]))) << i;
  }
}

TEST_P(RpcRdma, WriteDataOfAnyLengthArrives) {
  const auto client = connect();
  uint32_t xid = 1;
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{1001}, size_t{3900}, size_t{4095}, size_t{1} << 20}) {
    const Bytes data = file_bytes(count, count);
    const Answer answer =
        exchange(*client, xid++,
                 {nfs4::PutRootFileHandleArguments{}, write_of(count, data), nfs4::GetFileHandleArguments{}});
    ASSERT_EQ(answer.results.operations.size(), 3U);
    const auto& response = std::get<nfs4::WriteResponse>(answer.results.operations[1]);
    ASSERT_EQ(response.status, Status::kOk) << count;
    EXPECT_EQ(response.result.count, count);
  }
}

TEST_P(RpcRdma, TwoWritesInOneCompoundGoByTwoChunks) {
  const auto client = connect();
  const Bytes first = file_bytes(3, 5003);
  const Bytes second = file_bytes(40, 8190);
  const Answer answer = exchange(*client, 1, {write_of(3, first), write_of(40, second)});
  EXPECT_EQ(answer.results.status, Status::kOk);
  EXPECT_EQ(client->queue_pair().counters().responder_read_bytes, first.size() + second.size());
}

TEST_P(RpcRdma, ALongCallWithoutDataItemsIsReadWhole) {
  const auto client = connect();
  nfs4::SetXattrArguments arguments;
  arguments.key = decltype(arguments.key)("user.long");
  arguments.value = decltype(arguments.value)(file_bytes(0, 60'000));
  const Answer answer = exchange(*client, 1, {arguments});
  EXPECT_EQ(only<nfs4::SetXattrResponse>(answer.results).status, Status::kOk);
  EXPECT_GT(client->queue_pair().counters().responder_read_bytes, 60'000U);
}

TEST_P(RpcRdma, ALongReplyWithoutDataItemsComesInTheReplyChunk) {
  const auto client = connect();
  const Answer answer = exchange(*client, 1, {nfs4::GetXattrArguments{}});
  const auto& response = only<nfs4::GetXattrResponse>(answer.results);
  ASSERT_EQ(response.status, Status::kOk);
  EXPECT_TRUE(std::ranges::equal(response.result.value, file_bytes(0, 60'000)));
}

TEST_P(RpcRdma, MoreCallsThanCreditsWaitTheirTurn) {
  const auto client = connect();
  constexpr uint32_t kCalls = 3 * kCredits;
  for (uint32_t xid = 1; xid <= kCalls; ++xid) send_call(*client, xid, {read_of(xid, 5000)});
  EXPECT_EQ(client->calls_outstanding(), 1U);  // until the first reply has granted more
  auto messages = receive(*client, kCalls);
  ASSERT_EQ(messages.size(), kCalls);
  std::vector<bool> seen(kCalls + 1);
  for (Bytes& message : messages) {
    const uint32_t xid = rpc::peek_message(message)->xid;
    EXPECT_FALSE(seen[xid]);
    seen[xid] = true;
    const Answer answer = parse(std::move(message), xid);
    EXPECT_TRUE(std::ranges::equal(only<nfs4::ReadResponse>(answer.results).result.data.span(),
                                   file_bytes(xid, 5000)));
  }
  EXPECT_EQ(client->calls_outstanding(), 0U);
}

TEST_P(RpcRdma, AnswersLeaveInAnyOrderAndMoreAtOnceThanThereAreBuffers) {
  const auto client = connect();
  exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
  holding_ = true;
  for (uint32_t xid = 2; xid < 2 + kCredits; ++xid)
    send_call(*client, xid, {nfs4::PutRootFileHandleArguments{}});
  const SteadyTime deadline = soon();
  while (calls_ < 1 + kCredits && std::chrono::steady_clock::now() < deadline) {
    std::vector<Bytes> none;
    ASSERT_TRUE(client->progress(none));
    std::this_thread::sleep_for(1ms);
  }
  in_loop([&] {
    for (auto responder = held_.rbegin(); responder != held_.rend(); ++responder) responder->reply(serve({}));
    held_.clear();
  });
  const auto messages = receive(*client, kCredits);
  ASSERT_EQ(messages.size(), kCredits);
  EXPECT_EQ(rpc::peek_message(messages.front())->xid, 1 + kCredits);
}

TEST_P(RpcRdma, CallsGoBackOnTheSameConnection) {
  const auto client = connect();
  exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
  std::promise<Result<rpc::Reply>> answered;
  in_loop([&] {
    connection_->call(nfs4::kCallbackProgramDefault, 1, 1, {}, Bytes(300, std::byte{9}), 5s,
                      [&](Result<rpc::Reply> reply) { answered.set_value(std::move(reply)); });
  });
  const auto messages = receive(*client, 1);
  ASSERT_EQ(messages.size(), 1U);
  xdr::Decoder decoder(messages[0]);
  const auto call = rpc::decode_call(decoder);
  ASSERT_TRUE(call);
  EXPECT_EQ(decoder.rest().size(), 300U);
  // XIDs of the two directions are independent: a call of ours with the same one is under way meanwhile.
  holding_ = true;
  send_call(*client, call->xid, {nfs4::PutRootFileHandleArguments{}});
  ASSERT_TRUE(client->send(xdr::encode_to_bytes(rpc::ReplyHeader::success(call->xid)),
                           std::make_shared<const Bytes>(Bytes(40, std::byte{4}))));
  ASSERT_TRUE(client->flush());
  auto future = answered.get_future();
  const SteadyTime deadline = soon();
  while (future.wait_for(1ms) != std::future_status::ready && std::chrono::steady_clock::now() < deadline) {
    std::vector<Bytes> none;
    ASSERT_TRUE(client->progress(none));
  }
  const auto reply = future.get();
  ASSERT_TRUE(reply) << reply.error().to_string();
  EXPECT_EQ(reply->results.size(), 40U);
}

TEST_P(RpcRdma, AReverseCallLongerThanTheThresholdFailsAndTheConnectionLives) {
  const auto client = connect();
  exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
  std::promise<Result<rpc::Reply>> answered;
  in_loop([&] {
    connection_->call(nfs4::kCallbackProgramDefault, 1, 1, {}, Bytes(8192), 5s,
                      [&](Result<rpc::Reply> reply) { answered.set_value(std::move(reply)); });
  });
  EXPECT_FALSE(answered.get_future().get());
  EXPECT_EQ(exchange(*client, 2, {nfs4::PutRootFileHandleArguments{}}).results.status, Status::kOk);
}

TEST_P(RpcRdma, TheServerNoticesThatAClientHasGone) {
  auto client = connect();
  exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
  client.reset();
  auto closed = closed_.get_future();
  ASSERT_EQ(closed.wait_for(10s), std::future_status::ready);
}

TEST_P(RpcRdma, AClientNoticesThatTheServerHasClosed) {
  const auto client = connect();
  exchange(*client, 1, {nfs4::PutRootFileHandleArguments{}});
  in_loop([&] { connection_->close(); });
  std::vector<Bytes> messages;
  const SteadyTime deadline = soon();
  Result<> progress;
  while (progress && client->queue_pair().wait(deadline)) progress = client->progress(messages);
  EXPECT_FALSE(progress);
}

INSTANTIATE_TEST_SUITE_P(, RpcRdma, ::testing::Values(Kind::kMemory, Kind::kIwarp), name_of);

}  // namespace
}  // namespace pnfsrdma::rpc_rdma::testing
