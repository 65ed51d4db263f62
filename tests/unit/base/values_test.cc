// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>

#include <thread>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(EINVAL, "half of an odd number");
  return value / 2;
}
Result<int> quarter(int value) {
  TRY_ASSIGN(const int first, half(value));
  TRY(half(first));
  return first / 2;
}

TEST(Result, TryPassesTheFirstErrorOn) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().number(), EINVAL);
  EXPECT_EQ(quarter(7).error().in("counting").to_string(),
            "counting: half of an odd number: Invalid argument");
}

TEST(BigEndian, StoresAndLoadsEveryWidth) {
  std::byte bytes[8];
  store_big_endian<uint64_t>(bytes, 0x0102030405060708);
  EXPECT_EQ(to_hex(bytes), "0102030405060708");
  EXPECT_EQ(load_big_endian<uint64_t>(bytes), 0x0102030405060708u);
  EXPECT_EQ(load_big_endian<uint32_t>(bytes), 0x01020304u);
  EXPECT_EQ(load_big_endian<uint16_t>(bytes), 0x0102u);
  EXPECT_EQ(load_big_endian<uint8_t>(bytes), 1u);
  store_big_endian<uint8_t>(bytes, 0xFE);
  EXPECT_EQ(load_big_endian<uint8_t>(bytes), 0xFEu);
}

TEST(Random, TheSameSeedGivesTheSameBytesAndTheSystemDoesNot) {
  SeededRandom a(7), b(7);
  EXPECT_EQ(a.next_u64(), b.next_u64());
  SystemRandom system;
  EXPECT_NE(system.next_u64(), system.next_u64());
}

TEST(FileDescriptor, ClosesOnceAndMoves) {
  const int raw = open("/dev/null", O_RDONLY);
  {
    FileDescriptor first(raw);
    FileDescriptor second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the point
    EXPECT_EQ(second.get(), raw);
  }
  EXPECT_EQ(fcntl(raw, F_GETFD), -1);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const auto before = clock.now();
  EXPECT_EQ(clock.now(), before);
  clock.advance(Milliseconds(1500));
  EXPECT_EQ(clock.now() - before, Milliseconds(1500));
  EXPECT_EQ(clock.wall_now().nanoseconds, 500'000'000u);
}

TEST(Guarded, CountsFromManyThreads) {
  Guarded<int> count(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) ++*count.lock();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*count.lock(), 4000);
}

}  // namespace
}  // namespace pnfsrdma
