// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/caller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace pnfsrdma::fuse_client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CallerGroups, AreReadFromTheStatusText) {
  EXPECT_THAT(parse_groups("Name:\tcat\nUid:\t1\t1\nGroups:\t4 24 1000 \nVmPeak:\t8"),
              ElementsAre(4, 24, 1000));
  EXPECT_THAT(parse_groups("Name:\tcat\nGroups:\t \nVmPeak:\t8 kB"), IsEmpty());
  EXPECT_THAT(parse_groups("Name:\tGroups: 5"), IsEmpty());
  EXPECT_THAT(parse_groups(""), IsEmpty());
}

TEST(CallerGroups, MoreThanAuthSysCarriesAreCutOff) {
  std::string text = "x\nGroups:\t";
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + " ";
  EXPECT_EQ(parse_groups(text).size(), initiator::kCredentialGroupsMax);
}

TEST(CallerGroups, AProcessThatIsGoneHasItsGroupOnly) {
  const SystemClock clock;
  CallerGroups callers(clock);
  EXPECT_EQ(callers.credential(5, 6, 999999999), (initiator::Credential{5, 6, {}}));
  EXPECT_EQ(callers.credential(0, 0, ::getpid()), (initiator::Credential{0, 0, {}}));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
