// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/memory_budget.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"

namespace pnfsrdma::rpc {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

class MemoryBudgetTest : public testing::Test {
 protected:
  void start(MemoryLimits limits) {
    budget_ = std::make_unique<MemoryBudget>(clock_, limits);
    budget_->start(loop_);
  }
  std::shared_ptr<MemoryAccount> open(const std::string& peer, int* ended = nullptr) {
    auto account = budget_->open(peer);
    if (account && ended != nullptr) {
      account->handle({.on_relief = nullptr, .on_victim = [ended, account = account.get()] {
                         ++*ended;
                         account->hold(0, 0, false);
                       }});
    }
    return account;
  }
  void pass(Milliseconds time) {
    for (; time.count() > 0; time -= Milliseconds(500)) {
      clock_.advance(Milliseconds(500));
      loop_.run_once(Milliseconds(0));
    }
  }

  ManualClock clock_;
  std::unique_ptr<MemoryBudget> budget_;
  EventLoop loop_{clock_};
};

TEST(AddressOfPeer, IsTheHostAndOfIpv6TheNetwork) {
  EXPECT_EQ(address_of_peer("192.0.2.7:1023"), "192.0.2.7");
  EXPECT_EQ(address_of_peer("[2001:db8:1:2:3:4:5:6]:1023"), address_of_peer("[2001:db8:1:2::9]:7"));
  EXPECT_NE(address_of_peer("[2001:db8:1:2::9]:7"), address_of_peer("[2001:db8:1:3::9]:7"));
  EXPECT_EQ(address_of_peer("[::ffff:192.0.2.7]:1023"), "192.0.2.7");
  EXPECT_EQ(address_of_peer("unix"), "unix");
}

TEST_F(MemoryBudgetTest, OneAddressIsStoppedAtItsLimitAndOthersGoOn) {
  start({.bytes = 8 * kMebibyte, .bytes_per_address = 2 * kMebibyte});
  const auto greedy = open("192.0.2.1:1");
  const auto small = open("192.0.2.1:2");
  const auto other = open("192.0.2.2:1");
  greedy->hold(3 * kMebibyte, 3 * kMebibyte, false);
  other->hold(kMebibyte, kMebibyte, false);
  EXPECT_FALSE(greedy->may_read());
  EXPECT_TRUE(small->may_read()) << "it holds no more than the floor";
  EXPECT_TRUE(other->may_read());
  EXPECT_FALSE(small->has_room(kMebibyte));
  EXPECT_TRUE(other->has_room(kMebibyte));
  EXPECT_EQ(budget_->waiting(), 1u);
}

TEST_F(MemoryBudgetTest, NearTheEndWhoHoldsMoreThanHisShareIsStopped) {
  start({.bytes = 8 * kMebibyte, .bytes_per_address = 8 * kMebibyte});
  const auto greedy = open("192.0.2.1:1");
  const auto other = open("192.0.2.2:1");
  greedy->hold(5 * kMebibyte, 5 * kMebibyte, false);
  other->hold(kMebibyte / 2, kMebibyte / 2, false);
  EXPECT_TRUE(greedy->may_read()) << "there is enough";
  greedy->hold(6 * kMebibyte, 6 * kMebibyte, false);
  EXPECT_FALSE(greedy->may_read());
  EXPECT_TRUE(other->may_read());
}

TEST_F(MemoryBudgetTest, WhoWaitsIsToldWhenThereIsRoom) {
  start({.bytes = 8 * kMebibyte, .bytes_per_address = 2 * kMebibyte});
  const auto one = open("192.0.2.1:1");
  const auto other = open("192.0.2.1:2");
  int relieved = 0;
  other->handle({.on_relief = [&] { ++relieved; }, .on_victim = nullptr});
  one->hold(2 * kMebibyte, 2 * kMebibyte, false);
  other->hold(kMebibyte, kMebibyte, false);
  EXPECT_FALSE(other->may_read());
  one->hold(0, 0, false);
  pass(Milliseconds(500));
  EXPECT_EQ(relieved, 1);
  EXPECT_TRUE(other->may_read());
  EXPECT_EQ(budget_->waiting(), 0u);
}

TEST_F(MemoryBudgetTest, HalfARecordThatStandsStillEndsItsConnection) {
  start({.stalled_record = Milliseconds(5000)});
  int stalled = 0;
  int moving = 0;
  int idle = 0;
  const auto one = open("192.0.2.1:1", &stalled);
  const auto other = open("192.0.2.1:2", &moving);
  const auto silent = open("192.0.2.1:3", &idle);
  one->hold(100, 100, true);
  other->hold(100, 100, true);
  for (int second = 0; second < 7; ++second) {
    other->moved();
    pass(Milliseconds(1000));
  }
  EXPECT_EQ(stalled, 1);
  EXPECT_EQ(moving, 0);
  EXPECT_EQ(idle, 0) << "a connection without a request may be silent";
  EXPECT_EQ(budget_->ended(), 1u);
}

// Those first that have completed nothing for the longest time, and only as many as are needed.
TEST_F(MemoryBudgetTest, WhenStoppingDoesNotHelpConnectionsOfTheAddressThatHoldsMostEnd) {
  start({.bytes = 8 * kMebibyte, .bytes_per_address = 4 * kMebibyte});
  int old_ended = 0;
  int young_ended = 0;
  int other_ended = 0;
  const auto old_one = open("192.0.2.1:1", &old_ended);
  pass(Milliseconds(2000));
  const auto young = open("192.0.2.1:2", &young_ended);
  const auto other = open("192.0.2.2:1", &other_ended);
  old_one->hold(3 * kMebibyte, 3 * kMebibyte, true);
  young->hold(3 * kMebibyte, 3 * kMebibyte, true);
  other->hold(kMebibyte, kMebibyte, true);
  EXPECT_FALSE(old_one->may_read());
  EXPECT_FALSE(young->may_read());
  pass(Milliseconds(3000));
  EXPECT_EQ(old_ended, 1);
  EXPECT_EQ(young_ended, 0);
  EXPECT_EQ(other_ended, 0);
  EXPECT_TRUE(young->may_read());
}

// Each gives back what it had, and whoever waits is asked again: among many no turn is long.
TEST_F(MemoryBudgetTest, ATurnEndsAndRelievesFew) {
  start(
      {.bytes = 512 * kMebibyte, .bytes_per_address = 64 * kMebibyte, .stalled_record = Milliseconds(5000)});
  int ended = 0, relieved = 0, before = 0;
  const auto turn = [&](int& count) { before = std::exchange(count, 0), loop_.run_once(Milliseconds(0)); };
  std::vector<std::shared_ptr<MemoryAccount>> accounts;
  for (int i = 0; i < 128; ++i) {
    accounts.push_back(open("192.0.2.1:" + std::to_string(i), &ended));
    accounts.back()->hold(kMebibyte, kMebibyte, true);
  }
  std::vector<std::shared_ptr<MemoryAccount>> waiting;
  for (int i = 0; i < 100; ++i) {
    waiting.push_back(budget_->open("192.0.2.1:" + std::to_string(1000 + i)));
    waiting.back()->handle({.on_relief = [&] { ++relieved; }, .on_victim = nullptr});
    waiting.back()->hold(20'000, 0, false);
    EXPECT_FALSE(waiting.back()->may_read());
  }
  clock_.advance(Milliseconds(2000));
  int all = 0;
  for (int i = 0; i < 40; ++i, all += before) {
    turn(ended);
    EXPECT_LE(ended, 8) << i;
  }
  // Down to three quarters of what the address may have: 130 MiB held, 48 allowed.
  EXPECT_EQ(all + ended, 82);
  all = 0;
  for (int i = 0; i < 10; ++i, all += before) {
    clock_.advance(Milliseconds(10));
    turn(relieved);
    EXPECT_LE(relieved, 32) << i;
  }
  EXPECT_EQ(all + relieved, 100);
}

// While connections of those who hold most end, over many turns, nobody else has to.
TEST_F(MemoryBudgetTest, WhoHoldsLittleIsNoVictimWhileOthersEnd) {
  start({.bytes = 64 * kMebibyte, .bytes_per_address = 64 * kMebibyte});
  int greedy = 0, modest = 0;
  std::vector<std::shared_ptr<MemoryAccount>> accounts;
  for (int i = 0; i < 60; ++i) {
    accounts.push_back(open("192.0.2." + std::to_string(1 + i % 2) + ":" + std::to_string(i), &greedy));
    accounts.back()->hold(kMebibyte, kMebibyte, true);
  }
  for (int i = 0; i < 3; ++i) {
    accounts.push_back(open("192.0.2.9:" + std::to_string(i), &modest));
    accounts.back()->hold(100'000, 100'000, true);
  }
  EXPECT_FALSE(accounts.front()->may_read());
  for (int i = 0; i < 10; ++i) {
    pass(Milliseconds(500));
    EXPECT_EQ(modest, 0);
  }
  EXPECT_EQ(greedy, 13) << "48 MiB are left";
}

TEST_F(MemoryBudgetTest, NewConnectionsAreRefusedByAddressAndWhenAllIsUsed) {
  start({.bytes = 2 * kMebibyte, .bytes_per_address = 2 * kMebibyte, .connections_per_address = 2});
  auto one = open("192.0.2.1:1");
  const auto other = open("192.0.2.1:2");
  EXPECT_EQ(open("192.0.2.1:3"), nullptr);
  EXPECT_NE(open("192.0.2.2:1"), nullptr);
  one.reset();
  one = open("192.0.2.1:3");
  ASSERT_NE(one, nullptr) << "the place of one that has ended";
  one->hold(2 * kMebibyte, 2 * kMebibyte, false);
  EXPECT_NE(open("192.0.2.2:1"), nullptr) << "a newcomer, a little longer";
  one->hold(3 * kMebibyte, 3 * kMebibyte, false);
  EXPECT_EQ(open("192.0.2.2:1"), nullptr);
  EXPECT_EQ(budget_->refused(), 2u);
  one.reset();
  EXPECT_NE(open("192.0.2.2:1"), nullptr);
}

TEST_F(MemoryBudgetTest, KeptAnswersTakeHalfOfItAtMost) {
  start({.bytes = 8 * kMebibyte});
  EXPECT_TRUE(budget_->reserve(3 * kMebibyte));
  EXPECT_FALSE(budget_->reserve(2 * kMebibyte));
  EXPECT_EQ(budget_->held(), 3 * kMebibyte) << "nothing of what was refused";
  budget_->give_back(3 * kMebibyte);
  EXPECT_EQ(budget_->held(), 0u);
}

TEST_F(MemoryBudgetTest, StateAndKeptAnswersLeaveAQuarterToConnections) {
  start({.bytes = 8 * kMebibyte});
  EXPECT_EQ(budget_->state_limit(), 4 * kMebibyte);
  budget_->hold_state(4 * kMebibyte);
  EXPECT_TRUE(budget_->reserve(2 * kMebibyte));
  EXPECT_FALSE(budget_->reserve(1));
  EXPECT_EQ(budget_->reservable(), 0u);
  // What a start has brought.
  budget_->hold_state(20 * kMebibyte);
  EXPECT_EQ(budget_->held(), 6 * kMebibyte);
  const auto account = open("192.0.2.1:1");
  ASSERT_NE(account, nullptr);
  account->hold(kMebibyte, kMebibyte, false);
  EXPECT_TRUE(account->may_read());
  account->hold(3 * kMebibyte, 3 * kMebibyte, false);
  EXPECT_FALSE(account->may_read());
  budget_->give_back_state(24 * kMebibyte);
  EXPECT_TRUE(account->may_read());
  EXPECT_EQ(budget_->reservable(), 2 * kMebibyte);
  EXPECT_TRUE(budget_->reserve(2 * kMebibyte));
  EXPECT_EQ(budget_->state_limit(), 2 * kMebibyte);
}

TEST_F(MemoryBudgetTest, AfterABurstTheHeapGivesBackAndInSteadyLoadItDoesNot) {
  start({});
  const auto account = open("192.0.2.1:1");
  for (int second = 0; second < 20; ++second) {
    account->hold(60 * kMebibyte, 60 * kMebibyte, false);
    account->hold(0, 0, false);
    pass(Milliseconds(1000));
  }
  EXPECT_EQ(budget_->trims(), 0u);
  pass(Milliseconds(20000));
  EXPECT_EQ(budget_->trims(), 2u);
  pass(Milliseconds(60000));
  EXPECT_EQ(budget_->trims(), 2u);
}

}  // namespace
}  // namespace pnfsrdma::rpc
