// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disk: power cuts while one is made, damage, and how many are open.
#include "server/mds/meta/checkpoints.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "shared/base/sync.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

class OnDisk : public ::testing::Test {
 protected:
  void open() {
    store_ = RocksdbStore::open(loop_, {.path = path(), .env = files_.env()}, [](const Error&) {}).value();
  }
  std::string path() const { return directory_.path() + "/store"; }
  std::string copy(SnapshotNumber number) const { return path() + "/snapshots/" + std::to_string(number); }
  void start() { names_ = Namespace::open(*store_, clock_, ++boots_).value(); }
  void stop() {
    names_.reset();
    store_.reset();
  }
  template <typename Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) loop_.run_once(Milliseconds(5));
    return condition();
  }
  Result<> checkpoint(SnapshotNumber number) {
    std::optional<Result<>> outcome;
    store_->checkpoint(number, [&](Result<> made) { outcome = std::move(made); });
    EXPECT_TRUE(run_until([&] { return outcome.has_value(); }));
    return *outcome;
  }
  Result<> take(std::string_view name) {
    TRY_ASSIGN(const SnapshotNumber number, names_->snapshots().begin(name, {}));
    TRY(checkpoint(number));
    TRY(names_->snapshots().set_state(number, SnapshotState::kReady));
    return store_->sync();
  }
  size_t entries(InodeId directory) {
    const auto page = names_->read_directory(directory, 0, 100);
    return page ? page->entries.size() : SIZE_MAX;
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  TemporaryDirectory directory_;
  CrashFileSystem files_;
  uint64_t boots_ = 0;
  std::unique_ptr<KeyValueStore> store_;
  std::unique_ptr<Namespace> names_;
};

// There is a whole one that reads as it must, or none; and nothing of the live tree is lost.
TEST_F(OnDisk, APowerCutAtAnyEvent) {
  SeededRandom random(7);
  open();
  start();
  size_t live = 0;
  size_t ready = 0;
  bool whole = false;
  for (uint64_t event = 0; !whole && !HasFailure(); ++event) {
    SCOPED_TRACE(fmt::format("event {}", event));
    ASSERT_LT(event, 500U);
    ASSERT_TRUE(names_->create(kRootInode, fmt::format("file {}", event), {}));
    ASSERT_TRUE(store_->sync());
    ++live;
    files_.power_off_after(event);
    const bool taken = take(fmt::format("at {}", event)).has_value();
    whole = taken && !files_.is_off();
    files_.power_off();
    stop();
    ASSERT_TRUE(files_.lose_unsynced(&random));
    open();
    start();
    EXPECT_EQ(entries(kRootInode), live);
    const Snapshot* snapshot = names_->snapshots().find(fmt::format("at {}", event));
    EXPECT_TRUE(!taken || (snapshot != nullptr && snapshot->is_ready()));
    if (snapshot != nullptr && snapshot->is_ready()) {
      ++ready;
      EXPECT_EQ(entries(inode_in(snapshot->number, kRootInode)), live);
    } else if (snapshot != nullptr) {
      EXPECT_FALSE(std::filesystem::exists(copy(snapshot->number)));
      ASSERT_TRUE(names_->snapshots().erase(snapshot->number));
      names_->snapshots().forget(snapshot->number);
    }
    size_t copies = 0;
    std::error_code none;
    for (const auto& one : std::filesystem::directory_iterator(path() + "/snapshots", none))
      copies += one.is_directory() ? 1 : 0;
    EXPECT_EQ(copies, ready);
  }
  EXPECT_TRUE(whole);
  const auto report = check_namespace(*store_).value();
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
}

