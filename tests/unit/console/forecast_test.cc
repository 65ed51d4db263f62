// SPDX-License-Identifier: Apache-2.0
#include "server/console/forecast.h"

#include <gtest/gtest.h>

namespace pnfsrdma::console {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int64_t kStep = 480;

// 24 hours, `of` hours since the beginning.
std::vector<UsedAt> day(uint64_t (*of)(double hours), int points = 180) {
  std::vector<UsedAt> used;
  for (int i = 0; i < points; ++i)
    used.push_back({1'772'366'400 + i * kStep, of(static_cast<double>(i * kStep) / 3600)});
  return used;
}

TEST(Forecast, OfSteadyGrowthIsWhenTheRestIsUsed) {
  const auto found =
      forecast(day([](double hours) { return 10 * kGiB + static_cast<uint64_t>(hours * kGiB); }), 100 * kGiB);
  EXPECT_EQ(found.outlook, Forecast::Outlook::kGrowing);
  EXPECT_NEAR(*found.bytes_per_day / kGiB, 24, 0.01);
  EXPECT_NEAR(static_cast<double>(*found.full_in_seconds) / 3600, 100 - 10 - 23.87, 0.1);
  EXPECT_EQ(found.text, "Full in about 3 days at the rate of the last 24 hours.");
}

TEST(Forecast, OneLargeFileMakesNoTrend) {
  const auto found =
      forecast(day([](double hours) { return hours < 11 ? 10 * kGiB : 60 * kGiB; }), 100 * kGiB);
  EXPECT_EQ(found.outlook, Forecast::Outlook::kSteady);
  EXPECT_FALSE(found.full_in_seconds);
}

TEST(Forecast, SaysWhyThereIsNone) {
  const auto young =
      forecast(day([](double hours) { return static_cast<uint64_t>(hours * kGiB); }, 7), 100 * kGiB);
  EXPECT_EQ(young.outlook, Forecast::Outlook::kUnknown);
  EXPECT_FALSE(young.bytes_per_day);
  EXPECT_EQ(young.text, "No forecast yet: it needs an hour of history.");
  EXPECT_EQ(forecast({}, 100).outlook, Forecast::Outlook::kUnknown);
  EXPECT_EQ(forecast(day([](double) { return uint64_t{1}; }), 0).text,
            "No forecast: there is no capacity yet.");
  const auto shrinking =
      forecast(day([](double hours) { return 50 * kGiB - static_cast<uint64_t>(hours * kGiB); }), 100 * kGiB);
  EXPECT_EQ(shrinking.outlook, Forecast::Outlook::kSteady);
  EXPECT_LT(*shrinking.bytes_per_day, 0);
  EXPECT_EQ(shrinking.text, "Used space did not grow in the last 24 hours.");
  const auto slow =
      forecast(day([](double hours) { return static_cast<uint64_t>(hours * 1000); }), 100 * kGiB);
  EXPECT_EQ(slow.text, "Not full within a year, at the rate of the last 24 hours.");
}

TEST(Forecast, AFullOneIsFullNow) {
  const auto found =
      forecast(day([](double hours) { return static_cast<uint64_t>(hours * kGiB) + 1; }), 20 * kGiB);
  EXPECT_EQ(*found.full_in_seconds, 0u);
  EXPECT_EQ(found.text, "Full.");
}

}  // namespace
}  // namespace pnfsrdma::console
