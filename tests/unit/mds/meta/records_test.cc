// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/records.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "server/mds/meta/boot_record.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using StateRecords = OverBothEngines;

TEST_P(StateRecords, AreKeptByKindAndKey) {
  Records records(*store_);
  ASSERT_TRUE(records.put(RecordKind::kClient, "1", "one"));
  ASSERT_TRUE(records.put(RecordKind::kClient, "2", "two"));
  ASSERT_TRUE(records.put(RecordKind::kOpen, "1", "open"));
  ASSERT_TRUE(records.erase(RecordKind::kClient, "2"));
  store_.reopen();
  std::vector<std::string> found;
  ASSERT_TRUE(Records(*store_).scan(RecordKind::kClient, [&](std::string_view key, std::string_view value) {
    found.push_back(std::string(key) + "=" + std::string(value));
    return true;
  }));
  EXPECT_EQ(found, std::vector<std::string>{"1=one"});
  EXPECT_EQ(Records(*store_).get(RecordKind::kOpen, "1").value(), "open");
}

TEST_P(StateRecords, AreForgottenByKind) {
  Records records(*store_);
  ASSERT_TRUE(records.put(RecordKind::kClient, "1", "one"));
  ASSERT_TRUE(records.put(RecordKind::kOpen, "1", "open"));
  ASSERT_TRUE(records.clear(RecordKind::kClient));
  EXPECT_EQ(records.get(RecordKind::kClient, "1").value(), std::nullopt);
  EXPECT_EQ(records.get(RecordKind::kOpen, "1").value(), "open");
  EXPECT_TRUE(records.clear(RecordKind::kLock));
}

TEST_P(StateRecords, AreNoReasonForRepliesToWait) {
  const Sequence before = store_->last_namespace_sequence();
  ASSERT_TRUE(Records(*store_).put(RecordKind::kClient, "1", "one"));
  EXPECT_EQ(store_->last_namespace_sequence(), before);
}

TEST_P(StateRecords, EveryStartIsCountedAndDurableAtOnce) {
  SeededRandom random(1);
  const BootRecord first = open_boot(*store_, random, "host-boot-a").value();
  EXPECT_EQ(first.boot_count, 1u);
  EXPECT_FALSE(first.same_host_boot);
  EXPECT_FALSE(first.clean_shutdown);
  store_.crash(random);
  const BootRecord second = open_boot(*store_, random, "host-boot-a").value();
  EXPECT_EQ(second.boot_count, 2u);
  EXPECT_GT(second.epoch, first.epoch);
  EXPECT_EQ(second.instance, first.instance);
  EXPECT_TRUE(second.same_host_boot);
  ASSERT_TRUE(close_boot(*store_));
  store_.reopen();
  const BootRecord third = open_boot(*store_, random, "host-boot-b").value();
  EXPECT_EQ(third.boot_count, 3u);
  EXPECT_FALSE(third.same_host_boot);
  EXPECT_EQ(second.era, first.era);
  EXPECT_NE(third.era, first.era);
  EXPECT_TRUE(third.clean_shutdown);
}

// A start that had clients for a moment only may not have told all of them its shorter lease.
TEST_P(StateRecords, TheLongestLeaseAClientMayKnowIsKeptUntilGraceIsOver) {
  SeededRandom random(1);
  using std::chrono::seconds;
  EXPECT_EQ(open_boot(*store_, random, "a", seconds(90)).value().lease_before, Milliseconds(0));
  store_.crash(random);
  EXPECT_EQ(open_boot(*store_, random, "b", seconds(30)).value().lease_before, seconds(90));
  store_.crash(random);
  EXPECT_EQ(open_boot(*store_, random, "c", seconds(30)).value().lease_before, seconds(90));
  ASSERT_TRUE(forget_earlier_leases(*store_, seconds(30)));
  store_.reopen();
  EXPECT_EQ(open_boot(*store_, random, "d", seconds(60)).value().lease_before, seconds(30));
}

PNFSRDMA_OVER_BOTH_ENGINES(StateRecords);

TEST(HostBootId, IsReadFromTheKernel) {
  const auto id = read_host_boot_id("/nonexistent");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->size(), 36u);
}

TEST(HostBootId, IsAnotherOneAfterEachFailedSyncAndStaysSo) {
  std::string directory = ::testing::TempDir() + "boot-id-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  SeededRandom random(5);
  std::set<std::string> seen{read_host_boot_id(directory).value()};
  for (int i = 0; i < 3; ++i) {
    note_failed_sync(directory, random);
    const std::string id = read_host_boot_id(directory).value();
    EXPECT_LE(id.size(), 64u);
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_EQ(read_host_boot_id(directory).value(), id);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace pnfsrdma::mds
