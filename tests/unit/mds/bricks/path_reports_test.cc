// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/path_reports.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

constexpr BrickUuid kBrick{std::byte{1}};
constexpr BrickUuid kOther{std::byte{2}};
constexpr auto kNoPath = nfs4::Status::kNxIo;
const SteadyTime kNow{std::chrono::hours(1)};

TEST(PathReports, IsNewsOnceAndForceUntilNobodyRepeatsIt) {
  PathReports reports;
  EXPECT_TRUE(reports.note(7, kBrick, kNoPath, kNow));
  EXPECT_FALSE(reports.note(7, kBrick, nfs4::Status::kIo, kNow + PathReports::kValid));
  const auto current = reports.current(kNow + 2 * PathReports::kValid);
  ASSERT_EQ(current.size(), 1u);
  EXPECT_EQ(current[0].client, 7u);
  EXPECT_EQ(current[0].brick, kBrick);
  EXPECT_EQ(current[0].report.error, nfs4::Status::kIo);
  EXPECT_EQ(current[0].report.first, kNow);
  EXPECT_TRUE(reports.current(kNow + 2 * PathReports::kValid + Milliseconds(1)).empty());
}

TEST(PathReports, IsNewsAgainAfterItWasVoid) {
  PathReports reports;
  EXPECT_TRUE(reports.note(7, kBrick, kNoPath, kNow));
  const SteadyTime later = kNow + PathReports::kValid + Milliseconds(1);
  EXPECT_TRUE(reports.note(7, kBrick, kNoPath, later));
  EXPECT_EQ(reports.current(later).at(0).report.first, later);
}

TEST(PathReports, ClientsAndBricksAreApart) {
  PathReports reports;
  EXPECT_TRUE(reports.note(7, kBrick, kNoPath, kNow));
  EXPECT_TRUE(reports.note(7, kOther, kNoPath, kNow));
  EXPECT_TRUE(reports.note(8, kBrick, kNoPath, kNow));
  EXPECT_EQ(reports.current(kNow).size(), 3u);
}

TEST(PathReports, KeepsNoMoreThanItsLimitAndDropsWhatIsVoid) {
  PathReports reports;
  for (uint64_t client = 0; client < PathReports::kReportsMax; ++client)
    EXPECT_TRUE(reports.note(client, kBrick, kNoPath, kNow));
  EXPECT_FALSE(reports.note(1 << 20, kBrick, kNoPath, kNow));
  EXPECT_EQ(reports.current(kNow).size(), PathReports::kReportsMax);
  // Those that are known may still be repeated.
  EXPECT_FALSE(reports.note(0, kBrick, kNoPath, kNow + PathReports::kValid));
  const SteadyTime later = kNow + PathReports::kValid + Milliseconds(1);
  EXPECT_TRUE(reports.note(1 << 20, kBrick, kNoPath, later));
  EXPECT_EQ(reports.current(later).size(), 2u);
}

}  // namespace
}  // namespace pnfsrdma::mds
