// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/layout_cache.h"

#include <gtest/gtest.h>

#include <future>

#include "shared/initiator/brick/device.h"
#include "shared/initiator/brick/fabric.h"

namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;
using nfs4::IoMode;
using Entry = LayoutCache::Entry;
using Begin = LayoutCache::Begin;
using Recall = LayoutCache::Recall;

constexpr uint64_t kEpoch = 1;

class LayoutCacheTest : public testing::Test {
 protected:
  static nfs4::Stateid stateid(uint32_t seqid, uint8_t file = 1) {
    nfs4::Stateid stateid{seqid, {}};
    stateid.other[0] = std::byte{file};
    return stateid;
  }
  LayoutSegment memory(uint64_t offset, uint64_t length, uint64_t grant, Device* of = nullptr) {
    LayoutSegment segment{.offset = offset, .length = length, .iomode = IoMode::kReadWrite};
    segment.device = of != nullptr ? of : &device;
    segment.incarnation = segment.device->incarnation();
    segment.read.grant = segment.write.grant = grant;
    return segment;
  }
  LayoutSegment read_only(uint64_t offset, uint64_t length, uint64_t grant) {
    LayoutSegment segment = memory(offset, length, grant);
    segment.iomode = IoMode::kRead;
    segment.write = {};
    return segment;
  }
  static LayoutSegment hole(uint64_t offset, uint64_t length) {
    return {.offset = offset, .length = length, .iomode = IoMode::kRead};
  }
  void take(uint32_t seqid, std::vector<LayoutSegment> segments,
            std::optional<uint64_t> size = std::nullopt) {
    cache.take(stateid(seqid), std::move(segments), size, kEpoch);
  }
  // Whether an I/O would be let in, and how far.
  Entry try_enter(uint64_t offset, uint64_t length, bool for_write, uint64_t* let_in = nullptr) {
    LayoutPin pin;
    const Entry entry = cache.enter(pin, offset, length, for_write, kEpoch);
    if (entry != Entry::kEntered) return entry;
    if (let_in != nullptr) *let_in = pin.length;
    cache.leave(pin);
    return entry;
  }
  Begin begin_get(uint64_t offset, uint64_t length, LayoutCache::Getting& getting) {
    return cache.begin_get(offset, length, true, steady_now(), kEpoch, getting);
  }

  const SystemClock clock;
  DeferredDestruction destruction{"test-destroy"};
  Fabric fabric{.clock = clock,
                .options = {},
                .transports = {},
                .address_of = [](const nfs4::DeviceId&) { return fail(EIO, "no device is asked for"); },
                .destruction = destruction};
  Device device{{}, fabric}, other_device{{}, fabric};
  LostStateids lost;
  LayoutCache cache{&lost};
};

// --- the gate

TEST_F(LayoutCacheTest, AnIoIsLetInAsFarAsSegmentsReachWithoutAGap) {
  take(1, {memory(0, 100, 1), memory(100, 100, 2), memory(300, 100, 3)});
  LayoutPin pin;
  ASSERT_EQ(cache.enter(pin, 50, 400, true, kEpoch), Entry::kEntered);
  EXPECT_EQ(pin.length, 150U);
  ASSERT_EQ(pin.pieces().size(), 2U);
  EXPECT_EQ(pin.pieces()[0].skip, 50U);
  EXPECT_EQ(pin.pieces()[1].offset, 100U);
  EXPECT_EQ(pin.held_end, 200U);
  EXPECT_EQ(pin.layout, stateid(1));
  cache.leave(pin);
  EXPECT_EQ(try_enter(250, 10, false), Entry::kMissing);
}

TEST_F(LayoutCacheTest, AnIoHasSoManyPiecesAtMost) {
  std::vector<LayoutSegment> segments;
  for (uint64_t number = 0; number <= kPiecesMax; ++number) segments.push_back(memory(number, 1, number + 1));
  take(1, segments);
  uint64_t let_in = 0;
  EXPECT_EQ(try_enter(0, 1000, true, &let_in), Entry::kEntered);
  EXPECT_EQ(let_in, kPiecesMax);
}

