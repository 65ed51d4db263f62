// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/superblock.h"

#include <gtest/gtest.h>

#include <cstring>

#include "server/brickd/check_command.h"
#include "server/brickd/pool.h"
#include "shared/pmem/page_persistence.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::brick {
namespace {

constexpr uint64_t kSize = 4096;

class PoolFormat : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(format(false)); }
  Result<> format(bool force) {
    return Pool::format(memory, persistence, {.block_size = kSize, .force = force, .known_zero = true},
                        random);
  }
  int open_error() {
    const auto superblock = Superblock::open(memory, persistence);
    return superblock ? 0 : superblock.error().number();
  }
  format::Superblock* copy(unsigned number) {
    return reinterpret_cast<format::Superblock*>(memory.data() + number * format::kSuperblockStride);
  }

  SeededRandom random{1};
  Bytes memory = Bytes(16 * kSize);
  pmem::UnflushedPersistence persistence{Durability::kVolatile};
};

TEST_F(PoolFormat, FormattedPoolIsNotFormattedAgainWithoutForce) {
  const auto refused = format(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EEXIST);
  EXPECT_TRUE(format(true));
  EXPECT_EQ(open_error(), 0);
}

TEST_F(PoolFormat, TooSmallIsAnError) {
  const auto refused = Pool::format(MutableByteSpan(memory).first(2 * kSize), persistence,
                                    {.block_size = kSize, .force = true}, random);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOSPC);
}

TEST_F(PoolFormat, ClaimGoesToTheOtherCopySoThatATornOneLeavesTheOld) {
  auto superblock = Superblock::open(memory, persistence);
  ASSERT_TRUE(superblock);
  superblock->set_claim(5, "first");
  const ByteSpan touched = superblock->set_claim(6, "second");
  const_cast<std::byte*>(touched.data())[80] ^= std::byte{1};
  const auto again = Superblock::open(memory, persistence);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->epoch(), 5u);
  EXPECT_EQ(again->owner(), "first");
  EXPECT_EQ(again->damaged_copies(), 1u);
}

TEST_F(PoolFormat, NewerVersionsAndStrangersAreRefused) {
  copy(1)->version = format::kVersion + 1;
  EXPECT_EQ(open_error(), EPROTO);
  std::memset(memory.data(), 0, format::kTableOffset);
  EXPECT_EQ(open_error(), EINVAL);
}

TEST_F(PoolFormat, DamagedAndCutPoolsAreRefused) {
  EXPECT_EQ(Superblock::open(MutableByteSpan(memory).first(15 * kSize), persistence).error().number(),
            EUCLEAN);
  copy(0)->epoch ^= 1;
  copy(1)->epoch ^= 1;
  EXPECT_EQ(open_error(), EUCLEAN);
}

TEST_F(PoolFormat, BlocksFillThePool) {
  const auto superblock = Superblock::open(memory, persistence);
  EXPECT_EQ(superblock->content().block_count, 13u);  // two superblocks and the table take three pages
  EXPECT_EQ(superblock->content().data_offset, 3 * kSize);
  EXPECT_EQ(format::blocks_that_fit(0, kSize), 0u);
  EXPECT_EQ(format::blocks_that_fit(4 << 20, 2 << 20), 1u);
}

TEST_F(PoolFormat, CheckFindsWhatIsWrong) {
  EXPECT_TRUE(check_pool(memory)->problems.empty());
  memory[3 * kSize + 100] = std::byte{1};                        // a clean block that is not zero
  memory[format::kTableOffset + 5 * 64 + 16] ^= std::byte{0x1};  // an entry
  const auto report = check_pool(memory);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->problems.size(), 2u);
  EXPECT_EQ(report->clean, 12u);
}

}  // namespace
}  // namespace pnfsrdma::brick
