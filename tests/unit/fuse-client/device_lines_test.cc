// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/device_lines.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace pnfsrdma::fuse_client {
namespace {

using Admission = DeviceLines::Admission;

struct DeviceLinesTest : testing::Test {
  static constexpr size_t kMost = 2;

  Admission admit(std::vector<DeviceLines::Device> devices, uint8_t name = 0) {
    const std::vector<std::byte> message(10, std::byte{name});
    return lines.admit(devices, message, 1000 + name, SteadyTime{});
  }
  // The name of the request that the worker takes along, -1 for none.
  int left(int worker, bool soon = false) {
    const auto next = lines.left(&workers[static_cast<size_t>(worker)], soon);
    return next ? std::to_integer<int>(next->message.at(0)) : -1;
  }
  void held_up(int worker, DeviceLines::Device device) {
    lines.held_up(&workers[static_cast<size_t>(worker)], device);
  }

  std::array<char, 8> workers{};
  char one = 0, other = 0;
  DeviceLines lines{{.workers_per_device = kMost, .workers_nowhere = 4, .requests = 5, .bytes = 45}};
};

TEST_F(DeviceLinesTest, NobodyIsParkedWhereFewAreHeldUp) {
  EXPECT_FALSE(lines.any());
  held_up(0, &one);
  EXPECT_TRUE(lines.any());
  EXPECT_EQ(admit({&one}), Admission::kGo);
  EXPECT_EQ(left(0), -1);
  EXPECT_FALSE(lines.any());
}

TEST_F(DeviceLinesTest, OnlyWhatNeedsTheFullDeviceIsParked) {
  held_up(0, &one);
  held_up(1, &one);
  EXPECT_EQ(admit({&one}), Admission::kParked);
  EXPECT_EQ(admit({&other, &one}), Admission::kParked);
  EXPECT_EQ(admit({&other}), Admission::kGo);
  EXPECT_EQ(admit({}), Admission::kGo);
  EXPECT_EQ(lines.parked(), 2u);
  EXPECT_EQ(lines.parked_bytes(), 20u);
}

TEST_F(DeviceLinesTest, WhoLeavesTakesTheFirstOfItsOwnLineAlong) {
  held_up(0, &one);
  held_up(1, &one);
  held_up(2, &other);
  held_up(3, &other);
  for (uint8_t name = 1; name <= 2; ++name) EXPECT_EQ(admit({&one}, name), Admission::kParked);
  EXPECT_EQ(admit({&other}, 3), Admission::kParked);
  EXPECT_EQ(left(1), 1);
  EXPECT_EQ(left(2), 3);
  EXPECT_EQ(left(0), 2);
  EXPECT_EQ(left(0), -1);
  EXPECT_EQ(left(1), -1);
  EXPECT_EQ(admit({&one}), Admission::kGo);
}

TEST_F(DeviceLinesTest, NeverMoreThanItMayKeepGoOnAtALine) {
  for (int worker = 0; worker < 5; ++worker) held_up(worker, &one);
  EXPECT_EQ(admit({&one}, 1), Admission::kParked);
  EXPECT_EQ(left(0), -1);
  EXPECT_EQ(left(1), -1);
  EXPECT_EQ(left(2), -1);
  EXPECT_EQ(left(3), 1);
}

TEST_F(DeviceLinesTest, ADeviceThatAnswersIsOpenForWhatComesWhileItsLineIsWorkedOff) {
  held_up(0, &one);
  held_up(1, &one);
  for (uint8_t name = 1; name <= 3; ++name) EXPECT_EQ(admit({&one}, name), Admission::kParked);
  EXPECT_EQ(left(0, false), 1);
  EXPECT_EQ(admit({&one}, 4), Admission::kParked);
  EXPECT_EQ(left(0, true), 2);
  EXPECT_EQ(admit({&one}, 5), Admission::kGo);
  // Silent again.
  held_up(2, &one);
  EXPECT_EQ(admit({&one}, 6), Admission::kParked);
}

TEST_F(DeviceLinesTest, WhatNobodyKnowsThePlaceOfHasALineToo) {
  for (int worker = 0; worker < 4; ++worker) held_up(worker, nullptr);
  EXPECT_EQ(admit({&one}), Admission::kGo);
  EXPECT_EQ(admit({}, 1), Admission::kParked);
  EXPECT_EQ(left(3), 1);
}

TEST_F(DeviceLinesTest, ThereIsRoomForSoMany) {
  held_up(0, &one);
  held_up(1, &one);
  for (uint8_t name = 1; name <= 4; ++name) EXPECT_EQ(admit({&one}, name), Admission::kParked);
  EXPECT_EQ(admit({&one}, 5), Admission::kNoRoom);  // 40 of 45 bytes
  EXPECT_EQ(left(0), 1);
  EXPECT_EQ(admit({&one}, 5), Admission::kParked);
  EXPECT_EQ(lines.parked_bytes(), 40u);
}

TEST_F(DeviceLinesTest, EachIsLookedAtInTurnAndCanBeTakenOut) {
  held_up(0, &one);
  held_up(1, &one);
  for (uint8_t name = 1; name <= 4; ++name) EXPECT_EQ(admit({&one}, name), Admission::kParked);
  std::map<pid_t, uint64_t> seen;
  for (int turn = 0; turn < 2; ++turn) {
    for (const auto& look : lines.look(2)) seen[look.caller] = look.number;
  }
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(lines.look(100).size(), 4u);
  const auto taken = lines.take(seen[1001]);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->caller, 1001);
  EXPECT_FALSE(lines.take(seen[1001]));
  EXPECT_EQ(left(0), 2);
  EXPECT_EQ(lines.close().size(), 2u);
  EXPECT_EQ(lines.parked_bytes(), 0u);
  EXPECT_EQ(admit({&one}), Admission::kGo);
  EXPECT_EQ(left(0), -1);
}

// Whatever happens: nothing parked is forgotten, and a line never stands without somebody at it.
TEST_F(DeviceLinesTest, NoLineIsLeftAlone) {
  std::minstd_rand random(7);
  const auto up_to = [&](size_t end) { return random() % end; };
  const std::array<DeviceLines::Device, 3> devices{&one, &other, nullptr};
  std::map<size_t, bool> at_it;
  size_t parked = 0;
  size_t served = 0;
  for (int step = 0; step < 100'000; ++step) {
    const size_t worker = up_to(workers.size());
    if (at_it[worker]) {
      at_it[worker] = left(static_cast<int>(worker), up_to(4) == 0) >= 0;
      served += at_it[worker] ? 1 : 0;
    } else if (up_to(2) == 0) {
      held_up(static_cast<int>(worker), devices[up_to(3)]);
      at_it[worker] = true;
    } else {
      parked += admit({devices[up_to(3)]}) == Admission::kParked ? 1 : 0;
    }
    if (up_to(50) == 0) {
      for (const auto& look : lines.look(1)) served += lines.take(look.number) ? 1 : 0;
    }
    const bool nobody = std::none_of(at_it.begin(), at_it.end(), [](const auto& at) { return at.second; });
    ASSERT_EQ(lines.any(), !nobody);
    ASSERT_EQ(lines.parked(), parked - served);
    if (nobody) {
      ASSERT_EQ(lines.parked(), 0u);
    }
  }
  for (auto& [worker, busy] : at_it) {
    while (busy) {
      busy = left(static_cast<int>(worker)) >= 0;
      served += busy ? 1 : 0;
    }
  }
  EXPECT_EQ(lines.parked(), 0u);
  EXPECT_EQ(parked, served);
  EXPECT_GT(parked, 1000u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
