// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/rocksdb_store.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/stat.h>

#include <deque>
#include <fstream>
#include <functional>
#include <optional>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/request_reads.h"
#include "server/mds/meta/snapshot_keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/sync.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

class Rocksdb : public ::testing::Test {
 protected:
  Result<std::unique_ptr<KeyValueStore>> open(std::function<void(Error)> failed = nullptr) {
    return RocksdbStore::open(loop_, {.path = directory_.path() + "/store", .env = files_.env()},
                              std::move(failed));
  }
  static Batch one(std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(key, value);
    return batch;
  }
  template <typename Condition>
  bool run_until(Condition condition) {
    const SteadyTime end = clock_.now() + Milliseconds(5000);
    while (!condition() && clock_.now() < end) loop_.run_once(Milliseconds(5));
    return condition();
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  TemporaryDirectory directory_;
  CrashFileSystem files_;
};

TEST_F(Rocksdb, ANamespaceCommitIsSyncedByItself) {
  auto store = open().value();
  bool durable = false;
  store->when_synced(store->commit(one("a", "1"), CommitKind::kNamespace).value(), [&] { durable = true; });
  EXPECT_TRUE(run_until([&] { return durable; }));
}

TEST_F(Rocksdb, WhatWasAnsweredSurvivesAPowerFailureAndTheRestDoesNot) {
  auto store = open().value();
  bool durable = false;
  store->when_synced(store->commit(one("a", "1"), CommitKind::kNamespace).value(), [&] { durable = true; });
  ASSERT_TRUE(run_until([&] { return durable; }));
  ASSERT_TRUE(store->commit(one("b", "1"), CommitKind::kState));
  files_.power_off();
  store.reset();
  ASSERT_TRUE(files_.lose_unsynced());
  store = open().value();
  EXPECT_EQ(store->get("a").value(), "1");
  EXPECT_EQ(store->get("b").value(), std::nullopt);
}

TEST_F(Rocksdb, AStateCommitSurvivesTheDeathOfTheProcess) {
  auto store = open().value();
  loop_.run_once(Milliseconds(0));
  ASSERT_TRUE(store->written(store->last_sequence()));
  ASSERT_TRUE(store->commit(one("b", "1"), CommitKind::kState));
  EXPECT_FALSE(store->written(store->last_sequence()));
  bool told = false;
  store->when_written([&] { told = true; });
  EXPECT_FALSE(told);
  loop_.run_once(Milliseconds(0));
  EXPECT_TRUE(told);
  EXPECT_TRUE(store->written(store->last_sequence()));
  ASSERT_TRUE(store->commit(one("c", "1"), CommitKind::kState));
  files_.power_off();  // what the process has not given to the kernel goes nowhere; what it has stays
  store.reset();
  files_.power_on();
  store = open().value();
  EXPECT_EQ(store->get("b").value(), "1");
  EXPECT_EQ(store->get("c").value(), std::nullopt);
}

TEST_F(Rocksdb, TheCommitsOfATurnAreOneWrite) {
  auto store = open().value();
  loop_.run_once(Milliseconds(0));
  const uint64_t before = files_.writes();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(store->commit(one("k" + std::to_string(i), "1"), CommitKind::kState));
  EXPECT_EQ(files_.writes() - before, 0U);
  loop_.run_once(Milliseconds(0));
  EXPECT_EQ(files_.writes() - before, 1U);
}

TEST_F(Rocksdb, ManyCommitsShareFewSyncs) {
  auto store = open().value();
  const uint64_t before = files_.syncs();
  Sequence last = 0;
  for (int i = 0; i < 500; ++i) {
    last = store->commit(one("k" + std::to_string(i), "1"), CommitKind::kNamespace).value();
  }
  ASSERT_TRUE(run_until([&] { return store->synced_sequence() >= last; }));
  EXPECT_LT(files_.syncs() - before, 500u);
}

TEST_F(Rocksdb, AStillViewIsReadByAnotherThreadAndDoesNotChange) {
  auto store = open().value();
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(store->commit(one(fmt::format("row {:04}", i), "old"), CommitKind::kState));
  auto view = store->still();
  Batch change = one("row 0500", "new");
  change.erase("row 0501");
  change.put("row 1000", "new");
  ASSERT_TRUE(store->commit(change, CommitKind::kState));
  size_t rows = 0;
  size_t old = 0;
  Thread([&] {
    EXPECT_EQ(view->get("row 0501").value(), "old");
    EXPECT_TRUE(view->scan("row", "", [&](std::string_view, std::string_view value) {
      ++rows;
      old += value == "old" ? 1 : 0;
      return true;
    }));
  }).join();
  EXPECT_EQ(rows, 1000u);
  EXPECT_EQ(old, 1000u);
  EXPECT_EQ(view->commit(one("a", "1"), CommitKind::kState).error().number(), EROFS);
  view.reset();
  EXPECT_EQ(store->get("row 0501").value(), std::nullopt);
  EXPECT_TRUE(store->close());
}

TEST_F(Rocksdb, AfterAFailedSyncNothingIsPromisedAnyMore) {
  std::optional<Error> failure;
  auto store = open([&](const Error& error) { failure = error; }).value();
  files_.fail_syncs(true);
  bool answered = false;
  // May be refused: the sync of what open() wrote may have been the one that failed.
  const auto committed = store->commit(one("a", "1"), CommitKind::kNamespace);
  if (committed) store->when_synced(*committed, [&] { answered = true; });
  ASSERT_TRUE(run_until([&] { return failure.has_value(); }));
  files_.fail_syncs(false);
  const auto refused = store->commit(one("b", "1"), CommitKind::kNamespace);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EIO);
  EXPECT_FALSE(store->sync());
  EXPECT_FALSE(answered);
}