TEST_F(LayoutCacheTest, ReadOnlyMemoryAndHolesLetNoWriteIn) {
  take(1, {read_only(0, 100, 1), hole(100, 100)});
  EXPECT_EQ(try_enter(0, 200, false), Entry::kEntered);
  EXPECT_EQ(try_enter(0, 10, true), Entry::kMissing);
  EXPECT_EQ(try_enter(100, 10, true), Entry::kMissing);
}

TEST_F(LayoutCacheTest, WritableMemoryIsNotReplacedByReadOnlyMemory) {
  take(1, {memory(50, 50, 1)});
  take(2, {read_only(0, 200, 2)});
  EXPECT_EQ(try_enter(60, 10, true), Entry::kEntered);
  EXPECT_EQ(try_enter(110, 10, true), Entry::kMissing);
  uint64_t let_in = 0;
  EXPECT_EQ(try_enter(0, 200, false, &let_in), Entry::kEntered);
  EXPECT_EQ(let_in, 200U);
  take(3, {memory(0, 200, 3)});
  EXPECT_EQ(try_enter(0, 200, true), Entry::kEntered);
  EXPECT_EQ(cache.held().segments, 1U);
}

TEST_F(LayoutCacheTest, IosInARowAreSequential) {
  take(1, {memory(0, 1000, 1)});
  LayoutPin pin;
  for (const uint64_t offset : {500, 510, 520}) {
    ASSERT_EQ(cache.enter(pin, offset, 10, true, kEpoch), Entry::kEntered);
    EXPECT_EQ(pin.sequential, offset != 500);
    EXPECT_EQ(pin.run_begin, 500U);
    cache.leave(pin);
  }
  ASSERT_EQ(cache.enter(pin, 100, 10, true, kEpoch), Entry::kEntered);
  EXPECT_FALSE(pin.sequential);
  EXPECT_EQ(pin.run_begin, 100U);
  cache.leave(pin);
}

TEST_F(LayoutCacheTest, OneThatWasAbandonedDoesNotEndTheRow) {
  take(1, {memory(0, 1000, 1)});
  LayoutPin pin;
  ASSERT_EQ(cache.enter(pin, 500, 10, true, kEpoch), Entry::kEntered);
  cache.leave(pin);
  ASSERT_EQ(cache.enter(pin, 510, 10, true, kEpoch), Entry::kEntered);
  cache.abandon(pin);
  ASSERT_EQ(cache.enter(pin, 510, 10, true, kEpoch), Entry::kEntered);
  EXPECT_TRUE(pin.sequential);
  EXPECT_EQ(pin.run_begin, 500U);
  cache.leave(pin);
}

TEST_F(LayoutCacheTest, AFlushEntersWhatIsHeldAndNamesTheRest) {
  take(1, {memory(0, 100, 1), memory(200, 100, 2)});
  FlushPin pin;
  const std::vector<FileRange> ranges = {{50, 200}, {400, 10}};
  cache.enter(pin, ranges, false, kEpoch);
  ASSERT_EQ(pin.pieces.size(), 2U);
  EXPECT_EQ(pin.pieces[0].offset, 50U);
  EXPECT_EQ(pin.pieces[1].length, 50U);
  EXPECT_EQ(pin.missing, (std::vector<FileRange>{{100, 100}, {400, 10}}));
  cache.leave(pin);
}

// --- recalls and returns