TEST_F(OnDisk, AShutdownDoesNotWaitForAnAnswer) {
  open();
  start();
  ASSERT_TRUE(names_->create(kRootInode, "file", {}));
  const SnapshotNumber number = names_->snapshots().begin("being made", {}).value();
  bool told = false;
  store_->checkpoint(number, [&](const Result<>&) { told = true; });
  EXPECT_EQ(store_->commit(Batch(), CommitKind::kNamespace).error().number(), EAGAIN);
  store_->end_checkpoints();
  ASSERT_TRUE(store_->commit(Batch(), CommitKind::kNamespace));
  ASSERT_TRUE(store_->close());
  loop_.run_once(Milliseconds(50));
  EXPECT_FALSE(told);
}

TEST_F(OnDisk, OneThatCannotBeMadeLeavesNothing) {
  open();
  start();
  ASSERT_TRUE(names_->create(kRootInode, "file", {}));
  // In the way of the directory.
  std::ofstream(path() + "/snapshots") << "x";
  EXPECT_FALSE(checkpoint(1));
  ASSERT_TRUE(names_->create(kRootInode, "other", {}));
  std::filesystem::remove(path() + "/snapshots");
  EXPECT_TRUE(checkpoint(1));
}

TEST_F(OnDisk, MoreThanMayBeOpenAreReadOneAfterTheOther) {
  open();
  start();
  constexpr SnapshotNumber kMany = SnapshotStores::kOpenMax + 4;
  for (SnapshotNumber number = 1; number <= kMany; ++number) {
    ASSERT_TRUE(names_->create(kRootInode, fmt::format("file {}", number), {}));
    ASSERT_TRUE(take(fmt::format("{}", number)));
  }
  for (int round = 0; round < 2; ++round) {
    for (SnapshotNumber number = 1; number <= kMany; ++number)
      EXPECT_EQ(entries(inode_in(number, kRootInode)), number);
  }
}

TEST_F(OnDisk, ADamagedOneHurtsNobodyElse) {
  open();
  start();
  ASSERT_TRUE(names_->create(kRootInode, "file", {}));
  ASSERT_TRUE(take("one"));
  ASSERT_TRUE(take("two"));
  std::filesystem::remove(copy(1) + "/CURRENT");
  EXPECT_EQ(names_->get(inode_in(1, kRootInode)).error(), nfs4::Status::kIo);
  EXPECT_EQ(entries(inode_in(2, kRootInode)), 1U);
  EXPECT_EQ(entries(kRootInode), 1U);
  EXPECT_EQ(check_namespace(*store_).value().problems.size(), 1U);
}

TEST_F(OnDisk, TheStoreMayEndWhileOneIsMade) {
  for (const bool orderly : {true, false}) {
    open();
    start();
    bool called = false;
    store_->checkpoint(orderly ? 1 : 2, [&](const Result<>&) { called = true; });
    store_->drop_checkpoint(7, [&](const Result<>&) { called = true; });
    // Under way, but not in the loop's hands.
    const auto begun = [&] { return std::filesystem::exists(path() + "/snapshots"); };
    for (int i = 0; i < 2000 && !begun(); ++i) sleep_for(Milliseconds(1));
    ASSERT_TRUE(begun());
    if (orderly) {
      ASSERT_TRUE(store_->close());
    }
    stop();
    for (int i = 0; i < 5; ++i) loop_.run_once(Milliseconds(1));
    EXPECT_FALSE(called);
  }
  open();
  start();
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/snapshots"));
}

TEST_F(OnDisk, DropGivesTheFilesBack) {
  open();
  start();
  ASSERT_TRUE(take("one"));
  ASSERT_TRUE(names_->get(inode_in(1, kRootInode)));
  EXPECT_TRUE(std::filesystem::exists(copy(1) + "/CURRENT"));
  int dropped = 0;
  for (const SnapshotNumber number : {1, 5})
    store_->drop_checkpoint(number, [&](const Result<>& gone) { dropped += gone ? 1 : 100; });
  ASSERT_TRUE(run_until([&] { return dropped == 2; }));
  EXPECT_FALSE(std::filesystem::exists(copy(1)));
}

}  // namespace
}  // namespace pnfsrdma::mds
