// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/partition_label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "server/brickd/pool.h"
#include "server/brickd/superblock.h"
#include "shared/pmem/page_persistence.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::brick {
namespace {

using testing::HasSubstr;

constexpr uint64_t kUnit = format::kLabelRegion;

class PartitionLabelTest : public testing::Test {
 protected:
  PartitionLabelTest() { EXPECT_TRUE(PartitionLabel::write_new(region_, persistence_, false, random_)); }

  PartitionLabel open(uint64_t size = 10 * kUnit) {
    auto label = PartitionLabel::open(region_, persistence_, size);
    EXPECT_TRUE(label) << label.error().to_string();
    return *std::move(label);
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const PartitionPlace& place : open().partitions()) all.push_back(place.name);
    return all;
  }

  Bytes bytes_ = Bytes(format::kLabelRegion);
  MutableByteSpan region_{bytes_};
  pmem::UnflushedPersistence persistence_{Durability::kVolatile};
  SeededRandom random_{1};
};

TEST_F(PartitionLabelTest, PartitionsAreFoundAgain) {
  PartitionLabel label = open();
  EXPECT_TRUE(label.partitions().empty());
  ASSERT_TRUE(label.add({"tank", kUnit, 3 * kUnit}));
  ASSERT_TRUE(label.add({"pond", 4 * kUnit, kUnit}));
  EXPECT_EQ(label.add({"tank", 6 * kUnit, kUnit}).error().number(), EEXIST);
  EXPECT_THAT(names(), testing::ElementsAre("tank", "pond"));
  EXPECT_EQ(open().find("pond")->offset, 4 * kUnit);
  ASSERT_TRUE(label.remove("tank"));
  EXPECT_EQ(label.remove("tank").error().number(), ENOENT);
  EXPECT_THAT(names(), testing::ElementsAre("pond"));
}

TEST_F(PartitionLabelTest, TheFirstGapThatIsLongEnoughIsTaken) {
  PartitionLabel label = open();
  EXPECT_EQ(label.largest_gap(kUnit), 9 * kUnit);
  ASSERT_TRUE(label.add({"a", 2 * kUnit, 2 * kUnit}));
  ASSERT_TRUE(label.add({"b", 7 * kUnit, kUnit}));
  EXPECT_EQ(label.gap(kUnit, kUnit).value_or(0), kUnit);
  EXPECT_EQ(label.gap(2 * kUnit, kUnit).value_or(0), 4 * kUnit);
  EXPECT_EQ(label.gap(2 * kUnit, 2 * kUnit).value_or(0), 4 * kUnit);
  EXPECT_EQ(label.gap(4 * kUnit, kUnit).error().number(), ENOSPC);
  EXPECT_THAT(label.gap(4 * kUnit, kUnit).error().to_string(), HasSubstr("the largest piece has 6 MiB"));
}

TEST_F(PartitionLabelTest, ThereIsRoomForThirtyOne) {
  PartitionLabel label = open(100 * kUnit);
  for (uint64_t i = 1; i <= format::kPartitionsMax; ++i)
    ASSERT_TRUE(label.add({"p" + std::to_string(i), i * kUnit, kUnit}));
  EXPECT_EQ(label.add({"more", 50 * kUnit, kUnit}).error().number(), ENOSPC);
}

// At whichever byte a change is cut short, the label is as before or as after.
TEST_F(PartitionLabelTest, AChangeThatIsCutShortIsMadeOrNot) {
  ASSERT_TRUE(open().add({"tank", kUnit, kUnit}));
  const Bytes before = bytes_;
  ASSERT_TRUE(open().add({"pond", 2 * kUnit, kUnit}));
  const Bytes after = bytes_;
  size_t made = 0;
  for (size_t cut = 0; cut <= format::kTableOffset; cut += 8) {
    bytes_ = before;
    std::memcpy(bytes_.data(), after.data(), cut);
    const size_t count = names().size();
    ASSERT_TRUE(count == 1 || count == 2) << cut;
    made += count == 2 ? 1 : 0;
  }
  EXPECT_GT(made, 0u);
}