TEST_F(LayoutCacheTest, ARecallIsRoundedOutToWholeSegmentsAndShutsTheirGate) {
  take(1, {memory(0, 100, 1), memory(100, 100, 2)});
  FileRange range{10, 1};
  ASSERT_EQ(cache.begin_recall(stateid(2), IoMode::kAny, range), Recall::kAccepted);
  EXPECT_EQ(range, (FileRange{0, 100}));
  EXPECT_EQ(try_enter(50, 10, true), Entry::kClosed);
  EXPECT_EQ(try_enter(150, 10, true), Entry::kEntered);
  FlushPin flush;
  const std::vector<FileRange> all = {{0, 100}};
  cache.enter(flush, all, false, kEpoch);
  EXPECT_TRUE(flush.pieces.empty());
  cache.leave(flush);
  cache.enter(flush, all, true, kEpoch);
  EXPECT_EQ(flush.pieces.size(), 1U) << "the recall's own flush";
  cache.leave(flush);
  EXPECT_EQ(cache.start_return(IoMode::kAny, range, steady_now()), stateid(2));
  cache.finish_return(stateid(2), stateid(3));
  cache.open_gate(IoMode::kAny, range);
  EXPECT_EQ(try_enter(50, 10, true), Entry::kMissing);
  EXPECT_EQ(cache.stateid(), stateid(3));
}

TEST_F(LayoutCacheTest, ARecallOfWhatIsNotHeldIsNothing) {
  FileRange range{0, 100};
  EXPECT_EQ(cache.begin_recall(stateid(1), IoMode::kAny, range), Recall::kNothing);
  take(1, {read_only(0, 100, 1)});
  EXPECT_EQ(cache.begin_recall(stateid(2, 7), IoMode::kAny, range), Recall::kNothing);
  EXPECT_EQ(cache.begin_recall(stateid(2), IoMode::kReadWrite, range), Recall::kNothing);
  EXPECT_EQ(cache.stateid(), stateid(2)) << "the recall has a number all the same";
}

// RFC 8881, 12.5.5.2.1.1: the answer may grant what is recalled.
TEST_F(LayoutCacheTest, ARecallWaitsForTheAnswerThatCameBeforeIt) {
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(0, 100, getting), Begin::kGo);
  FileRange range{0, 100};
  EXPECT_EQ(cache.begin_recall(stateid(2), IoMode::kAny, range), Recall::kDelay);
  cache.finish_get(stateid(1), {memory(0, 100, 1)}, std::nullopt, kEpoch);
  ASSERT_EQ(begin_get(100, 100, getting), Begin::kGo);
  EXPECT_EQ(cache.begin_recall(stateid(3), IoMode::kAny, range), Recall::kDelay);
  EXPECT_EQ(cache.begin_recall(stateid(2), IoMode::kAny, range), Recall::kAccepted);
  cache.finish_get();
}

// It came when the gate had its range. What reaches beyond is not given back, and may be in use.
TEST_F(LayoutCacheTest, OfASegmentThatComesDuringARecallOnlyWhatIsRecalledGoes) {
  take(1, {memory(0, 100, 1)});
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(100, 100, getting), Begin::kGo);
  FileRange range{50, 100};
  ASSERT_EQ(cache.begin_recall(stateid(2), IoMode::kAny, range), Recall::kAccepted);
  EXPECT_EQ(range, (FileRange{0, 150}));
  cache.finish_get(stateid(3), {memory(100, 100, 2)}, std::nullopt, kEpoch);
  EXPECT_EQ(try_enter(120, 10, true), Entry::kClosed);
  EXPECT_EQ(try_enter(160, 10, true), Entry::kEntered);
  ASSERT_TRUE(cache.start_return(IoMode::kAny, range, steady_now()));
  cache.finish_return(stateid(3), stateid(4));
  cache.open_gate(IoMode::kAny, range);
  EXPECT_EQ(try_enter(160, 10, true), Entry::kEntered);
  EXPECT_EQ(try_enter(120, 10, true), Entry::kMissing);
  FileRange rest{150, 50};
  EXPECT_EQ(cache.begin_recall(stateid(5), IoMode::kAny, rest), Recall::kAccepted);
}

TEST_F(LayoutCacheTest, TheNumberAfterTheLastOneIsOne) {
  take(UINT32_MAX, {memory(0, 100, 1)});
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(100, 100, getting), Begin::kGo);
  FileRange range{0, 100};
  EXPECT_EQ(cache.begin_recall(stateid(1), IoMode::kAny, range), Recall::kAccepted);
  EXPECT_EQ(cache.stateid(), stateid(1));
  cache.finish_get();
}

