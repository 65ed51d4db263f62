// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/pmem/shadow_persistence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::pmem {
namespace {

class Shadow : public testing::Test {
 protected:
  static constexpr size_t kLines = 4;
  alignas(kLine) std::array<std::byte, kLines * kLine> memory{};
  ShadowPersistence shadow{memory};

  MutableByteSpan line(size_t number) { return MutableByteSpan(memory).subspan(number * kLine, kLine); }
  void write(size_t number, char value) {
    const Bytes bytes(kLine, static_cast<std::byte>(value));
    shadow.copy(line(number).data(), bytes);
  }
  // The values that line `number` has after many power cuts.
  std::set<char> seen(size_t number, ShadowPersistence::Tear tear) {
    std::set<char> values;
    for (uint64_t seed = 0; seed < 64; ++seed) {
      SeededRandom random(seed);
      const Bytes image = shadow.crash(random, tear);
      const char first = static_cast<char>(image[number * kLine]);
      const bool whole = std::all_of(image.begin() + number * kLine, image.begin() + (number + 1) * kLine,
                                     [&](std::byte byte) { return static_cast<char>(byte) == first; });
      values.insert(whole ? first : 'T');
    }
    return values;
  }
};

TEST_F(Shadow, StoreWithoutFlushMayBeThereOrNot) {
  write(1, 'a');
  EXPECT_EQ(seen(1, ShadowPersistence::Tear::kWholeLines), (std::set<char>{'\0', 'a'}));
}

TEST_F(Shadow, FlushWithoutFencePromisesNothing) {
  write(1, 'a');
  ASSERT_TRUE(shadow.flush(line(1)));
  EXPECT_EQ(seen(1, ShadowPersistence::Tear::kWholeLines), (std::set<char>{'\0', 'a'}));
}

TEST_F(Shadow, FlushedAndFencedIsThere) {
  write(1, 'a');
  ASSERT_TRUE(shadow.persist(line(1)));
  EXPECT_EQ(seen(1, ShadowPersistence::Tear::kWords), (std::set<char>{'a'}));
}

TEST_F(Shadow, StoreBehindTheFlushIsNotCovered) {
  write(1, 'a');
  ASSERT_TRUE(shadow.flush(line(1)));
  write(1, 'b');
  ASSERT_TRUE(shadow.fence());
  EXPECT_EQ(seen(1, ShadowPersistence::Tear::kWholeLines), (std::set<char>{'a', 'b'}));
}

TEST_F(Shadow, TornLinesMixOldAndNew) {
  write(1, 'a');
  EXPECT_TRUE(seen(1, ShadowPersistence::Tear::kWords).contains('T'));
}

TEST_F(Shadow, LinesAreIndependent) {
  write(1, 'a');
  write(2, 'b');
  ASSERT_TRUE(shadow.persist(line(2)));
  EXPECT_EQ(seen(1, ShadowPersistence::Tear::kWholeLines), (std::set<char>{'\0', 'a'}));
  EXPECT_EQ(seen(2, ShadowPersistence::Tear::kWholeLines), (std::set<char>{'b'}));
}

TEST_F(Shadow, SkippedFlushClaimsToHaveHappened) {
  shadow.skip_flush(1);
  write(1, 'a');
  ASSERT_TRUE(shadow.persist(line(1)));
  EXPECT_TRUE(seen(1, ShadowPersistence::Tear::kWholeLines).contains('\0'));
}

}  // namespace
}  // namespace pnfsrdma::pmem
