// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/offloaded_copies.h"

#include "tests/unit/mds/ops/layout_operations_case.h"

// COPY that goes on without a request, OFFLOAD_STATUS, OFFLOAD_CANCEL, CB_OFFLOAD (RFC 7862, 4, 15 and 16).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

class OffloadedCopy : public LayoutOperations {
 protected:
  static constexpr uint64_t kData = uint64_t{1} << 20;
  static constexpr uint64_t kLong = 3 * FileCopy::kBytesMax + 1000;

  OffloadedCopy() {
    caller.join();
    from = open(caller, "f", kShareBoth);
    write(from, 0, kData, std::byte{7});
    make_long(from, kLong);
    to = open(caller, "to", kShareBoth);
  }

  void write(const File& to_file, uint64_t offset, uint64_t count, std::byte value) {
    for (uint64_t at = 0; at < count; at += uint64_t{1} << 19) {
      nfs4::WriteArguments arguments{
          .stateid = to_file.stateid, .offset = offset + at, .stable = nfs4::StableHow::kFileSync};
      arguments.data = nfs4::Data(Bytes(std::min(count - at, uint64_t{1} << 19), value));
      ASSERT_EQ(on<nfs4::WriteResponse>(caller, to_file.handle, arguments).status, Status::kOk);
    }
  }
  void make_long(const File& which, uint64_t size) {
    nfs4::SetAttributesArguments set{.stateid = which.stateid};
    set.attributes.size = size;
    ASSERT_EQ(caller.status({nfs4::PutFileHandleArguments{which.handle}, set}), Status::kOk);
  }
  static nfs4::CopyResponse copy(TestClient& who, const File& source, const File& target,
                                 bool synchronous = false) {
    nfs4::CopyArguments arguments{.synchronous = synchronous};
    arguments.source_stateid = source.stateid;
    arguments.target_stateid = target.stateid;
    return response_at<nfs4::CopyResponse>(
        who.call({nfs4::PutFileHandleArguments{source.handle}, nfs4::SaveFileHandleArguments{},
                  nfs4::PutFileHandleArguments{target.handle}, arguments}),
        3);
  }
  // Its stateid.
  nfs4::Stateid begin(TestClient& who, const File& source, const File& target) {
    const auto answer = copy(who, source, target);
    EXPECT_EQ(answer.status, Status::kOk);
    EXPECT_TRUE(answer.result.outcome.callback_id.has_value());
    return answer.result.outcome.callback_id.value_or(nfs4::Stateid{});
  }
  nfs4::Stateid begin() { return begin(caller, from, to); }
  nfs4::OffloadStatusResponse progress(TestClient& who, const nfs4::Stateid& stateid) {
    return on<nfs4::OffloadStatusResponse>(who, to.handle, nfs4::OffloadStatusArguments{stateid});
  }
  nfs4::OffloadStatusResponse progress(const nfs4::Stateid& stateid) { return progress(caller, stateid); }
  Status tested(const nfs4::Stateid& stateid) {
    nfs4::TestStateidArguments arguments;
    arguments.stateids.push_back(stateid);
    return response_at<nfs4::TestStateidResponse>(caller.call({arguments}), 0).result.statuses.at(0);
  }
  static void close(TestClient& who, const File& which) {
    ASSERT_EQ(who.status({nfs4::PutFileHandleArguments{which.handle},
                          nfs4::CloseArguments{.open_stateid = which.stateid}}),
              Status::kOk);
  }
  void turns(int count = 400) {
    for (int i = 0; i < count; ++i) host.turn();
  }
  void pass(Milliseconds time) {
    host.clock.advance(time);
    turns();
  }
  uint64_t size_of(const std::string& name) { return server.names->lookup(kRootInode, name).value()->size; }

  CalledClient caller{server, "caller"};
  File from;
  File to;
};

TEST_F(OffloadedCopy, IsAnsweredAtOnceAndTheClientIsToldOfItsEnd) {
  const auto answer = copy(caller, from, to);
  ASSERT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.result.outcome.count, 0u);
  EXPECT_FALSE(answer.result.requirements.synchronous);
  EXPECT_TRUE(answer.result.requirements.consecutive);
  ASSERT_TRUE(answer.result.outcome.callback_id);
  turns();
  ASSERT_EQ(caller.offloads.size(), 1u);
  const auto& told = caller.offloads[0];
  EXPECT_EQ(told.stateid.other, answer.result.outcome.callback_id->other);
  EXPECT_NE(told.stateid.seqid, 0u);
  EXPECT_EQ(told.file_handle, to.handle);
  const auto* outcome = told.outcome.get_if<Status::kOk>();
  ASSERT_NE(outcome, nullptr);
  EXPECT_FALSE(outcome->callback_id);
  EXPECT_EQ(outcome->count, kLong);
  EXPECT_EQ(outcome->committed, nfs4::StableHow::kFileSync);
  EXPECT_EQ(size_of("to"), kLong);
  const auto read = on<nfs4::ReadResponse>(
      caller, to.handle, nfs4::ReadArguments{.stateid = to.stateid, .offset = kData - 10, .count = 20});
  Bytes edge(20);
  std::fill_n(edge.begin(), 10, std::byte{7});
  EXPECT_TRUE(std::ranges::equal(read.result.data.span(), edge));
  EXPECT_EQ(server.counters.bytes_written, kData + kLong);
  // It has heard, so that is that.
  EXPECT_EQ(progress(told.stateid).status, Status::kBadStateid);
  EXPECT_EQ(tested(told.stateid), Status::kBadStateid);
}