TEST_F(LayoutCacheTest, AnOlderNumberDoesNotReplaceANewerOne) {
  take(5, {memory(0, 100, 1)});
  take(4, {memory(100, 100, 2)});
  EXPECT_EQ(cache.stateid(), stateid(5));
}

TEST_F(LayoutCacheTest, WhatIsInsideIsWaitedFor) {
  take(1, {memory(0, 100, 1), memory(100, 100, 2)});
  LayoutPin pin;
  ASSERT_EQ(cache.enter(pin, 0, 10, true, kEpoch), Entry::kEntered);
  EXPECT_FALSE(cache.drain({0, 100}, steady_now()));
  EXPECT_TRUE(cache.drain({100, 100}, steady_now()));
  auto drained = std::async(std::launch::async, [this] { return cache.drain({0, 100}, steady_now() + 60s); });
  EXPECT_EQ(drained.wait_for(20ms), std::future_status::timeout);
  cache.leave(pin);
  EXPECT_TRUE(drained.get());
  FlushPin flush;
  const std::vector<FileRange> ranges = {{0, 10}};
  cache.enter(flush, ranges, false, kEpoch);
  EXPECT_FALSE(cache.drain({0, 100}, steady_now()));
  EXPECT_TRUE(cache.drain({0, 100}, steady_now(), false));
  cache.leave(flush);
}

TEST_F(LayoutCacheTest, AReturnOfEverythingEndsTheStateidAndNobodyNeedFreeIt) {
  take(1, {memory(0, 100, 1)});
  FileRange range{0, UINT64_MAX};
  ASSERT_TRUE(cache.begin_return(IoMode::kAny, range));
  EXPECT_TRUE(cache.start_return(IoMode::kAny, range, steady_now()));
  LayoutCache::Getting getting;
  EXPECT_EQ(begin_get(0, 10, getting), Begin::kBusy) << "a return is under way";
  cache.finish_return(stateid(1), std::nullopt);
  cache.open_gate(IoMode::kAny, range);
  EXPECT_FALSE(cache.stateid());
  EXPECT_TRUE(lost.all().empty());
  EXPECT_FALSE(cache.begin_return(IoMode::kAny, range)) << "nothing is held";
}

// --- LAYOUTGET

TEST_F(LayoutCacheTest, OneLayoutgetAtATime) {
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(0, 100, getting), Begin::kGo);
  EXPECT_FALSE(getting.stateid);
  EXPECT_TRUE(cache.getting());
  LayoutCache::Getting second;
  EXPECT_EQ(begin_get(500, 100, second), Begin::kBusy);
  auto waiting = std::async(
      std::launch::async, [&] { return cache.begin_get(0, 100, true, steady_now() + 60s, kEpoch, second); });
  cache.finish_get(stateid(1), {memory(0, 200, 1)}, std::nullopt, kEpoch);
  EXPECT_EQ(waiting.get(), Begin::kHeld) << "the other one has brought it";
  ASSERT_EQ(begin_get(300, 100, getting), Begin::kGo);
  EXPECT_EQ(getting.stateid, stateid(1));
  EXPECT_EQ(getting.held_bytes, 200U);
  cache.finish_get();
}

TEST_F(LayoutCacheTest, TheGapEndsAtWhatIsHeldAndAtWhatIsBeingGivenBack) {
  take(1, {memory(0, 100, 1), memory(500, 100, 2), memory(900, 100, 3)});
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(200, 10, getting), Begin::kGo);
  EXPECT_EQ(getting.gap, (FileRange{100, 400}));
  cache.finish_get();
  cache.close_gate({300, 10});
  ASSERT_EQ(begin_get(200, 10, getting), Begin::kGo);
  EXPECT_EQ(getting.gap, (FileRange{100, 200}));
  cache.finish_get();
  EXPECT_EQ(begin_get(305, 1, getting), Begin::kBusy);
  cache.open_gate(IoMode::kAny, {300, 10});
  ASSERT_EQ(begin_get(2000, 1, getting), Begin::kGo);
  EXPECT_EQ(getting.gap, (FileRange{1000, UINT64_MAX - 1000}));
  cache.finish_get();
}

