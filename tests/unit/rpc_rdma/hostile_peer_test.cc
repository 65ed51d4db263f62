// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/private_data.h"
#include "tests/unit/rdma/wrapped_transport.h"
#include "tests/unit/rpc_rdma/connection_fixture.h"

namespace pnfsrdma::rpc_rdma::testing {
namespace {

// Tells of each look for completions, before it.
class WatchedQueuePair final : public rdma::testing::WrappedQueuePair {
 public:
  using Told = std::shared_ptr<std::function<void()>>;
  WatchedQueuePair(std::unique_ptr<rdma::QueuePair> inner, Told told)
      : WrappedQueuePair(std::move(inner)), told_(std::move(told)) {}

  size_t poll(std::span<rdma::Completion> completions) override {
    if (*told_) (*told_)();
    return WrappedQueuePair::poll(completions);
  }

 private:
  const Told told_;
};

// A client that writes its own transport headers.
class HostilePeer : public ConnectionTest {
 protected:
  std::unique_ptr<rdma::Transport> around(std::unique_ptr<rdma::Transport> inner) override {
    return std::make_unique<rdma::testing::WrappedTransport>(
        std::move(inner), [told = on_server_poll_](std::unique_ptr<rdma::QueuePair> queue_pair) {
          return std::make_unique<WatchedQueuePair>(std::move(queue_pair), told);
        });
  }

  void SetUp() override {
    ConnectionTest::SetUp();
    domain_ = transport_->make_protection_domain();
    memory_.resize(1 << 20);
    region_ = *transport_->register_region(
        domain_, memory_, rdma::Access::kLocalWrite | rdma::Access::kRemoteRead | rdma::Access::kRemoteWrite);
    auto connected = transport_->connect(
        listener_->address(), domain_,
        {.private_data = our_private_data(), .limits = queue_pair_limits(), .deadline = soon()});
    ASSERT_TRUE(connected) << connected.error().to_string();
    queue_pair_ = std::move(connected->queue_pair);
    EXPECT_EQ(agree(connected->private_data), (Thresholds{4096, 4096}));
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  void TearDown() override {
    queue_pair_.reset();
    ConnectionTest::TearDown();
  }

  static constexpr uint32_t kReceives = 16;
  // Where chunks are, behind the message buffers.
  static constexpr size_t kChunks = size_t{kReceives + 1} * 4096;

  void post_receive(uint32_t index) {
    ASSERT_TRUE(queue_pair_->post_receive(index, region_->slice(size_t{index} * 4096, 4096)));
  }

  void send(const FixedHeader& header, const ChunkLists& lists, ByteSpan message) {
    Bytes bytes;
    xdr::Encoder encoder(bytes);
    encode(encoder, header);
    encode(encoder, lists);
    bytes.insert(bytes.end(), message.begin(), message.end());
    send_raw(bytes);
  }
  void send_raw(ByteSpan bytes) {
    const size_t at = size_t{kReceives} * 4096;
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + static_cast<ptrdiff_t>(at));
    const rdma::LocalSlice slice = region_->slice(at, static_cast<uint32_t>(bytes.size()));
    ASSERT_TRUE(queue_pair_->post_send(100, {&slice, 1}));
    queue_pair_->submit();
  }

  // The next message of the server's; nothing when it has ended the connection.
  std::optional<Bytes> next() {
    const SteadyTime deadline = soon();
    for (;;) {
      rdma::Completion done;
      while (queue_pair_->poll({&done, 1}) == 1) {
        if (done.outcome != rdma::Outcome::kSuccess) return std::nullopt;
        if (done.opcode != rdma::Opcode::kReceive) continue;
        const auto from = memory_.begin() + static_cast<ptrdiff_t>(done.work_id * 4096);
        Bytes message(from, from + done.length);
        post_receive(static_cast<uint32_t>(done.work_id));
        return message;
      }
      if (!queue_pair_->connected()) return std::nullopt;
      if (!queue_pair_->wait(deadline)) {
        ADD_FAILURE() << "neither an answer nor the end";
        return std::nullopt;
      }
    }
  }

