// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/replicated_store.h"

#include <gtest/gtest.h>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/request_reads.h"
#include "shared/base/random.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

// A log that says so when it is told to.
class HeldLog final : public Log {
 public:
  void start(Hooks hooks) override { hooks_ = std::move(hooks); }
  void append(std::string record) override { records.push_back(std::move(record)); }
  Result<Logged> wait() override {
    logged_ = {records.size(), {logged_.end.position + (records.size() > logged_.records ? 1 : 0), {}}};
    return logged_;
  }
  // The next `count` are in one value.
  void log(size_t count) {
    logged_ = {logged_.records + count, {logged_.end.position + 1, hash_of(std::to_string(count))}};
    hooks_.logged(logged_);
  }
  void log_all() {
    if (records.size() > logged_.records) log(records.size() - logged_.records);
  }
  void lose() { hooks_.lost(Error(ESTALE, "another server has taken the lead")); }

  std::vector<std::string> records;

 private:
  Hooks hooks_;
  Logged logged_;
};

class Replicated : public ::testing::Test {
 protected:
  Replicated() { open(); }

  void open() {
    auto base = std::make_unique<MemoryStore>(loop_);
    auto log = std::make_unique<HeldLog>();
    base_ = base.get();
    log_ = log.get();
    store_ = std::make_unique<ReplicatedStore>(
        loop_, std::move(base), std::move(log),
        ReplicatedStore::Options{.position = {"id", {}},
                                 .leads = [this] { return leads_; },
                                 .durable = [this](LogPosition position) { durable_ = position; },
                                 .failed = [this](const Error& error) { failed_ = error; }});
  }
  void turn() { loop_.run_once(Milliseconds(0)); }
  Sequence put(std::string_view key, std::string_view value, CommitKind kind = CommitKind::kNamespace) {
    Batch batch;
    batch.put(key, value);
    return store_->commit(batch, kind).value();
  }
  LogPosition base_position() {
    return read_position(*base_).value().value_or(StorePosition{}).applied.position;
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  bool leads_ = true;
  LogPosition durable_ = 0;
  std::optional<Error> failed_;
  MemoryStore* base_ = nullptr;
  HeldLog* log_ = nullptr;
  std::unique_ptr<ReplicatedStore> store_;
};

TEST_F(Replicated, ABatchIsSeenAtOnceAndInTheBaseWhenItIsLogged) {
  put("a", "1");
  EXPECT_EQ(store_->get("a").value(), "1");
  turn();
  EXPECT_EQ(base_->get("a").value(), std::nullopt);
  log_->log_all();
  EXPECT_EQ(base_->get("a").value(), "1");
  EXPECT_EQ(base_position(), 1u);
  EXPECT_EQ(store_->waiting_bytes(), 0u);
  turn();
  turn();
  EXPECT_EQ(durable_, 1u);
}

TEST_F(Replicated, TheBatchesOfATurnAreOneRecord) {
  put("a", "1");
  put("b", "2", CommitKind::kState);
  turn();
  put("c", "3");
  turn();
  EXPECT_EQ(log_->records.size(), 2u);
}

TEST_F(Replicated, WhoWaitsIsToldWhenItIsLoggedAndNotBefore) {
  const Sequence first = put("a", "1", CommitKind::kState);
  EXPECT_EQ(store_->last_namespace_sequence(), first);  // state counts, too
  bool told = false;
  store_->when_synced(first, [&] { told = true; });
  turn();
  const Sequence second = put("b", "2");
  turn();
  EXPECT_FALSE(told);
  EXPECT_FALSE(store_->written(first));
  log_->log(1);
  EXPECT_TRUE(told);
  EXPECT_EQ(store_->synced_sequence(), first);
  EXPECT_TRUE(store_->written(first));
  EXPECT_FALSE(store_->written(second));
  told = false;
  store_->when_written([&] { told = true; });
  log_->log(1);
  EXPECT_TRUE(told);
}

TEST_F(Replicated, NothingIsToldWhenTheLeadIsLost) {
  bool told = false;
  store_->when_synced(put("a", "1"), [&] { told = true; });
  turn();
  log_->lose();
  turn();
  EXPECT_FALSE(told);
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->number(), ESTALE);
  EXPECT_EQ(base_->get("a").value(), std::nullopt);
  Batch batch;
  batch.put("b", "2");
  EXPECT_FALSE(store_->commit(batch, CommitKind::kState));
}

