// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/rocksdb_store.h"

#include <gtest/gtest.h>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
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
  ASSERT_TRUE(store->commit(one("b", "1"), CommitKind::kState));
  store.reset();  // no close(), no sync: as after SIGKILL
  store = open().value();
  EXPECT_EQ(store->get("b").value(), "1");
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
  EXPECT_FALSE(store->commit(one("a", "1"), CommitKind::kNamespace));
  ASSERT_TRUE(run_until([&] { return failure.has_value(); }));
  EXPECT_FALSE(store->sync());
  const auto refused = store->commit(one("b", "1"), CommitKind::kNamespace);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EIO);
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

}  // namespace
}  // namespace pnfsrdma::mds
