// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/write_verifiers.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace pnfsrdma::mds {
namespace {

// Bricks whose verifiers are counters, and how often one was seen to change.
struct FakeBricks {
  std::map<BrickNumber, uint8_t> now;
  uint64_t changes = 0;

  static BrickVerifier verifier(uint8_t count) { return {std::byte{count}}; }
  WriteVerifiers::Bricks at(std::initializer_list<BrickNumber> numbers) {
    WriteVerifiers::Bricks bricks;
    for (const BrickNumber number : numbers) bricks[number] = verifier(now[number]);
    return bricks;
  }
  void lose(BrickNumber number) {
    ++now[number];
    ++changes;
  }
  WriteVerifiers::Current current() {
    return [this](BrickNumber number) -> std::optional<BrickVerifier> {
      const auto found = now.find(number);
      if (found == now.end()) return std::nullopt;
      return verifier(found->second);
    };
  }
};

TEST(WriteVerifiers, AFileOnASecondBrickKeepsItsVerifier) {
  FakeBricks bricks;
  WriteVerifiers verifiers(7);
  const auto first = verifiers.wrote(1, {0, 1}, bricks.at({1}), bricks.changes, bricks.current());
  EXPECT_EQ(verifiers.wrote(1, {0, 1}, bricks.at({2}), bricks.changes, bricks.current()), first);
  EXPECT_EQ(verifiers.committed(1, verifiers.mark(1), true, bricks.changes, bricks.current()), first);
  EXPECT_EQ(verifiers.files(), 0u);
}

TEST(WriteVerifiers, OfTwoErasAreDifferent) {
  FakeBricks bricks;
  WriteVerifiers one(7), two(8);
  EXPECT_NE(one.wrote(1, {0, 1}, {}, 0, bricks.current()), two.wrote(1, {0, 1}, {}, 0, bricks.current()));
}

TEST(WriteVerifiers, AWriteDuringTheFlushIsNotForgottenWithIt) {
  FakeBricks bricks;
  WriteVerifiers verifiers(7);
  verifiers.wrote(1, {0, 1}, bricks.at({1}), bricks.changes, bricks.current());
  const uint64_t mark = verifiers.mark(1);
  const auto second = verifiers.wrote(1, {0, 1}, bricks.at({1}), bricks.changes, bricks.current());
  verifiers.committed(1, mark, true, bricks.changes, bricks.current());
  bricks.lose(1);
  EXPECT_NE(verifiers.committed(1, verifiers.mark(1), true, bricks.changes, bricks.current()), second);
}

TEST(WriteVerifiers, WhatIsNotCommittedIsKnownByItsRanges) {
  FakeBricks bricks;
  WriteVerifiers verifiers(7);
  const auto write = [&](uint64_t begin, uint64_t end) {
    verifiers.wrote(1, {begin, end}, bricks.at({1}), bricks.changes, bricks.current());
  };
  write(1000, 1010);
  write(0, 10);
  EXPECT_EQ(verifiers.uncommitted(1), (std::vector<ByteRange>{{0, 10}, {1000, 1010}}));
  write(10, 20);
  EXPECT_EQ(verifiers.uncommitted(1), (std::vector<ByteRange>{{0, 20}, {1000, 1010}}));
  verifiers.committed(1, verifiers.mark(1), true, bricks.changes, bricks.current());
  EXPECT_TRUE(verifiers.uncommitted(1).empty());
}

TEST(WriteVerifiers, OfTooManyRangesThoseAreOneThatAreNearest) {
  FakeBricks bricks;
  WriteVerifiers verifiers(7);
  std::vector<ByteRange> expected;
  for (uint64_t i = 0; i <= WriteVerifiers::kRangesMax; ++i) {
    // The last two are the nearest.
    const uint64_t begin = i < WriteVerifiers::kRangesMax ? i * 1000 : (i - 1) * 1000 + 100;
    expected.push_back({begin, begin + 10});
    verifiers.wrote(1, expected.back(), bricks.at({1}), bricks.changes, bricks.current());
  }
  expected.pop_back();
  expected.back().end = expected.back().begin + 110;
  EXPECT_EQ(verifiers.uncommitted(1), expected);
}

TEST(WriteVerifiers, WhatIsForgottenForWantOfRoomIsInDoubtAfterAnyLoss) {
  FakeBricks bricks;
  WriteVerifiers verifiers(7, 0, 2);
  const auto first = verifiers.wrote(1, {0, 1}, bricks.at({1}), bricks.changes, bricks.current());
  verifiers.wrote(2, {0, 1}, bricks.at({2}), bricks.changes, bricks.current());
  verifiers.wrote(3, {0, 1}, bricks.at({2}), bricks.changes, bricks.current());
  EXPECT_EQ(verifiers.files(), 2u);
  EXPECT_EQ(verifiers.committed(1, verifiers.mark(1), true, bricks.changes, bricks.current()), first);
  bricks.lose(1);
  EXPECT_NE(verifiers.committed(1, verifiers.mark(1), true, bricks.changes, bricks.current()), first);
}

TEST(WriteVerifiers, OfAFileOlderThanTheProcessAreInDoubtAfterAnyLoss) {
  FakeBricks bricks;
  WriteVerifiers earlier(7, 1), later(7, 100);
  const auto first = earlier.wrote(1, {0, 1}, bricks.at({1}), bricks.changes, bricks.current());
  EXPECT_EQ(later.wrote(1, {0, 1}, bricks.at({2}), bricks.changes, bricks.current()), first);
  bricks.lose(1);
  EXPECT_NE(later.committed(1, later.mark(1), true, bricks.changes, bricks.current()), first);
}

// Against a list of all writes: a COMMIT never says the verifier of a write that is lost; and unless files
// were forgotten, a loss elsewhere never changes it.
TEST(WriteVerifiers, NeverConfirmWhatIsLost) {
  struct Written {
    nfs4::Verifier verifier;
    bool lost = false;
    std::vector<BrickNumber> bricks;
  };
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    FakeBricks bricks;
    for (BrickNumber number = 1; number <= 3; ++number) bricks.now[number] = 0;
    const bool crowded = seed % 2 == 0;
    WriteVerifiers verifiers(seed, 0, crowded ? 2 : 100);
    std::map<uint64_t, std::vector<Written>> files;
    for (int step = 0; step < 500; ++step) {
      const uint64_t inode = 1 + random() % 4;
      const BrickNumber number = 1 + random() % 3;
      std::vector<Written>& writes = files[inode];
      switch (random() % 4) {
        case 0:
        case 1:
          writes.push_back(
              {verifiers.wrote(inode, {0, 1}, bricks.at({number}), bricks.changes, bricks.current()),
               false,
               {number}});
          break;
        case 2: {
          const bool whole = random() % 2 == 0;
          const auto answer =
              verifiers.committed(inode, verifiers.mark(inode), whole, bricks.changes, bricks.current());
          bool any_lost = false;
          for (const Written& write : writes) {
            any_lost = any_lost || write.lost;
            if (!write.lost) continue;
            ASSERT_NE(write.verifier, answer) << "seed " << seed << " step " << step;
          }
          if (!any_lost && !crowded) {
            for (const Written& write : writes) ASSERT_EQ(write.verifier, answer) << "seed " << seed;
          }
          // The client compares all it has at once, and sends again what is in doubt.
          if (whole) writes.clear();
          break;
        }
        case 3:
          if (random() % 4 != 0) break;
          bricks.lose(number);
          for (auto& [file, all] : files) {
            for (Written& write : all) write.lost = write.lost || write.bricks.front() == number;
          }
          break;
      }
    }
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