TEST_F(Replicated, WhatWasOnlyReadIsNotToldWhenTheLeadIsDoubtful) {
  put("a", "1");
  turn();
  log_->log_all();
  EXPECT_TRUE(store_->written(store_->last_sequence()));
  leads_ = false;
  EXPECT_FALSE(store_->written(store_->last_sequence()));
  bool told = false;
  store_->when_written([&] { told = true; });
  leads_ = true;  // too late
  turn();
  EXPECT_FALSE(told);
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->number(), ESTALE);
}

TEST_F(Replicated, SyncWaitsForTheLog) {
  put("a", "1");
  ASSERT_TRUE(store_->sync());
  EXPECT_EQ(base_->get("a").value(), "1");
  EXPECT_EQ(store_->synced_sequence(), store_->last_sequence());
}

TEST_F(Replicated, AStallingBaseGetsItLater) {
  put("a", "1");
  turn();
  base_->stall(3);
  log_->log_all();
  EXPECT_EQ(base_->get("a").value(), std::nullopt);
  EXPECT_EQ(store_->get("a").value(), "1");
  for (int i = 0; i < 100 && base_->get("a").value() == std::nullopt; ++i) loop_.run_once(Milliseconds(20));
  EXPECT_EQ(base_->get("a").value(), "1");
}

TEST_F(Replicated, CommitsWaitWhenTooMuchWaitsForTheLog) {
  const std::string large(ReplicatedStore::kWaitingBytesMax / 2, 'x');
  put("a", large);
  put("b", large);
  Batch batch;
  batch.put("c", "1");
  const auto refused = store_->commit(batch, CommitKind::kState);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EAGAIN);
  turn();
  log_->log_all();
  EXPECT_TRUE(store_->commit(batch, CommitKind::kState));
}

TEST_F(Replicated, ARowThatChangesAgainAndAgainWaitsAsOftenAsItIsInTheLog) {
  const std::string large(size_t{1} << 20, 'x');
  Batch batch;
  batch.put("a", large);
  size_t taken = 0;
  for (; taken < 100 && store_->commit(batch, CommitKind::kState); ++taken) turn();
  EXPECT_EQ(taken, ReplicatedStore::kWaitingBytesMax / large.size());
  log_->log_all();
  for (int i = 0; i < 100 && store_->waiting_bytes() > 0; ++i) turn();
  EXPECT_EQ(store_->waiting_bytes(), 0u);
  EXPECT_TRUE(store_->commit(batch, CommitKind::kState));
}

TEST_F(Replicated, ATurnBringsAPartOfAValue) {
  constexpr size_t kRecords = 50;
  constexpr size_t kInOne = 100;
  for (size_t i = 0; i < kRecords; ++i) {
    Batch batch;
    for (size_t row = 0; row < kInOne; ++row) batch.put("k" + std::to_string(i * kInOne + row), "v");
    ASSERT_TRUE(store_->commit(batch, CommitKind::kState));
    turn();
  }
  const auto rows = [&] {
    size_t count = 0;
    EXPECT_TRUE(base_->scan("k", "", [&](std::string_view, std::string_view) { return ++count > 0; }));
    return count;
  };
  size_t before = 0;
  log_->log_all();
  for (int turns = 1; rows() < kRecords * kInOne; ++turns) {
    ASSERT_LE(rows() - before, ReplicatedStore::kOperationsMax);
    ASSERT_EQ(base_position(), 0u);  // of the value a part is missing
    ASSERT_LT(turns, 4);
    before = rows();
    turn();
  }
  EXPECT_EQ(base_position(), 1u);
}

