// SPDX-License-Identifier: Apache-2.0
#include "library/preload/descriptor_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace pnfsrdma::preload {
namespace {

using State = DescriptorTable::State;

constexpr Attached kSomewhere{.mount = 1, .file = 2, .device = 3, .inode = 4};

bool same(const Attached& a, const Attached& b) {
  return a.mount == b.mount && a.file == b.file && a.device == b.device && a.inode == b.inode;
}

class DescriptorTableTest : public testing::Test {
 protected:
  const std::unique_ptr<DescriptorTable> whole_ = std::make_unique<DescriptorTable>();
  DescriptorTable& table_ = *whole_;
};

TEST_F(DescriptorTableTest, KnowsWhatWasOpenedAndNothingElse) {
  EXPECT_FALSE(table_.knows(3));
  EXPECT_EQ(table_.find(3).state, State::kUnknown);
  table_.opened(3);
  EXPECT_TRUE(table_.knows(3));
  EXPECT_EQ(table_.find(3).state, State::kOpened);
  table_.attached(3, kSomewhere);
  EXPECT_EQ(table_.find(3).state, State::kAttached);
  EXPECT_TRUE(same(table_.find(3).attached, kSomewhere));
  table_.forget(3);
  EXPECT_FALSE(table_.knows(3));
}

TEST_F(DescriptorTableTest, WhatWasNotOpenedHereIsNotAttached) {
  table_.attached(3, kSomewhere);
  table_.refused(4);
  EXPECT_FALSE(table_.knows(3));
  EXPECT_FALSE(table_.knows(4));
}

TEST_F(DescriptorTableTest, AnOpenBeginsAnew) {
  table_.opened(3);
  table_.attached(3, kSomewhere);
  table_.read_up_to(3, 4096);
  table_.opened(3);
  EXPECT_EQ(table_.find(3).state, State::kOpened);
  EXPECT_EQ(table_.next_read(3), 0u);
}

TEST_F(DescriptorTableTest, NumbersThatAreNoneOrTooHighAreTheKernels) {
  for (const int number : {-1, DescriptorTable::kDescriptors, INT32_MAX}) {
    table_.opened(number);
    table_.attached(number, kSomewhere);
    table_.copied(3, number);
    EXPECT_FALSE(table_.knows(number));
    EXPECT_EQ(table_.find(number).state, State::kUnknown);
  }
}

TEST_F(DescriptorTableTest, ACopyIsWhatItWasMadeOf) {
  table_.opened(3);
  table_.attached(3, kSomewhere);
  table_.copied(3, 9);
  EXPECT_TRUE(same(table_.find(9).attached, kSomewhere));
  table_.copied(5, 9);  // of what is not known
  EXPECT_FALSE(table_.knows(9));
  table_.copied(3, 3);
  EXPECT_TRUE(table_.knows(3));
}

TEST_F(DescriptorTableTest, BehindAForkThePositionsOfWhatWasOpenAreShared) {
  table_.opened(3);
  table_.opened(4);
  table_.attached(4, kSomewhere);
  table_.share_all();
  EXPECT_TRUE(table_.find(3).is_shared);
  EXPECT_TRUE(table_.find(4).is_shared);
  table_.attached(3, kSomewhere);
  table_.copied(3, 8);
  EXPECT_TRUE(table_.find(3).is_shared) << "attached behind the fork, and opened before it";
  EXPECT_TRUE(table_.find(8).is_shared);
  table_.opened(5);
  EXPECT_FALSE(table_.find(5).is_shared);
}

TEST_F(DescriptorTableTest, AChildKnowsNothingOfWhatItsParentHasOpened) {
  table_.opened(3);
  table_.forget_all();
  EXPECT_EQ(table_.find(3).state, State::kUnknown);
  table_.attached(3, kSomewhere);
  EXPECT_EQ(table_.find(3).state, State::kUnknown);
  table_.copied(3, 4);
  EXPECT_EQ(table_.find(4).state, State::kUnknown);
  table_.opened(3);
  EXPECT_EQ(table_.find(3).state, State::kOpened);
}

TEST_F(DescriptorTableTest, IsAsASimpleModelOfIt) {
  struct Known {
    State state = State::kUnknown;
    bool is_shared = false;
    uint32_t file = 0;
  };
  for (unsigned seed = 1; seed <= 20; ++seed) {
    auto table = std::make_unique<DescriptorTable>();
    std::map<int, Known> model;
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      const int one = static_cast<int>(random() % 8), other = static_cast<int>(random() % 8);
      const bool known = model[one].state != State::kUnknown;
      switch (random() % 16) {
        case 0:
          table->share_all();
          for (auto& [number, each] : model) each.is_shared = each.state != State::kUnknown;
          break;
        case 1:
          if (random() % 4 != 0) break;
          table->forget_all();
          model.clear();
          break;
        case 2:
        case 3:
          table->forget(one);
          model[one] = {};
          break;
        case 4:
        case 5:
          table->copied(one, other);
          model[other] = model[one];
          break;
        case 6:
          table->refused(one);
          if (known) model[one] = {State::kRefused, model[one].is_shared, 0};
          break;
        case 7:
        case 8:
        case 9:
          table->attached(one, {.mount = 1, .file = static_cast<uint32_t>(i), .device = 1, .inode = 1});
          if (known) model[one] = {State::kAttached, model[one].is_shared, static_cast<uint32_t>(i)};
          break;
        default:
          table->opened(one);
          model[one] = {State::kOpened, false, 0};
      }
      for (int number = 0; number < 8; ++number) {
        const auto entry = table->find(number);
        ASSERT_EQ(entry.state, model[number].state) << "seed " << seed << ", step " << i;
        if (entry.state == State::kUnknown) continue;
        ASSERT_EQ(entry.is_shared, model[number].is_shared) << "seed " << seed << ", step " << i;
        ASSERT_EQ(entry.attached.file, model[number].file) << "seed " << seed << ", step " << i;
      }
    }
  }
}

TEST_F(DescriptorTableTest, WhoLooksWhileOthersWriteSeesOneOrTheOther) {
  std::vector<std::thread> threads;
  std::atomic<bool> ends = false;
  for (uint32_t writer = 1; writer <= 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (uint32_t i = 0; i < 20000; ++i) {
        table_.opened(3);
        table_.attached(
            3, {.mount = writer, .file = i, .device = writer + uint64_t{i}, .inode = writer ^ uint64_t{i}});
      }
      ends = true;
    });
  }
  while (!ends) {
    const auto entry = table_.find(3);
    if (entry.state != State::kAttached) continue;
    const Attached& seen = entry.attached;
    ASSERT_EQ(seen.device, seen.mount + uint64_t{seen.file});
    ASSERT_EQ(seen.inode, seen.mount ^ uint64_t{seen.file});
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace pnfsrdma::preload