// RocksDB aborts when a log is synced that could not be written.
TEST_F(Rocksdb, ALogThatCannotBeWrittenIsTheEndAsWell) {
  std::optional<Error> failure;
  auto store = open([&](const Error& error) { failure = error; }).value();
  // A commit that the thread itself has synced: it is at rest now, and would abort the process as RocksDB
  // does.
  const Sequence first = store->commit(one("first", "1"), CommitKind::kNamespace).value();
  ASSERT_TRUE(run_until([&] { return store->synced_sequence() >= first; }));
  files_.fail_writes(true);
  ASSERT_TRUE(store->commit(one("a", "1"), CommitKind::kNamespace));
  bool told = false;
  store->when_written([&] { told = true; });
  ASSERT_TRUE(run_until([&] { return failure.has_value(); }));
  EXPECT_FALSE(told);
  EXPECT_FALSE(store->sync());
  const auto refused = store->commit(one("b", "1"), CommitKind::kNamespace);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EIO);
}

TEST_F(Rocksdb, ThoseWhoWaitForOneSyncAreToldInSlices) {
  ManualClock clock;
  EventLoop loop(clock);
  auto store = RocksdbStore::open(loop, {.path = directory_.path() + "/store"}).value();
  const Sequence before = store->last_namespace_sequence();
  std::vector<uint64_t> told;
  for (int i = 0; i < 10; ++i) {
    const Sequence one_more = store->commit(one("a", std::to_string(i)), CommitKind::kState).value();
    store->when_synced(one_more, [&, one_more] {
      EXPECT_LE(store->synced_sequence(), one_more) << "somebody in front of us has not been told";
      told.push_back(one_more);
      clock.advance(EventLoop::kSlice / 4);
    });
  }
  // The urgent one takes the others along, unless the commit thread was faster than we.
  store->when_synced(store->commit(one("b", ""), CommitKind::kNamespace).value(), [&] { told.push_back(0); });
  const SteadyTime end = clock_.now() + Milliseconds(5000);
  while (told.size() < 11 && clock_.now() < end) {
    const size_t told_before = told.size();
    loop.run_once(Milliseconds(5));
    EXPECT_LE(told.size() - told_before, 4U) << "in one turn";
  }
  ASSERT_EQ(told.size(), 11U);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end() - 1));
  EXPECT_EQ(told.back(), 0U);
  EXPECT_GT(store->synced_sequence(), before);
}