  struct Seen {
    FixedHeader header;
    ChunkLists lists;
    std::optional<ErrorBody> error;
    Bytes rest;
  };
  Seen expect_message() {
    Seen seen;
    const auto message = next();
    EXPECT_TRUE(message) << "the connection has ended";
    if (!message) return seen;
    xdr::Decoder decoder(*message);
    EXPECT_TRUE(decode_fixed(decoder, seen.header));
    if (seen.header.procedure == Procedure::kError) {
      ErrorBody body;
      EXPECT_TRUE(decode_error(decoder, body));
      seen.error = body;
    } else {
      EXPECT_TRUE(decode_lists(decoder, seen.lists));
    }
    seen.rest.assign(decoder.rest().begin(), decoder.rest().end());
    return seen;
  }
  void expect_chunk_error(uint32_t xid) {
    const Seen seen = expect_message();
    EXPECT_EQ(seen.header.xid, xid);
    ASSERT_TRUE(seen.error);
    EXPECT_EQ(*seen.error, (ErrorBody{ErrorCode::kChunk, 0, 0}));
    EXPECT_GT(seen.header.credits, 0U);
    expect_alive(xid + 1000);
  }
  // The connection still answers.
  void expect_alive(uint32_t xid) {
    send({xid, 1, 32, Procedure::kMessage}, {}, call_of(xid, {nfs4::PutRootFileHandleArguments{}}));
    EXPECT_EQ(expect_message().header.xid, xid);
  }

  static Bytes call_of(uint32_t xid, std::vector<nfs4::ArgumentOperation> operations) {
    rpc::CallHeader header;
    header.xid = xid;
    header.program = nfs4::kProgram;
    header.version = nfs4::kVersion;
    header.procedure = nfs4::kProcedureCompound;
    Bytes message = xdr::encode_to_bytes(header);
    const Bytes body = xdr::encode_to_bytes(nfs4::CompoundArguments{{nfs4::Tag(), 2}, std::move(operations)});
    message.insert(message.end(), body.begin(), body.end());
    return message;
  }
  static Bytes read_call(uint32_t xid, uint32_t count) {
    nfs4::ReadArguments read;
    read.count = count;
    return call_of(xid, {read});
  }
  Segment segment(size_t offset, uint32_t length) const {
    return {region_->remote().key, length, region_->remote().address + kChunks + offset};
  }

