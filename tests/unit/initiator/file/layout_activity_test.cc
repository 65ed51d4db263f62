// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/layout_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;

TEST(LayoutActivityTest, WhatIsTakenIsTakenOnce) {
  LayoutActivity activity;
  EXPECT_FALSE(activity.any());
  activity.add(Direction::kRead, 4096);
  activity.add(Direction::kRead, 512);
  activity.add(Direction::kWrite, 100);
  ASSERT_TRUE(activity.any());
  nfs4::Stateid layout;
  layout.seqid = 7;
  const nfs4::LayoutStatisticsArguments taken = activity.take(layout);
  EXPECT_EQ(taken.stateid.seqid, 7u);
  EXPECT_EQ(taken.read.count, 2u);
  EXPECT_EQ(taken.read.bytes, 4608u);
  EXPECT_EQ(taken.write.count, 1u);
  EXPECT_EQ(taken.write.bytes, 100u);
  EXPECT_EQ(taken.update.layout_type, nfs4::kLayoutTypePmem);
  EXPECT_FALSE(activity.any());
}

class LayoutActivityOfAFile : public DataPathTest {
 protected:
  void SetUp() override {
    options_now.activity_distance = 1h;
    make_file(4 << 20);
  }
};

TEST_F(LayoutActivityOfAFile, IsToldWhenALayoutIsReturned) {
  write(0, 4096, 1);
  write(8192, 4096, 1);
  expect_read(0, 4096, 1);
  path->shut_down(steady_now() + 5s);
  ASSERT_EQ(channel.activity.size(), 1u);
  EXPECT_EQ(channel.activity[0].write.count, 2u);
  EXPECT_EQ(channel.activity[0].write.bytes, 8192u);
  EXPECT_EQ(channel.activity[0].read.count, 1u);
  EXPECT_EQ(channel.activity[0].read.bytes, 4096u);
}

TEST_F(LayoutActivityOfAFile, IsNotToldWhereNobodyWantsIt) {
  options_now.activity_distance = 0ms;
  make_file(4 << 20);
  write(0, 4096, 1);
  path->shut_down(steady_now() + 5s);
  EXPECT_GE(channel.layoutreturns, 1);
  EXPECT_TRUE(channel.activity.empty());
}

TEST_F(LayoutActivityOfAFile, IsToldFromTimeToTimeWhileTheLayoutIsHeld) {
  options_now.activity_distance = 10ms;
  make_file(4 << 20);
  write(0, 4096, 1);
  const auto told = [this] { return channel.written_as_told(); };
  for (int i = 0; i < 500 && told() < 4096; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(told(), 4096u);
  EXPECT_EQ(channel.layoutreturns, 0);
  // Nothing done, nothing told.
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(told(), 4096u);
}

}  // namespace
}  // namespace pnfsrdma::initiator
