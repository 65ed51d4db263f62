// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include "server/mds/state/delegation_table.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

// What one operation costs must not grow with what is held: with N² in it the large run is 100 times as dear.
constexpr size_t kFew = 1'000;
constexpr size_t kMany = 100'000;
constexpr size_t kManyOwners = 20'000;  // of one file
constexpr double kGrowthBorne = 8;      // caches, and the depth of trees

// Nanoseconds of processor time per each of `count`; the least of three.
double cost(size_t count, const std::function<double(size_t)>& measure) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) least = std::min(least, measure(count));
  return least / static_cast<double>(count);
}
double processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void expect_no_growth(const char* what, const std::function<double(size_t)>& measure,
                      size_t many_there_are = kMany) {
  const double few = cost(kFew, measure);
  const double many = cost(many_there_are, measure);
  std::printf("%-34s %8.0f ns with %zu, %8.0f ns with %zu\n", what, few, kFew, many, many_there_are);
  EXPECT_LT(many, few * kGrowthBorne) << what;
}

Bytes owner_of(size_t number) {
  Bytes owner(sizeof number);
  store_big_endian(owner.data(), uint64_t{number});
  return owner;
}

OpenState open_of(Random& random, uint64_t inode, size_t owner) {
  OpenState open;
  open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), random);
  open.client = 1;
  open.inode = inode;
  open.owner = owner_of(owner);
  open.access = kShareRead;
  return open;
}

TEST(StateScale, ClosingCostsTheSameHoweverManyFilesAClientHasOpen) {
  expect_no_growth("CLOSE, each of its own file", [](size_t count) {
    SeededRandom random{1};
    OpenTable opens;
    std::vector<OpenState*> open;
    for (size_t i = 0; i < count; ++i) open.push_back(&opens.add(open_of(random, i, 0)));
    const double begun = processor_nanoseconds();
    std::ranges::reverse(open);
    for (OpenState* each : open) opens.remove(*each);
    return processor_nanoseconds() - begun;
  });
}

TEST(StateScale, OpeningAndClosingCostTheSameHoweverManyHaveTheFileOpen) {
  expect_no_growth("OPEN and CLOSE, all of one file", [](size_t count) {
    SeededRandom random{1};
    OpenTable opens;
    std::vector<OpenState*> open;
    const double begun = processor_nanoseconds();
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(opens.find(1, 7, owner_of(i)), nullptr);
      EXPECT_TRUE(opens.share_allowed(7, kShareRead, 0, nullptr));
      open.push_back(&opens.add(open_of(random, 7, i)));
    }
    std::ranges::reverse(open);
    for (OpenState* each : open) opens.remove(*each);
    return processor_nanoseconds() - begun;
  });
}

TEST(StateScale, WhatAClientMayDoWithAFileCostsTheSameHoweverOftenItHasItOpen) {
  expect_no_growth("access of a client, one file", [](size_t count) {
    SeededRandom random{1};
    OpenTable opens;
    for (size_t i = 0; i < count; ++i) opens.add(open_of(random, 7, i));
    const double begun = processor_nanoseconds();
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(opens.access_of_client(7, 1), kShareRead);
      EXPECT_FALSE(opens.is_written_by_others(7, 1));
    }
    return processor_nanoseconds() - begun;
  });
}

// All of one file, each of its own client, or all of one client, each of its own file.
double delegations(size_t count, bool one_client) {
  SeededRandom random{1};
  DelegationTable table;
  std::vector<DelegationState*> held;
  const double begun = processor_nanoseconds();
  for (size_t i = 1; i <= count; ++i) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), random);
    state.client = one_client ? 1 : i;
    state.inode = one_client ? i : 7;
    EXPECT_EQ(table.find(state.inode, state.client), nullptr);
    held.push_back(&table.add(std::move(state)));
    EXPECT_EQ(table.is_held_by_others(held.back()->inode, held.back()->client), !one_client && i > 1);
  }
  std::ranges::reverse(held);
  for (DelegationState* each : held) table.remove(*each);
  return processor_nanoseconds() - begun;
}