TEST_F(LayoutCacheTest, HolesWhereMemoryIsAskedForAreForgotten) {
  take(1, {hole(0, 100), hole(100, 100), memory(200, 100, 1)});
  cache.forget_holes({150, 100});
  EXPECT_EQ(try_enter(0, 10, false), Entry::kEntered);
  EXPECT_EQ(try_enter(100, 10, false), Entry::kMissing);
  EXPECT_EQ(try_enter(200, 10, false), Entry::kEntered);
}

TEST_F(LayoutCacheTest, AnAnswerFromBeforeTheSessionGrantsNothing) {
  take(1, {memory(0, 100, 1)});
  LayoutPin pin;
  EXPECT_EQ(cache.enter(pin, 0, 10, true, kEpoch + 1), Entry::kMissing) << "all is void";
  cache.take(stateid(2), {memory(0, 100, 2)}, std::nullopt, kEpoch);
  EXPECT_EQ(cache.enter(pin, 0, 10, true, kEpoch + 1), Entry::kMissing);
  EXPECT_FALSE(cache.stateid());
}

TEST_F(LayoutCacheTest, APauseOnlyGrows) {
  const SteadyTime now = steady_now();
  EXPECT_FALSE(cache.paused(now));
  cache.pause_until(now + 10s);
  cache.pause_until(now + 5s);
  EXPECT_TRUE(cache.paused(now + 9s));
  EXPECT_FALSE(cache.paused(now + 10s));
}

// The server had ended the one, and the next came with a LAYOUTGET that the return did not wait for any longer.
TEST_F(LayoutCacheTest, TheAnswerToAReturnLeavesTheNextLayout) {
  for (const auto& left : {std::optional<nfs4::Stateid>(), std::optional(stateid(2))}) {
    cache.drop_all();
    take(1, {memory(0, 100, 1)});
    LayoutCache::Getting getting;
    ASSERT_EQ(begin_get(100, 10, getting), Begin::kGo);
    FileRange range{0, 100};
    ASSERT_TRUE(cache.begin_return(IoMode::kAny, range));
    ASSERT_EQ(cache.start_return(IoMode::kAny, range, steady_now()), stateid(1));
    cache.finish_get(stateid(1, 2), {memory(100, 100, 2)}, std::nullopt, kEpoch);
    cache.drop_refused(stateid(1));
    cache.finish_return(stateid(1), left);
    cache.open_gate(IoMode::kAny, range);
    EXPECT_EQ(cache.stateid(), stateid(1, 2));
    EXPECT_EQ(try_enter(150, 10, true), Entry::kEntered);
  }
}

// --- what is lost

TEST_F(LayoutCacheTest, TheIncarnationMovesWhenLayoutsAreLost) {
  take(1, {memory(0, 100, 1), memory(100, 100, 2)});
  const uint64_t first = cache.incarnation();
  FileRange range{0, 10};
  ASSERT_TRUE(cache.begin_return(IoMode::kAny, range));
  ASSERT_TRUE(cache.start_return(IoMode::kAny, range, steady_now()));
  cache.finish_return(stateid(1), stateid(2));
  cache.open_gate(IoMode::kAny, range);
  EXPECT_EQ(cache.incarnation(), first) << "given back in order";
  cache.drop_grant(7);
  EXPECT_EQ(cache.incarnation(), first) << "not held";
  cache.drop_grant(2);
  EXPECT_NE(cache.incarnation(), first);
  const uint64_t second = cache.incarnation();
  cache.drop_all();
  EXPECT_NE(cache.incarnation(), second) << "the stateid is";
  EXPECT_EQ(lost.all(), (std::vector<nfs4::Stateid>{stateid(2)}));
  const uint64_t third = cache.incarnation();
  cache.drop_all();
  EXPECT_EQ(cache.incarnation(), third) << "there was nothing";
}