TEST_F(PartitionLabelTest, WhatIsDamagedIsSaid) {
  ASSERT_TRUE(open().add({"tank", kUnit, kUnit}));
  bytes_[200] ^= std::byte{1};
  EXPECT_EQ(open().partitions().size(), 1u) << "the other copy says the same";
  bytes_[format::kSuperblockStride + 200] ^= std::byte{1};
  EXPECT_EQ(PartitionLabel::open(region_, persistence_, 10 * kUnit).error().number(), EUCLEAN);
}

TEST_F(PartitionLabelTest, APartitionBehindTheEndOfTheFileIsSaid) {
  ASSERT_TRUE(open().add({"tank", 8 * kUnit, 2 * kUnit}));
  const auto cut = PartitionLabel::open(region_, persistence_, 9 * kUnit);
  EXPECT_EQ(cut.error().number(), EUCLEAN);
  EXPECT_THAT(cut.error().to_string(), HasSubstr("truncated"));
}

TEST_F(PartitionLabelTest, ALabelIsNoPoolAndAPoolNoLabel) {
  EXPECT_TRUE(Superblock::looks_formatted(region_));
  EXPECT_EQ(PartitionLabel::write_new(region_, persistence_, false, random_).error().number(), EEXIST);
  const auto pool = Superblock::open(region_, persistence_);
  EXPECT_EQ(pool.error().number(), EINVAL);
  EXPECT_THAT(pool.error().to_string(), HasSubstr("pool.partition"));
  Bytes plain(size_t{16} << 20);
  ASSERT_TRUE(Pool::format(plain, persistence_, {}, random_));
  EXPECT_EQ(
      PartitionLabel::open(MutableByteSpan(plain).first(kUnit), persistence_, plain.size()).error().number(),
      EINVAL);
}

// Programs of version 1 look at the version of whatever has the magic, and refuse it before they look at anything else.
TEST_F(PartitionLabelTest, AProgramOfBeforeSeesAPoolOfANewerVersion) {
  for (const size_t at : {size_t{0}, size_t{format::kSuperblockStride}}) {
    EXPECT_EQ(std::memcmp(bytes_.data() + at, format::kMagic.data(), format::kMagic.size()), 0);
    uint32_t version = 0;
    std::memcpy(&version, bytes_.data() + at + 8, sizeof version);
    EXPECT_EQ(version, 2u);
  }
}

TEST(OwnedPool, HasItsOwnersSecretAndAPoolOfAnMdsIsOfVersionOne) {
  Bytes bytes(size_t{16} << 20);
  pmem::UnflushedPersistence persistence(Durability::kVolatile);
  SeededRandom random(1);
  format::Ownership ownership{.quota_blocks = 3};
  std::memcpy(ownership.name.data(), "tank", 4);
  ownership.secret.fill(std::byte{7});
  ASSERT_TRUE(Pool::format(bytes, persistence, {.ownership = ownership}, random));
  auto owned = Superblock::open(bytes, persistence);
  ASSERT_TRUE(owned);
  EXPECT_TRUE(owned->has_owner_by_key());
  EXPECT_EQ(owned->content().version, 2u);
  EXPECT_EQ(owned->content().ownership.secret, ownership.secret);
  EXPECT_EQ(owned->content().ownership.quota_blocks, 3u);
  ownership.secret.fill(std::byte{8});
  for (int copy = 0; copy < 2; ++copy) ASSERT_TRUE(persistence.persist(owned->set_ownership(ownership)));
  const Bytes old_secret(32, std::byte{7});
  EXPECT_EQ(std::search(bytes.begin(), bytes.begin() + 8192, old_secret.begin(), old_secret.end()),
            bytes.begin() + 8192);

  ASSERT_TRUE(Pool::format(bytes, persistence, {.force = true}, random));
  const auto plain = Superblock::open(bytes, persistence);
  EXPECT_FALSE(plain->has_owner_by_key());
  EXPECT_EQ(plain->content().version, 1u);
}

}  // namespace
}  // namespace pnfsrdma::brick
