// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/killed_caller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace pnfsrdma::fuse_client {
namespace {

std::string status(const std::string& own, const std::string& shared) {
  return "Name:\tcat\nThreads:\t1\nSigPnd:\t" + own + "\nShdPnd:\t" + shared +
         "\nSigBlk:\t0000000000000100\n";
}

// The fields of /proc/<tid>/stat behind the name: state, ..., flags, ..., exit code.
std::string stat(const std::string& name, uint64_t flags, int exit_code) {
  std::string text = "17 (" + name + ") R 1 17 17 0 -1 " + std::to_string(flags);
  for (int i = 0; i < 42; ++i) text += " 7";
  return text + " " + std::to_string(exit_code) + "\n";
}

TEST(KilledCaller, OnlySigkillIsFatal) {
  EXPECT_TRUE(has_fatal_signal(status("0000000000000100", "0000000000000000")));
  EXPECT_TRUE(has_fatal_signal(status("0000000000000000", "0000000000000102")));
  EXPECT_FALSE(has_fatal_signal(status("0000000000000002", "0000000000004000")));
  EXPECT_FALSE(has_fatal_signal(""));
}

TEST(KilledCaller, AnExitOfItsOwnStillWaitsForItsFlush) {
  EXPECT_TRUE(dies_of_signal(stat("cat", 0x4, 9)));
  EXPECT_TRUE(dies_of_signal(stat(") 0 (", 0x40404, 0x80 | 6)));
  EXPECT_FALSE(dies_of_signal(stat("cat", 0x4, 1 << 8)));
  EXPECT_FALSE(dies_of_signal(stat("cat", 0x400, 9)));
  EXPECT_FALSE(dies_of_signal(""));
  EXPECT_FALSE(dies_of_signal("17 (cat) R 1"));
}

TEST(KilledCaller, WhoLivesIsNotGone) {
  KilledCaller self(::gettid());
  EXPECT_FALSE(self.requested());
  ::usleep(250'000);
  EXPECT_FALSE(self.requested());
  KilledCaller kernel(0);
  EXPECT_FALSE(kernel.requested());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
