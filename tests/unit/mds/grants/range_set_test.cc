// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/range_set.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

TEST(RangeSet, JoinsWhatTouchesAndCutsWhatIsRemoved) {
  RangeSet set;
  set.add({0, 10});
  set.add({20, 30});
  set.add({10, 20});
  EXPECT_TRUE(set.contains({0, 30}));
  set.remove({5, 25});
  EXPECT_EQ(set.all(), (std::vector<ByteRange>{{0, 5}, {25, 30}}));
  EXPECT_TRUE(set.overlaps({4, 6}));
  EXPECT_FALSE(set.overlaps({5, 25}));
  EXPECT_FALSE(set.contains({0, 6}));
}

TEST(RangeSet, AgreesWithAMapOfBytes) {
  RangeSet set;
  std::vector<bool> bytes(64);
  uint64_t seed = 7;
  for (int round = 0; round < 2000; ++round) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const ByteRange range{(seed >> 20) % 64, (seed >> 20) % 64 + (seed >> 40) % 9};
    const ByteRange cut{range.begin, std::min<uint64_t>(range.end, 64)};
    const bool add = (seed >> 60) % 2 == 0;
    add ? set.add(cut) : set.remove(cut);
    for (uint64_t i = cut.begin; i < cut.end; ++i) bytes[i] = add;
    for (uint64_t i = 0; i < 64; ++i) ASSERT_EQ(set.contains({i, i + 1}), bytes[i]) << round;
  }
}

TEST(RangeSet, TellsItsHullAndItsFirstMembers) {
  RangeSet set;
  EXPECT_EQ(set.hull(), ByteRange{});
  for (const uint64_t begin : {50, 10, 30}) set.add({begin, begin + 5});
  EXPECT_EQ(set.hull(), (ByteRange{10, 55}));
  EXPECT_EQ(set.within({12, 100}, 2), (std::vector<ByteRange>{{12, 15}, {30, 35}}));
}

TEST(RangeSet, ALengthPastTheEndReachesToTheEnd) {
  EXPECT_EQ(range_of(10, UINT64_MAX), (ByteRange{10, kEndOfFile}));
  EXPECT_EQ(range_of(10, 5), (ByteRange{10, 15}));
}

}  // namespace
}  // namespace pnfsrdma::mds
