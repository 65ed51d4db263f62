// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cstdio>
#include <functional>
#include <limits>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds {
namespace {

using testing::kAlice;
using testing::kBob;
using testing::LayoutWorld;

// As tests/unit/mds/state/scale_test.cc: what one operation costs must not grow with what the client holds.
constexpr size_t kFewLayouts = 200;
constexpr size_t kManyLayouts = 6'400;
constexpr double kLayoutGrowthBorne = 8;

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::array<std::byte, 12> stateid_of(size_t number) {
  std::array<std::byte, 12> other{};
  store_big_endian(other.data() + 4, uint64_t{number});
  other[0] = kLayoutStateidTag;
  return other;
}

// A client that holds an empty layout of each of so many files.
void hold(LayoutWorld& world, size_t count) {
  auto& table = const_cast<LayoutTable&>(world.mds->table());  // past the brick: what is held, not how
  for (size_t i = 0; i < count; ++i) table.add(1000 + i, kAlice, stateid_of(i)).advance();
}

double cost_of_each(size_t held, const std::function<void(LayoutWorld&, size_t number)>& operation) {
  constexpr size_t kRounds = 100;
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    LayoutWorld world;
    hold(world, held);
    const double begun = processor_time();
    for (size_t number = 0; number < kRounds; ++number) operation(world, number * held / kRounds);
    least = std::min(least, (processor_time() - begun) / kRounds);
  }
  return least;
}

void expect_same_cost(const char* what, const std::function<void(LayoutWorld&, size_t number)>& operation) {
  const double few = cost_of_each(kFewLayouts, operation);
  const double many = cost_of_each(kManyLayouts, operation);
  std::printf("%-34s %8.0f ns with %zu, %8.0f ns with %zu\n", what, few, kFewLayouts, many, kManyLayouts);
  EXPECT_LT(many, few * kLayoutGrowthBorne) << what;
}

TEST(LayoutScale, AStateidIsTestedAtTheSameCostHoweverManyLayoutsTheClientHas) {
  expect_same_cost("TEST_STATEID", [](LayoutWorld& world, size_t number) {
    EXPECT_EQ(world.mds->conflicts().test_stateid(kAlice, {1, stateid_of(number)}), nfs4::Status::kOk);
    EXPECT_EQ(world.mds->conflicts().test_stateid(kBob, {1, stateid_of(number)}), nfs4::Status::kBadStateid);
  });
}

// One grant for each grain, as a fragmented file has.
TEST(LayoutScale, AGapIsFoundAtTheSameCostHoweverManyGrantsTheLayoutHas) {
  const auto cost = [](size_t grants) {
    HeldLayout layout(kAlice, 7, stateid_of(1));
    for (size_t i = 0; i < grants; ++i)
      layout.add_grant({.grant = i + 1, .file = {i * 4096, (i + 1) * 4096}, .logical = i * 8192});
    double least = std::numeric_limits<double>::max();
    for (int round = 0; round < 3; ++round) {
      const double begun = processor_time();
      for (size_t i = 0; i < 100; ++i) {
        const uint64_t offset = i * grants / 100 * 4096;
        EXPECT_TRUE(layout.gaps({offset, offset + 4096}, IoMode::kRead).empty());
        EXPECT_NE(layout.at(offset, IoMode::kRead), nullptr);
        EXPECT_TRUE(layout.holds({offset, offset + 4096}, IoMode::kAny));
      }
      least = std::min(least, (processor_time() - begun) / 100);
    }
    return least;
  };
  const double few = cost(kFewLayouts);
  const double many = cost(kManyLayouts);
  std::printf("%-34s %8.0f ns with %zu, %8.0f ns with %zu\n", "a segment of a layout", few, kFewLayouts, many,
              kManyLayouts);
  EXPECT_LT(many, few * kLayoutGrowthBorne);
}

// Behind a long one, and however many only read.
TEST(LayoutScale, WhoWritesBehindAnOffsetIsKnownAtTheSameCostHoweverManyRead) {
  const auto cost = [](size_t grants) {
    constexpr uint64_t kLong = uint64_t{1} << 40;
    LayoutTable table;
    HeldLayout& layout = table.add(7, kAlice, stateid_of(1));
    table.add_grant(layout, {.grant = 1, .file = {0, kLong}, .logical = kLong, .writable = true});
    for (size_t i = 0; i < grants; ++i) {
      const uint64_t offset = kLong + i * 4096;
      table.add_grant(layout, {.grant = i + 2, .file = {offset, offset + 4096}, .logical = i * 8192});
    }
    double least = std::numeric_limits<double>::max();
    for (int round = 0; round < 3; ++round) {
      const double begun = processor_time();
      for (size_t i = 0; i < 100; ++i) {
        const uint64_t offset = kLong + i * grants / 100 * 4096;
        EXPECT_FALSE(table.writable_past(7, offset));
        EXPECT_FALSE(table.writable_past(7, offset, kAlice));
        EXPECT_FALSE(layout.holds({offset, offset + 4096}, IoMode::kReadWrite));
        EXPECT_EQ(layout.rounded_out({offset, kEndOfFile}).begin, offset);
      }
      least = std::min(least, (processor_time() - begun) / 100);
    }
    return least;
  };
  const double few = cost(kFewLayouts);
  const double many = cost(kManyLayouts);
  std::printf("%-34s %8.0f ns with %zu, %8.0f ns with %zu\n", "who writes behind an offset", few, kFewLayouts,
              many, kManyLayouts);
  EXPECT_LT(many, few * kLayoutGrowthBorne);
}

TEST(LayoutScale, TheEndOfAClientIsSpreadOverTurns) {
  LayoutWorld world;
  constexpr size_t kHeld = 1000;
  hold(world, kHeld);
  bool done = false;
  world.mds->conflicts().on_client_gone(kAlice, [&] { done = true; });
  size_t turns = 0;
  while (!done && turns < 1000) {
    const size_t before = world.mds->table().files_of_client(kAlice).size();
    world.loop.run_once(Milliseconds(0));
    const size_t after = world.mds->table().files_of_client(kAlice).size();
    EXPECT_LE(before - after, 100u) << "in one turn";
    ++turns;
  }
  EXPECT_TRUE(done);
  EXPECT_TRUE(world.mds->table().files_of_client(kAlice).empty());
  EXPECT_GE(turns, kHeld / 100);
}

}  // namespace
}  // namespace pnfsrdma::mds
