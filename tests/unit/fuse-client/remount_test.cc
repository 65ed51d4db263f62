// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/remount.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

namespace pnfsrdma::fuse_client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kNow =
    "rw,nosuid,relatime,user_id=0,group_id=0,default_permissions,allow_other,max_read=1048576";

TEST(Remount, IsAskedForAmongOtherOptions) {
  EXPECT_TRUE(is_remount({"rw", "nosuid,remount,ro"}));
  EXPECT_FALSE(is_remount({"remounted", "x-remount"}));
}

TEST(Remount, KeepsTheFlagsThatAreNotNamed) {
  const auto plan = plan_remount(kNow, {"remount,ro"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->flags, static_cast<unsigned long>(MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_RELATIME));
  EXPECT_THAT(plan->ignored, IsEmpty());
}

TEST(Remount, TheLastWordCounts) {
  const auto plan = plan_remount(kNow, {"ro,remount", "rw,suid,noexec"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->flags, static_cast<unsigned long>(MS_REMOUNT | MS_NOEXEC | MS_RELATIME));
}

TEST(Remount, WhatMountEightReadFromTheKernelOrFstabIsNoChange) {
  const auto plan =
      plan_remount(kNow, {std::string(kNow) + ",remount,ro,_netdev,nofail,x-systemd.automount"});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->ignored, IsEmpty());
}

TEST(Remount, NamesWhatOnlyANewMountCanChange) {
  const auto plan = plan_remount(kNow, {"remount,ro,timeo=100,soft"});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->ignored, ElementsAre("timeo=100", "soft"));
}

TEST(Remount, RefusesWhatIsUnknown) {
  EXPECT_FALSE(plan_remount(kNow, {"remount,frobnicate"}));
  EXPECT_FALSE(plan_remount(kNow, {"remount,timeo=abc"}));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
