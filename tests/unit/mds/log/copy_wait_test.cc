// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_wait.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "server/mds/meta/keys.h"
#include "tests/doubles/metadata/memory_key_server.h"
#include "tests/doubles/metadata/memory_store.h"

namespace pnfsrdma::mds {
namespace {

// A server whose store is empty, and a log that began with another one's.
class Waiting : public ::testing::Test {
 protected:
  Waiting() : store_(loop_) {
    server_.put(keys_.identity(), std::string(32, 'a'));
    const auto refused = member_.lead(store_, [] { return false; });
    EXPECT_FALSE(refused);
    EXPECT_TRUE(member_.needs_copy());
  }
  void leads(const std::string& copies) {
    server_.put(keys_.leader(), LeadClaim{"a", "0", "a's", copies}.text());
  }
  // `answers`: of the tries to take one, in their order; then it is taken.
  Result<bool> run(std::vector<int> answers, bool pause_first = false) {
    auto next = answers.begin();
    const CopyWait wait{.take = [&](const std::string& from) -> Result<> {
                          asked_.push_back(from);
                          if (next == answers.end()) return {};
                          return fail(*next++, "no copy");
                        },
                        .stopping = [&] { return stops_; },
                        .status = [&](const std::string& text) { status_ = text; },
                        .pause_first = pause_first,
                        .pause = kPause};
    return wait.run(loop_, member_, Error(EINVAL, "why"));
  }

  static constexpr Milliseconds kPause{50};
  SystemClock clock_;
  EventLoop loop_{clock_};
  BootClock lead_clock_;
  SystemRandom random_;
  MemoryKeys server_;
  const LogKeys keys_{"/test"};
  MemoryStore store_;
  LogMember member_{loop_, random_,
                    LogMember::Options{.prefix = "/test",
                                       .name = "me",
                                       .place = "here",
                                       .connect = server_.connector(),
                                       .clock = lead_clock_,
                                       .status = {}}};
  std::vector<std::string> asked_;
  std::string status_;
  bool stops_ = false;
};

TEST_F(Waiting, TriesAgainUntilThereIsACopy) {
  leads("https://a:1");
  const SteadyTime begun = steady_now();
  EXPECT_TRUE(run({EBUSY, EIO, ENOSPC}).value());
  EXPECT_GE(steady_now() - begun, 3 * kPause);
  EXPECT_EQ(asked_, std::vector<std::string>(4, "https://a:1"));
  EXPECT_NE(status_.find("waits for a copy"), std::string::npos) << status_;
}

TEST_F(Waiting, WaitsForALeaderAndAsksWhoLeadsNow) {
  loop_.after(3 * kPause, [&] { leads("https://a:1"); });
  loop_.after(6 * kPause, [&] { leads("https://b:1"); });
  EXPECT_TRUE(run({EIO, EIO, EIO, EIO, EIO, EIO}).value());
  EXPECT_EQ(asked_.front(), "https://a:1");
  EXPECT_EQ(asked_.back(), "https://b:1");
}

TEST_F(Waiting, EndsWithTheDaemon) {
  loop_.after(2 * kPause, [&] { stops_ = true; });
  EXPECT_FALSE(run({}).value());  // nobody leads
  EXPECT_TRUE(asked_.empty());
  stops_ = false;
  leads("https://a:1");
  loop_.after(2 * kPause, [&] { stops_ = true; });
  EXPECT_FALSE(run(std::vector<int>(1000, EBUSY)).value());
  EXPECT_LT(asked_.size(), 10u);
}

TEST_F(Waiting, WhatDoesNotPassIsAnError) {
  leads("https://a:1");
  EXPECT_EQ(run({EPROTO}).error().number(), EPROTO);
  leads("");
  EXPECT_EQ(run({}).error().what(), "why");  // which says what to do without copies
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(Waiting, ACopyThatCameTooLateIsFollowedByAPause) {
  leads("https://a:1");
  const SteadyTime begun = steady_now();
  EXPECT_TRUE(run({}, true).value());
  EXPECT_GE(steady_now() - begun, kPause);
}

}  // namespace
}  // namespace pnfsrdma::mds