TEST_F(Rocksdb, ASecondProcessIsToldWhoHasTheStore) {
  auto store = open().value();
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number(), EBUSY);
  EXPECT_NE(second.error().what().find("stop it first"), std::string::npos);
}

TEST_F(Rocksdb, AnOlderProgramRefusesANewerFormat) {
  auto store = open().value();
  Batch batch;
  put_value(batch, meta_key("format"), StoredNumber{kFormatVersion + 1});
  ASSERT_TRUE(store->commit(batch, CommitKind::kNamespace));
  ASSERT_TRUE(store->close());
  store.reset();
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOTSUP);
}

TEST_F(Rocksdb, ADirectoryThatCannotBeMadeIsAnErrorWithItsName) {
  const auto refused = RocksdbStore::open(loop_, {.path = directory_.path() + "/no/such/parent"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOENT);
  EXPECT_NE(refused.error().what().find("/no/such/parent"), std::string::npos);
}

TEST_F(Rocksdb, NothingIsMadeWhereAStoreMustBe) {
  const std::string path = directory_.path() + "/none";
  const auto refused = RocksdbStore::open(loop_, {.path = path, .create = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOENT);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Rocksdb, TheStoreIsForItsUserOnly) {
  auto store = open().value();
  const auto permissions = std::filesystem::status(directory_.path() + "/store").permissions();
  EXPECT_EQ(permissions, std::filesystem::perms::owner_all);
}

TEST_F(Rocksdb, ADatabaseOfSomebodyElseIsRefused) {
  auto store = open().value();
  Batch batch;
  batch.erase(meta_key("format"));
  batch.put("theirs", "1");
  ASSERT_TRUE(store->commit(batch, CommitKind::kNamespace));
  ASSERT_TRUE(store->close());
  store.reset();
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EUCLEAN);
}

// A store much larger than its cache, whose rows are in tables.
class ColdRocksdb : public Rocksdb {
 protected:
  static constexpr int kRows = 20'000;
  static constexpr size_t kValueBytes = 200;

  ColdRocksdb() {
    fill();
    // Opened again, what was in the memtable is in a table.
    store_ =
        RocksdbStore::open(loop_, {.path = directory_.path() + "/store", .cache_bytes = 16 << 10}).value();
  }
  static std::string key(int i) { return fmt::format("k{:06}", i); }
  static std::string value(int i) { return std::string(kValueBytes, static_cast<char>('a' + i % 26)); }
  void fill() {
    auto store = RocksdbStore::open(loop_, {.path = directory_.path() + "/store"}).value();
    for (int i = 0; i < kRows; i += 100) {
      Batch batch;
      for (int j = i; j < i + 100; ++j) batch.put(key(j), value(j));
      batch.put(fmt::format("e{:06}", i), {});
      ASSERT_TRUE(store->commit(batch, CommitKind::kState));
    }
    ASSERT_TRUE(store->close());
  }
  // As a handler: again and again until nothing is missing.
  template <typename Request>
  auto run(Request request) {
    for (;;) {
      {
        const RequestReads::Run run(reads_.emplace_or_get(*store_));
        auto result = request();
        if (!reads_->missed()) return result;
      }
      bool arrived = false;
      reads_->fetch([&] { arrived = true; });
      EXPECT_TRUE(run_until([&] { return arrived; }));
    }
  }

  std::unique_ptr<KeyValueStore> store_;
  struct Lazy : std::optional<RequestReads> {
    RequestReads& emplace_or_get(KeyValueStore& store) { return has_value() ? **this : emplace(store); }
  } reads_;
};

TEST_F(ColdRocksdb, NoRequestWaitsInTheLoop) {
  const uint64_t before = store_->read_counts().blocking;
  for (int i = 7; i < kRows; i += 997) {
    EXPECT_EQ(run([&] { return store_->get(key(i)).value_or("?"); }), value(i)) << i;
    EXPECT_EQ(run([&] { return store_->get(key(i) + "absent").value_or("?"); }), std::nullopt) << i;
    reads_->clear();
  }
  EXPECT_EQ(run([&] { return store_->get("e000100").value_or("?"); }), "");
  int rows = 0;
  EXPECT_TRUE(run([&] {
    rows = 0;
    return store_
        ->scan("k", key(500),
               [&](std::string_view at, std::string_view found) {
                 EXPECT_EQ(at, key(500 + rows));
                 EXPECT_EQ(found, value(500 + rows));
                 return ++rows < 1000;
               })
        .has_value();
  }));
  EXPECT_EQ(rows, 1000);
  EXPECT_EQ(store_->read_counts().blocking, before);
  EXPECT_GT(store_->read_counts().fetches, 10U);
}

TEST_F(ColdRocksdb, WhatIsInTheMemtableIsAtHand) {
  ASSERT_TRUE(store_->commit(one(key(5), "new"), CommitKind::kState));
  ASSERT_TRUE(store_->commit(one("e", ""), CommitKind::kState));
  const uint64_t misses = store_->read_counts().misses;
  EXPECT_EQ(run([&] { return store_->get(key(5)).value_or("?"); }), "new");
  EXPECT_EQ(run([&] { return store_->get("e").value_or("?"); }), "");
  EXPECT_EQ(store_->read_counts().misses, misses);
}

TEST_F(ColdRocksdb, WhoCannotWaitGetsTheSame) {
  int rows = 0;
  EXPECT_TRUE(store_->scan("k", {}, [&](std::string_view at, std::string_view found) {
    EXPECT_EQ(at, key(rows));
    EXPECT_EQ(found, value(rows));
    ++rows;
    return true;
  }));
  EXPECT_EQ(rows, kRows);
  EXPECT_EQ(store_->get("e000200").value(), "");
  EXPECT_GT(store_->read_counts().blocking, 0U);
}

// In memory as they are, so many deletions take long to walk.
// As many as there are readers' threads; the copies are on a disk that does not answer.
TEST_F(ColdRocksdb, IsReadWhileCopiesOfItAreOpened) {
  const auto current = [this](SnapshotNumber number) {
    return fmt::format("{}/store/snapshots/{}/CURRENT", directory_.path(), number);
  };
  for (const SnapshotNumber number : {1, 2}) {
    std::optional<Result<>> made;
    store_->checkpoint(number, [&](const Result<>& outcome) { made = outcome; });
    ASSERT_TRUE(run_until([&] { return made.has_value(); }));
    ASSERT_TRUE(*made);
    // Who opens it waits for somebody who writes.
    std::filesystem::remove(current(number));
    ASSERT_EQ(::mkfifo(current(number).c_str(), 0600), 0);
  }
  std::deque<RequestReads> requests;
  const auto ask = [&](const std::string& row, const std::function<void()>& arrived) {
    RequestReads& reads = requests.emplace_back(*store_);
    {
      const RequestReads::Run run(reads);
      static_cast<void>(store_->get(row));
    }
    ASSERT_TRUE(reads.missed());
    reads.fetch(arrived);
  };
  size_t opened = 0;
  bool read = false;
  for (const SnapshotNumber number : {1, 2})
    ask(number_key(kExtentTag, inode_in(number, 7), 4096), [&] { ++opened; });
  ask(key(kRows / 2), [&] { read = true; });
  EXPECT_TRUE(run_until([&] { return read; }));
  EXPECT_EQ(opened, 0U);
  for (const SnapshotNumber number : {1, 2}) {
    const std::ofstream writer(current(number));
    std::filesystem::remove(current(number));
  }
  EXPECT_TRUE(run_until([&] { return opened == 2; }));
}

TEST_F(ColdRocksdb, DeletionsAreWalkedByAReader) {
  Batch batch;
  for (int i = 0; i < kRows - 1; ++i) batch.erase(key(i));
  ASSERT_TRUE(store_->commit(batch, CommitKind::kState));
  std::string found;
  EXPECT_TRUE(run([&] {
    found.clear();
    return store_
        ->scan("k", {},
               [&](std::string_view at, std::string_view) {
                 found += at;
                 return true;
               })
        .has_value();
  }));
  EXPECT_EQ(found, key(kRows - 1));
  EXPECT_GT(store_->read_counts().fetches, 0U);
}

TEST_F(ColdRocksdb, MayBeClosedWhileItReads) {
  bool arrived = false;
  {
    RequestReads reads(*store_);
    {
      const RequestReads::Run run(reads);
      EXPECT_FALSE(store_->get(key(7)));
    }
    reads.fetch([&] { arrived = true; });
    reads_.reset();
  }
  store_.reset();
  loop_.run_once(Milliseconds(0));
  EXPECT_FALSE(arrived);
}

// Below the first level a row is in one of many tables, and a scan goes over from one to the next.
class LevelledRocksdb : public ColdRocksdb {
 protected:
  LevelledRocksdb() {
    store_.reset();
    rocksdb::Options options;
    options.compression = rocksdb::kNoCompression;
    options.target_file_size_base = 256 << 10;
    rocksdb::DB* opened = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, directory_.path() + "/store", &opened).ok());
    const std::unique_ptr<rocksdb::DB> database(opened);
    rocksdb::CompactRangeOptions rewritten;
    rewritten.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(database->CompactRange(rewritten, nullptr, nullptr).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    database->GetLiveFilesMetaData(&files);
    for (const auto& file : files) {
      if (file.level > 0 && file.smallestkey.starts_with('k'))
        tables_.emplace(file.smallestkey, file.db_path + file.name);
    }
    EXPECT_TRUE(database->Close().ok());
  }
  void open_store() { store_ = RocksdbStore::open(loop_, {.path = directory_.path() + "/store"}).value(); }
  // The rows below `end`, which are in memory then.
  void warm_up_to(const std::string& end) {
    EXPECT_TRUE(store_->scan("k", {}, [&](std::string_view at, std::string_view) { return at < end; }));
  }
  Result<int> count() {
    int rows = 0;
    TRY(store_->scan("k", {}, [&](std::string_view, std::string_view) { return ++rows > 0; }));
    return rows;
  }

  std::map<std::string, std::string> tables_;  // by the first key: the file
};

