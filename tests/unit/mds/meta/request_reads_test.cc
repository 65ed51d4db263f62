// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/request_reads.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

class RequestReadsTest : public ::testing::Test {
 protected:
  RequestReadsTest() {
    for (char letter = 'a'; letter <= 'e'; ++letter) put(std::string("k") + letter, std::string(1, letter));
    store_.go_cold();
  }
  void put(const std::string& key, const std::string& value) {
    Batch batch;
    batch.put(key, value);
    ASSERT_TRUE(store_.commit(batch, CommitKind::kState));
  }
  // Runs until nothing misses; what the request returns then.
  template <typename Request>
  auto run(Request request) {
    for (;;) {
      {
        const RequestReads::Run run(reads_);
        auto result = request();
        if (!reads_.missed()) return result;
      }
      ++rounds_;
      bool arrived = false;
      reads_.fetch([&] { arrived = true; });
      EXPECT_FALSE(arrived);
      if (meanwhile_) std::exchange(meanwhile_, nullptr)();
      for (int turn = 0; !arrived && turn < 3; ++turn) loop_.run_once(Milliseconds(0));
      EXPECT_TRUE(arrived);
    }
  }
  std::string all(std::string_view from = {}) {
    std::string letters;
    const auto scanned = store_.scan("k", from, [&](std::string_view, std::string_view value) {
      letters += value;
      return true;
    });
    return scanned ? letters : "?";
  }

  ManualClock clock_;
  EventLoop loop_{clock_};
  MemoryStore store_{loop_, MemoryStore::Syncing::kManual};
  RequestReads reads_{store_};
  std::function<void()> meanwhile_;
  int rounds_ = 0;
};

TEST_F(RequestReadsTest, ARunHasWhatWasFetchedForIt) {
  EXPECT_EQ(run([&] { return store_.get("ka").value_or("?"); }), "a");
  EXPECT_EQ(rounds_, 1);
  EXPECT_EQ(run([&] { return store_.get("absent").value_or("?"); }), std::nullopt);
  EXPECT_EQ(store_.read_counts().misses, 2U);
  EXPECT_EQ(store_.read_counts().fetches, 2U);
  EXPECT_EQ(store_.read_counts().blocking, 0U);
  EXPECT_EQ(store_.read_counts().fetch_latency.snapshot().count(), 2U);
}

TEST_F(RequestReadsTest, AllThatARunMissesIsFetchedAtOnce) {
  EXPECT_TRUE(run([&] { return store_.get("ka") && store_.get("kb"); }));
  EXPECT_EQ(rounds_, 2);
  rounds_ = 0;
  reads_.clear();
  EXPECT_TRUE(run([&] {
    const bool first = store_.get("ka").has_value();
    return store_.get("kb") && first;
  }));
  EXPECT_EQ(rounds_, 1);
}

TEST_F(RequestReadsTest, AScanGoesOnBehindWhatCame) {
  store_.rows_fetched = 2;
  EXPECT_EQ(run([&] { return all(); }), "abcde");
  EXPECT_EQ(rounds_, 3);
  EXPECT_EQ(run([&] { return all("kd"); }), "de");
}

TEST_F(RequestReadsTest, OutsideOfARequestItIsWaitedFor) {
  EXPECT_EQ(store_.get("ka").value(), "a");
  EXPECT_EQ(all(), "abcde");
  EXPECT_EQ(store_.read_counts().blocking, 2U);
  EXPECT_EQ(store_.read_counts().fetches, 0U);
}

TEST_F(RequestReadsTest, BehindACommitItIsWaitedFor) {
  EXPECT_EQ(run([&] {
              put("x", "1");
              return store_.get("ka").value_or("?");
            }),
            "a");
  EXPECT_EQ(rounds_, 0);
  EXPECT_EQ(store_.read_counts().blocking, 1U);
}

TEST_F(RequestReadsTest, AVoidRunCommitsNothing) {
  run([&] {
    const bool absent = !store_.get("ka");  // an error taken for "not there"
    Batch batch;
    batch.put("ka", absent ? "wrong" : "right");
    const auto committed = store_.commit(batch, CommitKind::kState);
    EXPECT_EQ(committed.has_value(), !absent);
    return 0;
  });
  EXPECT_EQ(store_.get("ka").value(), "right");
}

TEST_F(RequestReadsTest, WhatIsCommittedMeanwhileIsSeen) {
  meanwhile_ = [&] { put("ka", "new"); };
  EXPECT_EQ(run([&] { return store_.get("ka").value_or("?"); }), "new");
  EXPECT_EQ(rounds_, 2);
}

TEST_F(RequestReadsTest, WhatIsCommittedBetweenTwoRowsIsSeen) {
  EXPECT_EQ(run([&] { return store_.get("ka").value_or("?"); }), "a");
  put("ka", "new");
  EXPECT_EQ(run([&] { return store_.get("ka").value_or("?"); }), "new");
}

TEST_F(RequestReadsTest, AKeyMadeOrErasedMeanwhileIsSeenByAScan) {
  store_.rows_fetched = 3;
  meanwhile_ = [&] { put("kba", "B"); };
  EXPECT_EQ(run([&] { return all(); }), "abBcde");
  reads_.clear();
  meanwhile_ = [&] {
    Batch batch;
    batch.erase("kba");
    ASSERT_TRUE(store_.commit(batch, CommitKind::kState));
  };
  EXPECT_EQ(run([&] { return all(); }), "abcde");
}

// A part of a scan stays good while only keys outside of it change.
TEST_F(RequestReadsTest, AKeyBehindWhatCameMakesNothingStale) {
  store_.rows_fetched = 3;
  EXPECT_EQ(run([&] { return all(); }), "abcde");
  rounds_ = 0;
  put("kf", "f");
  EXPECT_EQ(run([&] { return all(); }), "abcdef");
  EXPECT_EQ(rounds_, 1);
}

TEST_F(RequestReadsTest, RunsNest) {
  RequestReads inner(store_);
  const RequestReads::Run outer_run(reads_);
  {
    const RequestReads::Run inner_run(inner);
    EXPECT_FALSE(store_.get("ka"));
    EXPECT_TRUE(inner.missed());
  }
  EXPECT_FALSE(reads_.missed());
  put("x", "1");  // of the outer one alone
  EXPECT_TRUE(inner.missed());
}

TEST_F(RequestReadsTest, ARequestMayEndWhileItIsFetchedFor) {
  {
    RequestReads gone(store_);
    {
      const RequestReads::Run run(gone);
      EXPECT_FALSE(store_.get("ka"));
    }
    gone.fetch([] { FAIL(); });
  }
  loop_.run_once(Milliseconds(0));
  put("ka", "new");
}

}  // namespace
}  // namespace pnfsrdma::mds
