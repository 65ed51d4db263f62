// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/range_locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::nfs4 {

void PrintTo(const LockRange& range, std::ostream* out) {
  *out << (range.exclusive ? "write " : "read ") << range.first << "-" << range.last;
}

namespace {

using Ranges = std::vector<LockRange>;
constexpr uint64_t kEnd = UINT64_MAX;

RangeLocks locked(const Ranges& ranges) {
  RangeLocks locks;
  for (const LockRange& range : ranges) locks.lock(range);
  return locks;
}

TEST(LockRangeTest, IsMadeOfOffsetAndLength) {
  EXPECT_EQ(lock_range(10, 5, true), (LockRange{10, 14, true}));
  EXPECT_EQ(lock_range(10, kEnd, false), (LockRange{10, kEnd, false}));
  EXPECT_EQ(lock_range(0, kEnd, false), (LockRange{0, kEnd, false}));
  EXPECT_EQ(lock_range(kEnd, kEnd, false), (LockRange{kEnd, kEnd, false}));
  EXPECT_EQ(lock_range(1, kEnd - 1, false), (LockRange{1, kEnd - 1, false}));
}

TEST(LockRangeTest, NothingAndTooMuchAreNoRange) {
  EXPECT_FALSE(lock_range(10, 0, true));
  EXPECT_FALSE(lock_range(2, kEnd - 1, true));
  EXPECT_FALSE(lock_range(kEnd, 1, true));
}

TEST(LockRangeTest, LengthIsAllOnesToTheEnd) {
  EXPECT_EQ(length_of({10, 14, true}), 5U);
  EXPECT_EQ(length_of({10, kEnd, true}), kEnd);
  EXPECT_EQ(length_of({0, kEnd, true}), kEnd);
}

TEST(RangeLocksTest, NeighboursOfOneModeAreOneRange) {
  EXPECT_EQ(locked({{0, 9, true}, {20, 29, true}, {10, 19, true}}).all(), (Ranges{{0, 29, true}}));
  EXPECT_EQ(locked({{0, 9, true}, {10, 19, false}}).all(), (Ranges{{0, 9, true}, {10, 19, false}}));
  EXPECT_EQ(locked({{kEnd - 1, kEnd, true}, {0, kEnd - 2, true}}).all(), (Ranges{{0, kEnd, true}}));
}

TEST(RangeLocksTest, NewModeSplitsTheOldOne) {
  EXPECT_EQ(locked({{0, 99, false}, {10, 19, true}}).all(),
            (Ranges{{0, 9, false}, {10, 19, true}, {20, 99, false}}));
  EXPECT_EQ(locked({{0, 99, false}, {10, 19, true}, {0, 99, false}}).all(), (Ranges{{0, 99, false}}));
}

TEST(RangeLocksTest, UnlockingLeavesBothSides) {
  RangeLocks locks = locked({{0, kEnd, true}});
  locks.unlock({10, 19, false});
  EXPECT_EQ(locks.all(), (Ranges{{0, 9, true}, {20, kEnd, true}}));
  locks.unlock({0, kEnd, false});
  EXPECT_TRUE(locks.empty());
  locks.unlock({5, 5, false});
  EXPECT_TRUE(locks.empty());
}

TEST(RangeLocksTest, OnlyReadersShareBytes) {
  const RangeLocks reading = locked({{10, 19, false}});
  EXPECT_EQ(reading.conflict({0, kEnd, false}), nullptr);
  EXPECT_NE(reading.conflict({19, 19, true}), nullptr);
  EXPECT_EQ(reading.conflict({20, kEnd, true}), nullptr);
  EXPECT_EQ(reading.conflict({0, 9, true}), nullptr);
  const RangeLocks writing = locked({{0, 4, true}, {10, 19, true}});
  EXPECT_EQ(*writing.conflict({5, 10, false}), (LockRange{10, 19, true}));
}

// Against one mode per byte, on a file of 32 bytes.
TEST(RangeLocksTest, IsWhatAModePerByteWouldBe) {
  constexpr uint64_t kBytes = 32;
  SeededRandom random(3);
  RangeLocks locks;
  std::array<char, kBytes> model;
  model.fill('-');
  for (int step = 0; step < 20000; ++step) {
    uint64_t first = random.next_u64() % kBytes;
    uint64_t last = random.next_u64() % kBytes;
    if (first > last) std::swap(first, last);
    const bool exclusive = random.next_u64() % 2 == 0;
    const bool unlock = random.next_u64() % 3 == 0;
    std::fill(model.begin() + first, model.begin() + last + 1, unlock ? '-' : exclusive ? 'w' : 'r');
    if (unlock) {
      locks.unlock({first, last, exclusive});
    } else {
      locks.lock({first, last, exclusive});
    }

    Ranges expected;
    for (uint64_t at = 0; at < kBytes; ++at) {
      if (model[at] == '-') continue;
      if (at > 0 && model[at - 1] == model[at]) {
        expected.back().last = at;
      } else {
        expected.push_back({at, at, model[at] == 'w'});
      }
    }
    ASSERT_EQ(locks.all(), expected) << "step " << step;
  }
}

}  // namespace
}  // namespace pnfsrdma::nfs4