TEST_F(LevelledRocksdb, AScanIsNotOverWhereTheNextTableIsNotInMemory) {
  ASSERT_GT(tables_.size(), 3U);
  for (auto table = std::next(tables_.begin()); table != tables_.end(); ++table) {
    open_store();
    warm_up_to(fmt::format("k{:06}", std::stoi(table->first.substr(1)) - 1));
    EXPECT_EQ(count().value(), kRows) << "up to " << table->first << " in memory";
    store_.reset();
    open_store();
    warm_up_to(fmt::format("k{:06}", std::stoi(table->first.substr(1)) - 1));
    int rows = 0;
    EXPECT_TRUE(run([&] {
      const auto counted = count();
      rows = counted.value_or(0);
      return counted.has_value();
    }));
    EXPECT_EQ(rows, kRows) << "up to " << table->first << " in memory, by a request";
    reads_.reset();
    store_.reset();
  }
}

TEST_F(LevelledRocksdb, ATableThatCannotBeReadIsNoEndOfAScan) {
  ASSERT_GT(tables_.size(), 3U);
  {
    std::fstream damaged(std::next(tables_.begin())->second, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(100);
    damaged << std::string(200, '\0');
    ASSERT_TRUE(damaged.good());
  }
  open_store();
  const auto counted = count();
  ASSERT_FALSE(counted) << *counted << " of " << kRows << " rows";
  EXPECT_FALSE(run([&]() -> Result<int> { return count(); }));
  reads_.reset();
}

}  // namespace
}  // namespace pnfsrdma::mds