TEST_F(LayoutCacheTest, AStateidThatIsNotOursAnyMoreTakesNothing) {
  take(1, {memory(0, 100, 1)});
  cache.drop_all(stateid(1, 9));
  EXPECT_TRUE(cache.holds_anything());
  cache.drop_all(stateid(8));
  EXPECT_FALSE(cache.holds_anything());
}

// --- the size

TEST_F(LayoutCacheTest, TheSizeIsKnownAsFarAsMemoryIsHeld) {
  take(1, {memory(0, 100, 1), hole(100, 100)}, 150);
  EXPECT_EQ(cache.known_size(), 100U);
  take(2, {memory(100, 100, 2)}, 150);
  EXPECT_EQ(cache.known_size(), 150U);
  cache.learn_size(1000, cache.holdings());
  EXPECT_EQ(cache.known_size(), 200U);
  cache.drop_grant(2);
  EXPECT_EQ(cache.known_size(), 100U);
}

TEST_F(LayoutCacheTest, ASizeThatWasAskedForBeforeTheGrantProvesNothing) {
  const uint64_t before = cache.holdings();
  take(1, {memory(0, 100, 1)}, 10);
  cache.learn_size(90, before);
  EXPECT_EQ(cache.known_size(), 10U);
  cache.learn_size(90, cache.holdings());
  EXPECT_EQ(cache.known_size(), 90U);
  cache.learn_size(50, cache.holdings());
  EXPECT_EQ(cache.known_size(), 90U) << "a server that cuts the file takes the layout first";
}

// --- devices

TEST_F(LayoutCacheTest, DevicesOfARangeEachOnce) {
  take(1, {memory(0, 100, 1), memory(100, 100, 2, &other_device), hole(200, 100), memory(300, 100, 3)});
  EXPECT_EQ(cache.devices(), (std::vector<Device*>{&device, &other_device}));
  EXPECT_EQ(cache.devices({100, 200}), (std::vector<Device*>{&other_device}));
  EXPECT_EQ(cache.devices({99, 2}), (std::vector<Device*>{&device, &other_device}));
  EXPECT_TRUE(cache.devices({200, 100}).empty());
}

// The server has ended the one that we hold, and we have not heard of it.
TEST_F(LayoutCacheTest, AnAnswerUnderAnotherStateidEndsWhatWasHeld) {
  take(1, {memory(0, 4096, 1)});
  const uint64_t before = cache.incarnation();
  LayoutCache::Getting getting;
  ASSERT_EQ(begin_get(8192, 4096, getting), Begin::kGo);
  cache.finish_get(stateid(1, 2), {memory(8192, 4096, 2)}, std::nullopt, kEpoch, std::nullopt);
  EXPECT_EQ(try_enter(0, 4096, true), Entry::kMissing);
  EXPECT_EQ(try_enter(8192, 4096, true), Entry::kEntered);
  EXPECT_NE(cache.incarnation(), before);
  EXPECT_EQ(cache.stateid()->other, stateid(1, 2).other);
}

// Nothing is held, and the answer to the return comes behind that of the LAYOUTGET.
TEST_F(LayoutCacheTest, AnAnswerUnderAnotherStateidEndsNothingThatIsBeingReturned) {
  take(1, {memory(0, 4096, 1)});
  FileRange all{0, UINT64_MAX};
  ASSERT_TRUE(cache.begin_return(IoMode::kAny, all));
  ASSERT_TRUE(cache.start_return(IoMode::kAny, all, steady_now()));
  const uint64_t before = cache.incarnation();
  cache.take(stateid(1, 2), {memory(8192, 4096, 2)}, std::nullopt, kEpoch);
  EXPECT_EQ(cache.incarnation(), before);
  EXPECT_EQ(try_enter(8192, 4096, true), Entry::kClosed);
}

}  // namespace
}  // namespace pnfsrdma::initiator
