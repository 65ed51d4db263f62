// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace pnfsrdma::rdma::iwarp {

// Decides how long a waiter looks for input before it sleeps. A wake-up costs tens of microseconds, so it
// spins where answers have lately come within that time; never when the process has one CPU to run on, where
// it would only keep the other side from running. Belongs to the waiting thread.
class Spin {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Spin();
  Duration budget() const { return budget_; }
  // Input came while spinning.
  void paid() { budget_ = kLongest; }
  // It did not, and came after this long in all.
  void slept(Duration waited);

 private:
  static constexpr Duration kLongest = std::chrono::microseconds(50);
  static constexpr Duration kShortest = std::chrono::microseconds(2);
  static constexpr uint32_t kRecheck = 1024;  // sleeps between looks at the CPU affinity

  void look_at_affinity();

  bool several_cpus_ = false;
  uint32_t sleeps_ = 0;
  Duration budget_{0};
};

}  // namespace pnfsrdma::rdma::iwarp