  std::shared_ptr<rdma::ProtectionDomain> domain_;
  Bytes memory_;
  std::unique_ptr<rdma::Region> region_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  // What happens at each poll() of the server's; the loop's.
  const WatchedQueuePair::Told on_server_poll_ = std::make_shared<std::function<void()>>();
};

TEST_P(HostilePeer, AnotherVersionIsAnsweredWithTheRangeWeSpeak) {
  send({5, 2, 32, Procedure::kMessage}, {}, call_of(5, {}));
  const Seen seen = expect_message();
  ASSERT_TRUE(seen.error);
  EXPECT_EQ(*seen.error, (ErrorBody{ErrorCode::kVersion, 1, 1}));
  expect_alive(6);
}

TEST_P(HostilePeer, PaddedMessagesAndUnknownProceduresAreChunkErrors) {
  send({5, 1, 32, Procedure::kPadded}, {}, {});
  expect_chunk_error(5);
  send({7, 1, 32, static_cast<Procedure>(77)}, {}, {});
  expect_chunk_error(7);
}

TEST_P(HostilePeer, DoneAndErrorsAndScrapsAreDropped) {
  send({5, 1, 32, Procedure::kDone}, {}, {});
  send_raw(Bytes(12));
  EXPECT_EQ(calls_, 0U);
  expect_alive(9);
}

TEST_P(HostilePeer, MessagesWithoutEndLeaveTheLoopToOthers) {
  constexpr size_t kVeryMany = 20'000;
  size_t messages = 0;
  // Whenever the server looks, another one has come.
  const auto one_more = [&] {
    if (++messages > kVeryMany) return;
    send({5, 1, 32, Procedure::kDone}, {}, {});
    rdma::Completion done;
    while (queue_pair_->poll({&done, 1}) == 1) {
    }
  };
  in_loop([&] {
    *on_server_poll_ = one_more;
    one_more();
  });
  size_t before_others = 0;
  in_loop([&] {
    before_others = messages;
    *on_server_poll_ = nullptr;
  });
  EXPECT_LT(before_others, kVeryMany / 10);
  expect_alive(9);
}

TEST_P(HostilePeer, ListsThatCannotBeDecodedAreChunkErrors) {
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  encode(encoder, FixedHeader{5, 1, 32, Procedure::kMessage});
  encoder.put_u32(2);  // neither there nor not there
  encoder.put_u64(0);
  send_raw(bytes);
  expect_chunk_error(5);
}

TEST_P(HostilePeer, ALongMessageNeedsAChunkAtPositionZero) {
  send({5, 1, 32, Procedure::kNoMessage}, {}, {});
  expect_chunk_error(5);
  ChunkLists lists;
  lists.reads.push_back({.position = 0, .target = segment(0, 100)});
  send({7, 1, 32, Procedure::kMessage}, lists, call_of(7, {}));
  expect_chunk_error(7);
}

TEST_P(HostilePeer, PositionsBehindTheEndOrOutOfOrderAreChunkErrors) {
  const Bytes message = call_of(5, {});
  ChunkLists lists;
  lists.reads = {{.position = 4096, .target = segment(0, 4)}};
  send({5, 1, 32, Procedure::kMessage}, lists, message);
  expect_chunk_error(5);
  lists.reads = {{.position = 44, .target = segment(0, 4)}, {.position = 40, .target = segment(0, 4)}};
  send({5, 1, 32, Procedure::kMessage}, lists, message);
  expect_chunk_error(5);
  lists.reads = {{.position = 43, .target = segment(0, 4)}};
  send({5, 1, 32, Procedure::kMessage}, lists, message);
  expect_chunk_error(5);
}

TEST_P(HostilePeer, ACallOfMoreThanTheLongestMessageIsAChunkError) {
  ChunkLists lists;
  lists.reads = {{.position = 0, .target = segment(0, UINT32_MAX)}};
  send({5, 1, 32, Procedure::kNoMessage}, lists, {});
  expect_chunk_error(5);
}

TEST_P(HostilePeer, AWriteChunkThatIsTooSmallIsAChunkError) {
  ChunkLists lists;
  lists.writes = {{segment(0, 4095)}};
  send({5, 1, 32, Procedure::kMessage}, lists, read_call(5, 4096));
  expect_chunk_error(5);
}

TEST_P(HostilePeer, ALongReplyWithoutAReplyChunkIsAChunkError) {
  send({5, 1, 32, Procedure::kMessage}, {}, read_call(5, 4096));
  expect_chunk_error(5);
}

TEST_P(HostilePeer, ChunksInPiecesAreFilledFromTheFront) {
  ChunkLists lists;
  lists.writes = {{segment(0, 1000), segment(2000, 3000), segment(8000, 500)}};
  lists.reply = WriteChunk{segment(9000, 100)};
  send({5, 1, 32, Procedure::kMessage}, lists, read_call(5, 3001));
  const Seen seen = expect_message();
  EXPECT_EQ(seen.header.procedure, Procedure::kMessage);
  ASSERT_EQ(seen.lists.writes.size(), 1U);
  EXPECT_EQ(seen.lists.writes[0], (WriteChunk{segment(0, 1000), segment(2000, 2001), segment(8000, 0)}));
  ASSERT_TRUE(seen.lists.reply);
  EXPECT_EQ(length_of(*seen.lists.reply), 0U);
  const auto at = memory_.begin() + static_cast<ptrdiff_t>(kChunks);
  EXPECT_EQ(Bytes(at, at + 1000), file_bytes(0, 1000));
  EXPECT_EQ(Bytes(at + 2000, at + 4001), file_bytes(1000, 2001));
  EXPECT_EQ(Bytes(at + 4001, at + 9000), Bytes(4999)) << "not a byte more";
}

TEST_P(HostilePeer, ReadDataGoesIntoAReplyChunkInPiecesToo) {
  ChunkLists lists;
  lists.reply = WriteChunk{segment(0, 20), segment(100, 1), segment(200, 9000)};
  send({5, 1, 32, Procedure::kMessage}, lists, read_call(5, 5000));
  const Seen seen = expect_message();
  EXPECT_EQ(seen.header.procedure, Procedure::kNoMessage);
  EXPECT_TRUE(seen.rest.empty());
  const auto at = memory_.begin() + static_cast<ptrdiff_t>(kChunks);
  Bytes message(at, at + 20);
  message.push_back(at[100]);
  message.insert(message.end(), at + 200,
                 at + 200 + static_cast<ptrdiff_t>(length_of(*seen.lists.reply) - 21));
  const Answer answer = parse(std::move(message), 5);
  const auto& read = std::get<nfs4::ReadResponse>(answer.results.operations.at(0));
  EXPECT_TRUE(std::ranges::equal(read.result.data.span(), file_bytes(0, 5000)));
}

TEST_P(HostilePeer, ALongCallMayHaveAChunkInItsMiddleToo) {
  nfs4::WriteArguments write;
  const Bytes data = file_bytes(0, 4098);
  write.data = nfs4::Data::view_of(data);
  const Bytes whole = call_of(5, {write});
  const size_t position = whole.size() - 4100;
  // The message without its data at 0, in two pieces, the data behind it.
  std::copy_n(whole.begin(), position, memory_.begin() + static_cast<ptrdiff_t>(kChunks));
  std::copy(data.begin(), data.end(), memory_.begin() + static_cast<ptrdiff_t>(kChunks + 8192));
  ChunkLists lists;
  lists.reads = {{.position = 0, .target = segment(0, 10)},
                 {.position = 0, .target = segment(10, static_cast<uint32_t>(position - 10))},
                 {.position = static_cast<uint32_t>(position), .target = segment(8192, 4000)},
                 {.position = static_cast<uint32_t>(position), .target = segment(8192 + 4000, 98)}};
  send({5, 1, 32, Procedure::kNoMessage}, lists, {});
  const Seen seen = expect_message();
  const Answer answer = parse(seen.rest, 5);
  EXPECT_EQ(answer.results.status, nfs4::Status::kOk);
}

TEST_P(HostilePeer, MemoryThatCannotBeReachedEndsTheConnection) {
  ChunkLists lists;
  lists.reads = {{.position = 0, .target = {region_->remote().key ^ 0x55, 200, region_->remote().address}}};
  send({5, 1, 32, Procedure::kNoMessage}, lists, {});
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_EQ(calls_, 0U);
}

TEST_P(HostilePeer, TwoXidsInOneMessageEndTheConnection) {
  send({5, 1, 32, Procedure::kMessage}, {}, call_of(6, {}));
  EXPECT_EQ(next(), std::nullopt);
}

TEST_P(HostilePeer, AnXidThatIsInUseEndsTheConnection) {
  holding_ = true;
  send({5, 1, 32, Procedure::kMessage}, {}, call_of(5, {}));
  send({5, 1, 32, Procedure::kMessage}, {}, call_of(5, {}));
  EXPECT_EQ(next(), std::nullopt);
}

TEST_P(HostilePeer, MoreCallsThanCreditsEndTheConnection) {
  holding_ = true;
  for (uint32_t xid = 1; xid <= kCredits + 1; ++xid) {
    send({xid, 1, 32, Procedure::kMessage}, {}, call_of(xid, {}));
    // The send buffer is used again: what it held has to be gone first.
    const SteadyTime deadline = soon();
    rdma::Completion done;
    while (queue_pair_->poll({&done, 1}) == 0 && queue_pair_->connected() && queue_pair_->wait(deadline)) {
    }
  }
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_LE(calls_, kCredits);
}

INSTANTIATE_TEST_SUITE_P(, HostilePeer, ::testing::Values(Kind::kMemory, Kind::kIwarp), name_of);

}  // namespace
}  // namespace pnfsrdma::rpc_rdma::testing