// The position behind a copy is in the base before what comes then: else a restart would make the copy of both.
TEST_F(Replicated, ACopyCountsWhenItsPositionIsInTheBase) {
  put("a", "1");
  std::optional<Result<>> made;
  store_->checkpoint(7, [&](Result<> outcome) { made = std::move(outcome); });
  turn();
  log_->log_all();
  base_->stall(1);
  turn();
  EXPECT_EQ(base_->checkpoints().count(7), 1u);
  EXPECT_FALSE(made);
  EXPECT_EQ(base_position(), 0u);
  for (int i = 0; i < 100 && !made; ++i) loop_.run_once(Milliseconds(20));
  EXPECT_TRUE(made && *made);
  EXPECT_EQ(base_position(), 1u);
}

TEST_F(Replicated, ACheckpointHasWhatWasCommittedBefore) {
  put("a", "1");
  std::optional<Result<>> made;
  store_->checkpoint(7, [&](Result<> outcome) { made = std::move(outcome); });
  Batch batch;
  batch.put("b", "2");
  EXPECT_EQ(store_->commit(batch, CommitKind::kState).error().number(), EAGAIN);
  turn();
  ASSERT_EQ(log_->records.size(), 2u);
  EXPECT_EQ(decode_record(log_->records[1])->kind, LogRecordKind::kCheckpoint);
  EXPECT_FALSE(made);
  log_->log_all();
  turn();
  ASSERT_TRUE(made && *made);
  EXPECT_TRUE(base_->checkpoints().at(7).contains("a"));
  EXPECT_EQ(base_position(), 1u);
  EXPECT_TRUE(store_->commit(batch, CommitKind::kState));
  bool dropped = false;
  store_->drop_checkpoint(7, [&](const Result<>&) { dropped = true; });
  // What was committed before the checkpoint went is in the log before it.
  EXPECT_EQ(decode_record(log_->records[2])->kind, LogRecordKind::kBatch);
  EXPECT_EQ(decode_record(log_->records[3])->kind, LogRecordKind::kDropCheckpoint);
  log_->log_all();
  turn();
  EXPECT_TRUE(dropped);
  EXPECT_TRUE(base_->checkpoints().empty());
}

TEST_F(Replicated, AnEndedCheckpointKeepsNobodyWaiting) {
  put("a", "1");
  store_->checkpoint(7, [](const Result<>&) { FAIL(); });
  store_->end_checkpoints();
  put("b", "2");
  ASSERT_TRUE(store_->close());
  EXPECT_EQ(base_->get("b").value(), "2");
  EXPECT_TRUE(base_->checkpoints().empty());
}

// A cold base, a slow log, a reader's part under way: what a request reads is what one map has.
TEST_F(Replicated, RequestsReadAsIfAllWereInOneMap) {
  SeededRandom random(3);
  const auto below = [&](uint64_t most) { return random.next_u64() % most; };
  base_->go_cold();
  std::map<std::string, std::string> whole;
  for (int round = 0; round < 2000; ++round) {
    Batch batch;
    for (uint64_t i = 0; i <= below(5); ++i) {
      const std::string key = "k" + std::to_string(below(40));
      const std::string value = std::to_string(round);
      if (below(3) == 0) {
        batch.erase(key);
        whole.erase(key);
      } else {
        batch.put(key, value);
        whole[key] = value;
      }
    }
    ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
    if (below(2) == 0) turn();
    if (below(2) == 0) log_->log_all();
    RequestReads reads(*store_);
    std::map<std::string, std::string> seen;
    for (int run = 0; run < 100; ++run) {
      seen.clear();
      std::optional<std::string> one;
      {
        RequestReads::Run running(reads);
        one = store_->get("k7").value_or(std::nullopt);
        static_cast<void>(store_->scan("k", "", [&](std::string_view key, std::string_view value) {
          seen.emplace(key, value);
          return true;
        }));
      }
      if (!reads.missed()) {
        EXPECT_EQ(one, whole.contains("k7") ? std::optional(whole["k7"]) : std::nullopt);
        break;
      }
      bool arrived = false;
      reads.fetch([&] { arrived = true; });
      if (below(2) == 0) log_->log_all();
      for (int i = 0; i < 100 && !arrived; ++i) turn();
      ASSERT_TRUE(arrived);
    }
    ASSERT_EQ(seen, whole) << round;
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
