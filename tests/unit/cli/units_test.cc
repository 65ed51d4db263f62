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

TEST(Units, AsPeopleTypeThem) {
  EXPECT_EQ(bytes_of("0"), 0u);
  EXPECT_EQ(bytes_of("4096"), 4096u);
  EXPECT_EQ(bytes_of("10G"), 10ull << 30);
  EXPECT_EQ(bytes_of("10GiB"), 10ull << 30);
  EXPECT_EQ(bytes_of("512m"), 512ull << 20);
  for (const char* bad :
       {"", "G", "-1", "10X", "1.5G", "10 G", "10GB", "10GG", "9000P", "99999999999999999999", "1iB"})
    EXPECT_FALSE(bytes_of(bad)) << bad;
  EXPECT_EQ(count_of("50K"), 50'000u);
  EXPECT_EQ(count_of("3M"), 3'000'000u);
  EXPECT_FALSE(count_of("3MiB"));
  EXPECT_EQ(seconds_of("90s"), 90u);
  EXPECT_EQ(seconds_of("7d"), 604'800u);
  EXPECT_EQ(seconds_of("0"), 0u);
  for (const char* bad : {"", "7", "7w", "d", "213503982334602d", "-1d"})
    EXPECT_FALSE(seconds_of(bad)) << bad;
  EXPECT_EQ(time_of("1970-01-02T00:00:01.5Z"), std::chrono::system_clock::from_time_t(86'401));
  EXPECT_FALSE(time_of("yesterday"));
}

}  // namespace
}  // namespace pnfsrdma::cli