TEST_F(OffloadedCopy, IsForWhoDoesNotWaitAndForWhatIsLong) {
  const auto waited = copy(caller, from, to, /*synchronous=*/true);
  EXPECT_FALSE(waited.result.outcome.callback_id);
  EXPECT_TRUE(waited.result.requirements.synchronous);
  EXPECT_EQ(waited.result.outcome.count, FileCopy::kBytesMax);
  make_long(from, FileCopy::kBytesMax);
  const auto quick = copy(caller, from, to);
  EXPECT_FALSE(quick.result.outcome.callback_id);
  EXPECT_TRUE(quick.result.requirements.synchronous);
  turns();
  EXPECT_TRUE(caller.offloads.empty());
}

TEST_F(OffloadedCopy, TellsItsClientHowFarItIs) {
  brick.hold_persists = true;
  const nfs4::Stateid stateid = begin();
  turns();
  const auto half = progress(stateid);
  ASSERT_EQ(half.status, Status::kOk);
  EXPECT_EQ(half.result.count, FileCopy::kBytesMax);
  EXPECT_FALSE(half.result.complete);
  EXPECT_EQ(tested(stateid), Status::kOk);
  EXPECT_EQ(caller.status({nfs4::FreeStateidArguments{stateid}}), Status::kLocksHeld);
  // No other's, none of another seqid, and no place to read.
  EXPECT_EQ(progress(client, stateid).status, Status::kBadStateid);
  EXPECT_EQ(progress({0, stateid.other}).status, Status::kBadStateid);
  EXPECT_EQ(progress({stateid.seqid + 1, stateid.other}).status, Status::kBadStateid);
  EXPECT_EQ(progress(to.stateid).status, Status::kBadStateid);
  EXPECT_EQ(
      on<nfs4::ReadResponse>(caller, to.handle, nfs4::ReadArguments{.stateid = stateid, .count = 20}).status,
      Status::kBadStateid);
  brick.release();
  turns();
  EXPECT_EQ(caller.offloads.size(), 1u);
}

TEST_F(OffloadedCopy, IsToldOfUntilTheClientHasHeard) {
  caller.offload_status = Status::kDelay;
  const nfs4::Stateid stateid = begin();
  turns();
  ASSERT_EQ(caller.offloads.size(), 1u);
  const auto done = progress(stateid);
  ASSERT_EQ(done.status, Status::kOk);
  EXPECT_EQ(done.result.count, kLong);
  EXPECT_EQ(done.result.complete, Status::kOk);
  caller.offload_status = Status::kOk;
  pass(Milliseconds(1000));
  EXPECT_EQ(caller.offloads.size(), 2u);
  EXPECT_EQ(progress(stateid).status, Status::kBadStateid);
  pass(Milliseconds(5000));
  EXPECT_EQ(caller.offloads.size(), 2u);
}

TEST_F(OffloadedCopy, IsKnownForALeaseToWhoCannotBeTold) {
  const File source = open(client, "f", kShareBoth);
  const nfs4::Stateid stateid = begin(client, source, open(client, "to", kShareBoth));
  turns();
  EXPECT_EQ(progress(client, stateid).result.complete, Status::kOk);
  pass(server.limits.lease - Milliseconds(1000));
  EXPECT_EQ(progress(client, stateid).result.count, kLong);
  pass(Milliseconds(1000));
  EXPECT_EQ(progress(client, stateid).status, Status::kBadStateid);
}

TEST_F(OffloadedCopy, EndsWhenItsClientSaysSo) {
  brick.hold_persists = true;
  const nfs4::Stateid stateid = begin();
  turns();
  EXPECT_EQ(on<nfs4::OffloadCancelResponse>(client, to.handle, nfs4::OffloadCancelArguments{stateid}).status,
            Status::kBadStateid);
  const auto cancelled =
      server.begin({caller.next_sequence(), nfs4::OffloadCancelArguments{stateid}}, caller.who);
  turns();
  EXPECT_EQ(*cancelled, nullptr) << "some of it is still on its way";
  brick.release();
  turns();
  ASSERT_NE(*cancelled, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**cancelled)->status, Status::kOk);
  EXPECT_EQ(size_of("to"), FileCopy::kBytesMax) << "what is copied stays";
  EXPECT_EQ(progress(stateid).status, Status::kBadStateid);
  pass(Milliseconds(5000));
  EXPECT_TRUE(caller.offloads.empty());
  EXPECT_EQ(size_of("to"), FileCopy::kBytesMax);
}