TEST(StateScale, DelegationsCostTheSameHoweverManyAreHeld) {
  expect_no_growth("delegations, all of one file", [](size_t count) { return delegations(count, false); });
  expect_no_growth("delegations, all of one client", [](size_t count) { return delegations(count, true); });
}

TEST(StateScale, LocksAreForgottenAtTheSameCostHoweverManyAClientHas) {
  expect_no_growth("lock owners, each of its own file", [](size_t count) {
    SeededRandom random{1};
    LockTable locks;
    std::vector<LockState*> held;
    for (size_t i = 0; i < count; ++i) {
      LockState lock;
      lock.other = make_stateid_other(StateKind::kLock, SteadyTime(), random);
      lock.client = 1;
      lock.inode = i;
      held.push_back(&locks.add(std::move(lock)));
    }
    const double begun = processor_nanoseconds();
    std::ranges::reverse(held);
    for (LockState* each : held) locks.remove(*each);
    return processor_nanoseconds() - begun;
  });
}

LockState lock_of(Random& random, uint64_t inode, size_t owner) {
  LockState lock;
  lock.other = make_stateid_other(StateKind::kLock, SteadyTime(), random);
  lock.client = 1 + owner % 100;
  lock.inode = inode;
  lock.owner = owner_of(owner);
  return lock;
}

// One page of a database each, as fcntl has it: the first LOCK, LOCKT by somebody else, another LOCK, LOCKU.
TEST(StateScale, LocksCostTheSameHoweverManyOwnersLockTheFile) {
  expect_no_growth(
      "LOCK, LOCKT, LOCKU, one file",
      [](size_t count) {
        SeededRandom random{1};
        LockTable locks;
        std::vector<LockState*> held;
        const double begun = processor_nanoseconds();
        for (size_t i = 0; i < count; ++i) {
          const nfs4::LockRange page{i * 4096, i * 4096 + 4095, true};
          const Bytes owner = owner_of(i);
          EXPECT_EQ(locks.find(1 + i % 100, 7, owner), nullptr);
          EXPECT_FALSE(locks.conflict(7, page, 1 + i % 100, owner));
          LockState lock = lock_of(random, 7, i);
          lock.ranges.lock(page);
          held.push_back(&locks.add(std::move(lock)));
          EXPECT_TRUE(locks.conflict(7, {page.first, page.first, false}, 1, owner_of(count)));
          LockState less = *locks.find(1 + i % 100, 7, owner);
          less.ranges.unlock({page.first, page.first + 99, true});
          locks.replace(*held.back(), std::move(less));
          EXPECT_FALSE(locks.conflict(7, {page.first, page.first, true}, 1, owner_of(count)));
        }
        std::ranges::reverse(held);
        for (LockState* each : held) locks.remove(*each);
        return processor_nanoseconds() - begun;
      },
      kManyOwners);
}

// Everybody reads the whole file: nobody who wants to read, too, looks at them.
TEST(StateScale, AReadLockCostsTheSameHoweverManyOthersHold) {
  expect_no_growth(
      "LOCK of readers, one file",
      [](size_t count) {
        SeededRandom random{1};
        LockTable locks;
        const nfs4::LockRange whole{0, UINT64_MAX, false};
        const double begun = processor_nanoseconds();
        for (size_t i = 0; i < count; ++i) {
          EXPECT_FALSE(locks.conflict(7, whole, 1 + i % 100, owner_of(i)));
          LockState lock = lock_of(random, 7, i);
          lock.ranges.lock(whole);
          locks.add(std::move(lock));
          const bool others = locks.conflict(7, {5, 5, true}, 1 + i % 100, owner_of(i)).has_value();
          EXPECT_EQ(others, i > 0);
        }
        return processor_nanoseconds() - begun;
      },
      kManyOwners);
}

}  // namespace
}  // namespace pnfsrdma::mds
