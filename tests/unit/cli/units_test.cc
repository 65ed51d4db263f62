// SPDX-License-Identifier: Apache-2.0
#include "cli/output/units.h"

#include <gtest/gtest.h>

namespace pnfsrdma::cli {
namespace {

TEST(Units, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536.0 * 1024 * 1024), "1.5 GiB");
  // Not "1024.0 KiB".
  EXPECT_EQ(bytes_text(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(double(UINT64_MAX)), "16.0 EiB");
}

TEST(Units, CountsAndTimes) {
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(12'345), "12.3 k");
  EXPECT_EQ(duration_text(std::chrono::seconds(59)), "59 s");
  EXPECT_EQ(duration_text(std::chrono::seconds(3600 * 5 + 61)), "5 h 1 min");
  EXPECT_EQ(duration_text(std::chrono::seconds(86400 * 6 + 3600 * 7)), "6 d 7 h");
  EXPECT_EQ(latency_text(std::chrono::microseconds(42)), "42.0 us");
  EXPECT_EQ(latency_text(std::chrono::milliseconds(1300)), "1.3 s");
}

}  // namespace
}  // namespace pnfsrdma::cli