TEST_F(OffloadedCopy, CannotBeGivenUpWhenItHasEnded) {
  caller.offload_status = Status::kDelay;
  const nfs4::Stateid stateid = begin();
  turns();
  EXPECT_EQ(caller.status({nfs4::OffloadCancelArguments{stateid}}), Status::kCompleteAlready);
  caller.offload_status = Status::kOk;
  pass(Milliseconds(5000));
  EXPECT_EQ(caller.offloads.size(), 2u);
  EXPECT_EQ(caller.status({nfs4::OffloadCancelArguments{stateid}}), Status::kBadStateid);
}

// Without a request there is no reply that waits: the size and the extents may be lost until the store has synced.
TEST_F(OffloadedCopy, IsToldWhenItIsDurable) {
  begin();
  host.store.sync_by_hand();
  turns();
  EXPECT_EQ(size_of("to"), kLong);
  EXPECT_TRUE(caller.offloads.empty());
  ASSERT_TRUE(host.store.sync());
  turns();
  EXPECT_EQ(caller.offloads.size(), 1u);
}

TEST_F(OffloadedCopy, GoesOnBehindItsClosedOpenUnlessOthersDenyIt) {
  brick.hold_persists = true;
  begin();
  turns();
  close(caller, to);
  brick.hold_persists = false;
  brick.release();
  turns();
  EXPECT_EQ(size_of("to"), kLong);

  const File target = open(caller, "again", kShareBoth);
  brick.hold_persists = true;
  begin(caller, from, target);
  turns();
  close(caller, target);
  auto denying = client.open_arguments("again", kShareRead);
  denying.share_deny = kShareWrite;
  ASSERT_EQ(client.open(denying).status, Status::kOk);
  brick.hold_persists = false;
  brick.release();
  turns();
  EXPECT_EQ(size_of("again"), FileCopy::kBytesMax);
  ASSERT_EQ(caller.offloads.size(), 2u);
  EXPECT_EQ(caller.offloads[1].outcome.get_if<Status::kOk>()->count, FileCopy::kBytesMax);
}

TEST_F(OffloadedCopy, EndsWithItsClient) {
  brick.hold_persists = true;
  const nfs4::Stateid stateid = begin();
  turns();
  CalledClient again(server, "caller");
  store_big_endian(again.owner.verifier.data(), uint64_t{2});
  again.join();
  brick.release();
  turns();
  EXPECT_EQ(size_of("to"), FileCopy::kBytesMax);
  EXPECT_EQ(progress(again, stateid).status, Status::kBadStateid);
  EXPECT_TRUE(caller.offloads.empty());
  EXPECT_TRUE(again.offloads.empty());
}

TEST_F(OffloadedCopy, OneTooManyIsSynchronous) {
  // Who cannot be told has them until a lease is over.
  make_long(open(caller, "hole", kShareBoth), kLong);
  const File source = open(client, "hole", kShareBoth);
  const auto target = [&](size_t number) { return open(client, "to" + std::to_string(number), kShareBoth); };
  for (size_t i = 0; i < OffloadedCopies::kOfClientMax; ++i) {
    begin(client, source, target(i));
    turns();
  }
  const auto further = copy(client, source, target(OffloadedCopies::kOfClientMax));
  EXPECT_EQ(further.status, Status::kOk);
  EXPECT_FALSE(further.result.outcome.callback_id);
  EXPECT_EQ(further.result.outcome.count, FileCopy::kBytesMax);
  begin();  // of another client
  pass(server.limits.lease);
  begin(client, source, target(0));
}

TEST_F(OffloadedCopy, WithoutRoomForTheFirstByteSaysSo) {
  const uint64_t free = module.data().space().free;
  ASSERT_EQ(on<nfs4::AllocateResponse>(caller, open(caller, "fill", kShareBoth).handle,
                                       nfs4::AllocateArguments{.length = free})
                .status,
            Status::kOk);
  const nfs4::Stateid stateid = begin();
  turns();
  ASSERT_EQ(caller.offloads.size(), 1u);
  EXPECT_EQ(caller.offloads[0].stateid.other, stateid.other);
  EXPECT_EQ(caller.offloads[0].outcome.discriminant(), Status::kNoSpc);
  EXPECT_EQ(size_of("to"), 0u);
}

TEST_F(OffloadedCopy, WaitsForABrickThatIsAway) {
  const nfs4::Stateid stateid = begin();
  plug.down(kBrick);
  pass(Milliseconds(100));
  pass(Milliseconds(100));
  EXPECT_FALSE(progress(stateid).result.complete);
  plug.up(kBrick);
  pass(Milliseconds(100));
  pass(Milliseconds(100));
  EXPECT_EQ(size_of("to"), kLong);
  EXPECT_EQ(caller.offloads.size(), 1u);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
