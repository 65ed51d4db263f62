// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/key_value.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

class KeyValue : public OverBothEngines {
 protected:
  Sequence put(std::string_view key, std::string_view value, CommitKind kind = CommitKind::kNamespace) {
    Batch batch;
    batch.put(key, value);
    return store_->commit(batch, kind).value();
  }
  std::vector<std::string> keys(std::string_view prefix, std::string_view from = {}) {
    std::vector<std::string> found;
    EXPECT_TRUE(store_->scan(prefix, from, [&](std::string_view key, std::string_view) {
      found.emplace_back(key);
      return true;
    }));
    return found;
  }
};

TEST_P(KeyValue, ReadsWhatWasCommitted) {
  put("a", "1");
  EXPECT_EQ(store_->get("a").value(), "1");
  EXPECT_EQ(store_->get("b").value(), std::nullopt);
}

TEST_P(KeyValue, ALaterOperationOfABatchWins) {
  Batch batch;
  batch.put("a", "1");
  batch.erase("a");
  batch.put("b", "1");
  batch.put("b", "");
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  EXPECT_EQ(store_->get("a").value(), std::nullopt);
  EXPECT_EQ(store_->get("b").value(), "");
}

TEST_P(KeyValue, AppendedBatchesAreOneBatch) {
  Batch first;
  first.put("a", "1");
  Batch second;
  second.erase("a");
  second.put("b", "2");
  first.append(second);
  EXPECT_EQ(first.size(), 3u);
  ASSERT_TRUE(store_->commit(first, CommitKind::kNamespace));
  EXPECT_EQ(store_->get("a").value(), std::nullopt);
  EXPECT_EQ(store_->get("b").value(), "2");
}

TEST_P(KeyValue, ScansAPrefixInByteOrder) {
  for (const char* key : {"b2", "a1", "b1", "c", "b\xff", "b\xff\xff"}) put(key, "x");
  EXPECT_EQ(keys("b"), (std::vector<std::string>{"b1", "b2", "b\xff", "b\xff\xff"}));
  EXPECT_EQ(keys("b", "b2"), (std::vector<std::string>{"b2", "b\xff", "b\xff\xff"}));
  EXPECT_EQ(keys("b\xff"), (std::vector<std::string>{"b\xff", "b\xff\xff"}));
  EXPECT_TRUE(keys("b", "c").empty());
}

TEST_P(KeyValue, AScanStopsWhenTheVisitorHasEnough) {
  for (const char* key : {"k1", "k2", "k3"}) put(key, "x");
  int visited = 0;
  ASSERT_TRUE(store_->scan("k", {}, [&](std::string_view, std::string_view) { return ++visited < 2; }));
  EXPECT_EQ(visited, 2);
}

TEST_P(KeyValue, AVisitorMayErase) {
  for (const char* key : {"k1", "k2", "k3"}) put(key, "x");
  ASSERT_TRUE(store_->scan("k", {}, [&](std::string_view key, std::string_view) {
    Batch batch;
    batch.erase(key);
    return store_->commit(batch, CommitKind::kState).has_value();
  }));
  EXPECT_TRUE(keys("k").empty());
}

TEST_P(KeyValue, SequencesGoUpAndOnlyNamespaceCommitsCountForReplies) {
  const Sequence first = put("a", "1");
  const Sequence second = put("a", "2", CommitKind::kState);
  EXPECT_GT(second, first);
  EXPECT_EQ(store_->last_namespace_sequence(), first);
}

TEST_P(KeyValue, AnEmptyCommitIsAPlaceInTheOrderThatRepliesWaitFor) {
  put("a", "1", CommitKind::kState);
  const auto empty = store_->commit(Batch(), CommitKind::kNamespace);
  ASSERT_TRUE(empty);
  EXPECT_EQ(store_->last_namespace_sequence(), *empty);
  store_.settle();
  EXPECT_GE(store_->synced_sequence(), *empty);
  EXPECT_EQ(store_->get("a").value(), "1");
}

TEST_P(KeyValue, WaitersRunInOrderOnceTheirCommitIsDurable) {
  std::vector<int> ran;
  const Sequence first = put("a", "1");
  const Sequence second = put("b", "1");
  store_->when_synced(second, [&] { ran.push_back(2); });
  store_->when_synced(first, [&] { ran.push_back(1); });
  EXPECT_TRUE(ran.empty());
  store_.settle();
  EXPECT_GE(store_->synced_sequence(), second);
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

TEST_P(KeyValue, AWaiterForSomethingDurableRunsAtTheEndOfTheTurn) {
  const Sequence sequence = put("a", "1");
  store_.settle();
  bool ran = false;
  store_->when_synced(sequence, [&] { ran = true; });
  EXPECT_FALSE(ran);
  store_.loop().run_once(Milliseconds(0));
  EXPECT_TRUE(ran);
}

TEST_P(KeyValue, SurvivesBeingReopened) {
  put("a", "1");
  put("b", "2", CommitKind::kState);
  store_.reopen();
  EXPECT_EQ(store_->get("a").value(), "1");
  EXPECT_EQ(store_->get("b").value(), "2");
}

TEST_P(KeyValue, ACrashKeepsAPrefixThatHoldsEverythingSynced) {
  SeededRandom random(7);
  int written = 0;
  for (int round = 0; round < 8; ++round) {
    const int before = written;
    for (int i = 0; i < 20; ++i) put("k" + std::to_string(100 + written++), "x", CommitKind::kState);
    store_.settle();
    const int synced = written;
    for (int i = 0; i < 20; ++i) put("k" + std::to_string(100 + written++), "x", CommitKind::kState);
    store_.crash(random);
    const auto found = keys("k");
    ASSERT_GE(static_cast<int>(found.size()), synced) << before;
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], "k" + std::to_string(100 + i));
    written = static_cast<int>(found.size());
  }
}

PNFSRDMA_OVER_BOTH_ENGINES(KeyValue);

TEST(MemoryStore, KeepsExactlyTheBatchesItIsToldToKeep) {
  SystemClock clock;
  EventLoop loop(clock);
  MemoryStore store(loop, MemoryStore::Syncing::kManual);
  for (const char* key : {"a", "b", "c"}) {
    Batch batch;
    batch.put(key, "x");
    ASSERT_TRUE(store.commit(batch, CommitKind::kNamespace));
    if (*key != 'a') continue;
    ASSERT_TRUE(store.sync());
  }
  EXPECT_EQ(store.unsynced(), 2u);
  store.crash(1);
  EXPECT_TRUE(store.get("a").value() && store.get("b").value());
  EXPECT_FALSE(store.get("c").value());
}

TEST(MemoryStore, SyncsItselfAtTheEndOfATurn) {
  SystemClock clock;
  EventLoop loop(clock);
  MemoryStore store(loop);
  Batch batch;
  batch.put("a", "x");
  bool durable = false;
  store.when_synced(store.commit(batch, CommitKind::kNamespace).value(), [&] { durable = true; });
  EXPECT_FALSE(durable);
  loop.run_once(Milliseconds(0));
  EXPECT_TRUE(durable);
}

TEST(MemoryStore, RefusesCommitsWhileItStalls) {
  SystemClock clock;
  EventLoop loop(clock);
  MemoryStore store(loop);
  store.stall(1);
  Batch batch;
  batch.put("a", "x");
  const auto refused = store.commit(batch, CommitKind::kNamespace);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EAGAIN);
  EXPECT_FALSE(store.get("a").value());
  EXPECT_TRUE(store.commit(batch, CommitKind::kNamespace));
}

}  // namespace
}  // namespace pnfsrdma::mds
