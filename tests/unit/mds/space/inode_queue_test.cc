// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/inode_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pnfsrdma::mds {
namespace {

TEST(InodeQueue, ExclusiveTurnsComeOneAfterTheOtherInOrder) {
  InodeQueue queue;
  std::vector<InodeQueue::Turn> turns;
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    queue.exclusive(1, [&, name](InodeQueue::Turn turn) {
      order += name;
      turns.push_back(std::move(turn));
    });
  }
  EXPECT_EQ(order, "a");
  turns[0].reset();
  EXPECT_EQ(order, "ab");
  turns[1].reset();
  turns[2].reset();
  EXPECT_TRUE(queue.idle(1));
}

TEST(InodeQueue, AnyNumberThatEndAtOnceNeedsNoStack) {
  InodeQueue queue;
  InodeQueue::Turn first;
  queue.exclusive(1, [&](InodeQueue::Turn turn) { first = std::move(turn); });
  constexpr size_t kWaiting = 200'000;
  size_t done = 0;
  for (size_t i = 0; i < kWaiting; ++i) {
    queue.exclusive(1, [&, i](InodeQueue::Turn) {
      EXPECT_EQ(done, i);
      ++done;
    });
  }
  first.reset();
  EXPECT_EQ(done, kWaiting);
  EXPECT_TRUE(queue.idle(1));
}

TEST(InodeQueue, SharedTurnsRunTogetherButNeverOvertakeAnExclusiveOne) {
  InodeQueue queue;
  std::vector<InodeQueue::Turn> turns;
  std::string order;
  const auto note = [&](char name) {
    return [&, name](InodeQueue::Turn turn) {
      order += name;
      turns.push_back(std::move(turn));
    };
  };
  queue.shared(1, note('r'));
  queue.shared(1, note('s'));
  queue.exclusive(1, note('x'));
  queue.shared(1, note('t'));
  EXPECT_EQ(order, "rs");
  turns[0].reset();
  EXPECT_EQ(order, "rs");
  turns[1].reset();
  EXPECT_EQ(order, "rsx");
  turns[2].reset();
  EXPECT_EQ(order, "rsxt");
}

TEST(InodeQueue, OtherFilesDoNotWait) {
  InodeQueue queue;
  InodeQueue::Turn held;
  queue.exclusive(1, [&](InodeQueue::Turn turn) { held = std::move(turn); });
  bool ran = false;
  queue.exclusive(2, [&](InodeQueue::Turn) { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(InodeQueue, MayEndBeforeItsTurns) {
  InodeQueue::Turn held;
  {
    InodeQueue queue;
    queue.exclusive(1, [&](InodeQueue::Turn turn) { held = std::move(turn); });
    queue.exclusive(1, [](InodeQueue::Turn) { FAIL() << "nobody is left to run this"; });
  }
  held.reset();
}

}  // namespace
}  // namespace pnfsrdma::mds
