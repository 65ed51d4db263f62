// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/setting_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "shared/base/log.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

struct Settings : ::testing::Test {
  ~Settings() override { set_log_level(LogLevel::kInfo); }

  Result<> change(SettingKeeper& keeper, const SettingKeeper::Changes& changes) {
    std::optional<Result<>> answer;
    keeper.change(changes, [&](Result<> given) { answer = std::move(given); });
    for (int i = 0; i < 100 && !answer; ++i) store.settle();
    return answer.value_or(fail(EIO, "no answer"));
  }
  static console::Setting find(const SettingKeeper& keeper, const std::string& name) {
    const auto all = keeper.all();
    const auto found = std::ranges::find(all, name, &console::Setting::name);
    return found == all.end() ? console::Setting{} : *found;
  }

  StoreUnderTest store{Engine::kMemory};
  Config config = *parse_config(R"({"lease_seconds": 20, "log_level": "warning"})");
  ServerLimits limits;
};

TEST_F(Settings, SayWhereEachValueComesFrom) {
  const SettingKeeper keeper(*store, config, limits);
  EXPECT_EQ(find(keeper, "lease_seconds").source, console::SettingSource::kFile);
  EXPECT_EQ(find(keeper, "lease_seconds").value, "20");
  EXPECT_EQ(find(keeper, "session_slots").source, console::SettingSource::kDefault);
  EXPECT_TRUE(find(keeper, "log_level").run_time);
  EXPECT_FALSE(find(keeper, "lease_seconds").run_time);
}

TEST_F(Settings, WhatIsChangedIsInForceAtOnceAndAfterARestart) {
  {
    SettingKeeper keeper(*store, config, limits);
    ASSERT_TRUE(change(keeper, {{"small_file_bytes", "4096"}, {"log_level", "\"debug\""}}));
    EXPECT_EQ(limits.small_file_bytes, 4096u);
    EXPECT_TRUE(log_enabled(LogLevel::kDebug));
    EXPECT_EQ(find(keeper, "log_level").source, console::SettingSource::kStore);
  }
  set_log_level(LogLevel::kInfo);
  limits.small_file_bytes = 1;
  SettingKeeper again(*store, config, limits);
  EXPECT_EQ(limits.small_file_bytes, 4096u);
  EXPECT_TRUE(log_enabled(LogLevel::kDebug));
  ASSERT_TRUE(change(again, {{"log_level", "null"}}));
  EXPECT_EQ(find(again, "log_level").source, console::SettingSource::kFile);
  EXPECT_EQ(find(again, "log_level").value, "\"warning\"");
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
}

TEST_F(Settings, AFileReadAgainIsInForceWhereNothingIsStored) {
  SettingKeeper keeper(*store, config, limits);
  ASSERT_TRUE(change(keeper, {{"small_file_bytes", "4096"}}));
  const Config fresh = *parse_config(
      R"({"lease_seconds": 30, "log_level": "debug", "small_file_bytes": 5000, "session_slots": 5})");
  EXPECT_EQ(keeper.reload(fresh), (std::vector<std::string>{"lease_seconds", "session_slots"}));
  EXPECT_TRUE(log_enabled(LogLevel::kDebug));
  EXPECT_EQ(limits.small_file_bytes, 4096u);
  EXPECT_EQ(find(keeper, "log_level").value, "\"debug\"");
  EXPECT_EQ(find(keeper, "lease_seconds").value, "20");  // which is in force
  ASSERT_TRUE(change(keeper, {{"small_file_bytes", "null"}}));
  EXPECT_EQ(limits.small_file_bytes, 5000u);
  EXPECT_EQ(find(keeper, "small_file_bytes").source, console::SettingSource::kFile);
  EXPECT_TRUE(keeper.reload(config).empty());
  EXPECT_EQ(find(keeper, "small_file_bytes").source, console::SettingSource::kDefault);
}

TEST_F(Settings, TheScheduleIsOneThatChangesAtRunTime) {
  {
    SettingKeeper keeper(*store, config, limits);
    EXPECT_EQ(keeper.snapshot_schedule(), SnapshotSchedule{});
    ASSERT_TRUE(change(keeper, {{"snapshot_schedule", R"({"hourly": 24, "minute": 15})"}}));
    EXPECT_EQ(change(keeper, {{"snapshot_schedule", R"({"hourly": 4001})"}}).error().number(), EINVAL);
    EXPECT_EQ(change(keeper, {{"snapshot_schedule", "7"}}).error().number(), EINVAL);
  }
  SettingKeeper again(*store, config, limits);
  EXPECT_EQ(again.snapshot_schedule(), (SnapshotSchedule{.hourly = 24, .minute = 15}));
  const Config fresh = *parse_config(R"({"snapshot_schedule": {"daily": 7}})");
  again.reload(fresh);
  EXPECT_EQ(again.snapshot_schedule().daily, 0u);
  ASSERT_TRUE(change(again, {{"snapshot_schedule", "null"}}));
  EXPECT_EQ(again.snapshot_schedule(), SnapshotSchedule{.daily = 7});
  again.reload(config);
  EXPECT_EQ(again.snapshot_schedule(), SnapshotSchedule{});
}

TEST_F(Settings, OneWrongValueChangesNone) {
  SettingKeeper keeper(*store, config, limits);
  const uint64_t before = limits.small_file_bytes;
  for (const auto& wrong : std::vector<std::pair<std::string, std::string>>{{"log_level", "\"loud\""},
                                                                            {"lease_seconds", "5"},
                                                                            {"small_file_bytes", "-1"},
                                                                            {"lease_seconds", "null"}})
    EXPECT_EQ(change(keeper, {{"small_file_bytes", "1"}, wrong}).error().number(), EINVAL) << wrong.first;
  EXPECT_EQ(limits.small_file_bytes, before);
  EXPECT_EQ(find(keeper, "small_file_bytes").source, console::SettingSource::kDefault);
}

}  // namespace
}  // namespace pnfsrdma::mds
