// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/busy_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace pnfsrdma::mds {
namespace {

TEST(BusyFiles, ASteadyRateIsToldAsItIs) {
  BusyFiles files;
  for (int second = 0; second < 300; ++second) {
    files.add(7, {.operations = 50, .read_bytes = 4096, .write_bytes = 100});
    files.add(8, {.operations = 20});
    files.age(1);
  }
  const auto busiest = files.busiest(10);
  ASSERT_EQ(busiest.size(), 2u);
  EXPECT_EQ(busiest[0].inode, 7u);
  EXPECT_NEAR(busiest[0].operations, 50, 1.5);
  EXPECT_NEAR(busiest[0].read_bytes, 4096, 120);
  EXPECT_NEAR(busiest[0].write_bytes, 100, 3);
  EXPECT_NEAR(busiest[1].operations, 20, 0.6);
  EXPECT_EQ(files.busiest(1).size(), 1u);
}

TEST(BusyFiles, OneThatIsIdleIsForgotten) {
  BusyFiles files;
  files.add(7, {.operations = 1000});
  EXPECT_EQ(files.busiest(10).size(), 1u);
  files.age(600);
  EXPECT_TRUE(files.busiest(10).empty());
}

// A busy file among many that are touched once; the table has room for few.
TEST(BusyFiles, ManyThatComeOnceDoNotKeepABusyOneOut) {
  BusyFiles files;
  uint64_t once = 1'000'000;
  for (size_t i = 0; i < BusyFiles::kFiles; ++i) files.add(once++, {.operations = 3});
  for (int second = 0; second < 120; ++second) {
    for (int i = 0; i < 100; ++i) {
      files.add(once++, {.operations = 1});
      if (i % 5 == 0) files.add(7, {.operations = 1});
    }
    files.age(1);
  }
  const auto busiest = files.busiest(1);
  ASSERT_EQ(busiest.size(), 1u);
  EXPECT_EQ(busiest[0].inode, 7u);
  EXPECT_NEAR(busiest[0].operations, 20, 2);
}

TEST(BusyFiles, NeverTellMoreThanThereWas) {
  std::mt19937_64 random(11);
  BusyFiles files;
  std::map<uint64_t, double> counts;
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t inode = random() % 5 == 0 ? 5 : random() % 2000;
    files.add(inode, {.operations = 1});
    counts[inode] += 1;
    if (i % 100 != 0) continue;
    files.age(1);
    for (auto& [number, count] : counts) count *= std::exp2(-1 / BusyFiles::kHalfLife);
  }
  const double per_second = std::log(2.0) / BusyFiles::kHalfLife;
  const auto busiest = files.busiest(BusyFiles::kFiles);
  ASSERT_FALSE(busiest.empty());
  for (const BusyFiles::Rate& rate : busiest)
    EXPECT_LE(rate.operations, counts.at(rate.inode) * per_second * 1.000001);
  EXPECT_EQ(busiest[0].inode, 5u);
  EXPECT_NEAR(busiest[0].operations, counts.at(5) * per_second, 0.1);
}

}  // namespace
}  // namespace pnfsrdma::mds
