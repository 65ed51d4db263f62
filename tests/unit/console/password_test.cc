// SPDX-License-Identifier: Apache-2.0
#include "server/console/password.h"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>

namespace pnfsrdma::console {
namespace {

constexpr PasswordCost kCost{.operations = 2, .memory_bytes = 16 << 20};

// Of this thread's CPU: what else runs on the machine does not count.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double began = now();
  work();
  return now() - began;
}

TEST(PasswordHasher, KnowsTheRightPasswordFromAWrongOne) {
  PasswordHasher hasher(kCost);
  const auto hash = hasher.hash("correct horse");
  ASSERT_TRUE(hash);
  EXPECT_EQ(hasher.verify(*hash, "correct horse"), PasswordHasher::Verdict::kRight);
  EXPECT_EQ(hasher.verify(*hash, "correct hors"), PasswordHasher::Verdict::kWrong);
  EXPECT_EQ(hasher.verify("", "correct horse"), PasswordHasher::Verdict::kWrong);
}

TEST(PasswordHasher, NobodyCostsAsMuchAsSomebody) {
  PasswordHasher hasher(kCost);
  const auto hash = hasher.hash("somebody's");
  ASSERT_TRUE(hash);
  const double somebody = seconds_of([&] { (void)hasher.verify(*hash, "wrong"); });
  const double nobody = seconds_of([&] { (void)hasher.verify("", "wrong"); });
  EXPECT_GT(nobody, somebody / 2);
  EXPECT_LT(nobody, somebody * 2);
}

TEST(PasswordHasher, IsReadyWithoutHashing) {
  PasswordHasher hasher(kCost);
  const double once = seconds_of([&] { (void)hasher.hash("anything"); });
  EXPECT_LT(seconds_of([] { const PasswordHasher another(kCost); }), once / 4);
}

}  // namespace
}  // namespace pnfsrdma::console
