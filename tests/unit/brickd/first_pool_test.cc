// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/first_pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "server/brickd/check_command.h"
#include "shared/pmem/mapping.h"

namespace pnfsrdma::brick {
namespace {

namespace fs = std::filesystem;

struct FirstPool : testing::Test {
  FirstPool() : folder(mkdtemp(pattern.data())) {
    config.pool = {.path = folder / "pool", .size = "8M", .create = true};
  }
  ~FirstPool() override { fs::remove_all(folder); }

  bool is_sound() const {
    const auto mapping = pmem::Mapping::open(config.pool.path);
    if (!mapping) return false;
    const auto report = check_pool((*mapping)->bytes());
    return report && report->problems.empty();
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  std::string pattern = "/tmp/pnfsrdma-first-pool-XXXXXX";
  fs::path folder;
  SystemRandom random;
  Config config;
};

TEST_F(FirstPool, IsMadeWhereThereIsNone) {
  ASSERT_TRUE(make_first_pool(config, random));
  EXPECT_TRUE(is_sound());
  EXPECT_EQ(files(), 1U);
}

TEST_F(FirstPool, IsNotMadeUnlessTheConfigurationSaysSo) {
  config.pool.create = false;
  ASSERT_TRUE(make_first_pool(config, random));
  EXPECT_EQ(files(), 0U);
}

TEST_F(FirstPool, WhatIsThereIsNeverTouched) {
  std::ofstream(config.pool.path) << "somebody's data";
  ASSERT_TRUE(make_first_pool(config, random));
  EXPECT_EQ(fs::file_size(config.pool.path), 15U);
  fs::remove(config.pool.path);
  ASSERT_TRUE(make_first_pool(config, random));
  const auto made = fs::last_write_time(config.pool.path);
  ASSERT_TRUE(make_first_pool(config, random));
  EXPECT_EQ(fs::last_write_time(config.pool.path), made);
}

TEST_F(FirstPool, ARestOfOneThatWasCutShortIsNoObstacle) {
  std::ofstream(config.pool.path + ".new") << "half";
  ASSERT_TRUE(make_first_pool(config, random));
  EXPECT_TRUE(is_sound());
  EXPECT_EQ(files(), 1U);
}

TEST_F(FirstPool, LeavesHalfOfTheFreeSpace) {
  config.pool.size = "1000T";
  const auto result = make_first_pool(config, random);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().number(), ENOSPC);
  EXPECT_NE(result.error().to_string().find("pool.size"), std::string::npos);
  EXPECT_EQ(files(), 0U);
}

TEST_F(FirstPool, SaysWhichFolderIsMissing) {
  config.pool.path = folder / "not-there" / "pool";
  const auto result = make_first_pool(config, random);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().to_string().find("not-there"), std::string::npos);
}

}  // namespace
}  // namespace pnfsrdma::brick
