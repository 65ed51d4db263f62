// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace pnfsrdma::crash {

// The mains. Everything that changes what would be found after a power cut announces it here first: stores,
// flushes and fences of the brick, commits and syncs of the metadata. At the chosen event the power fails:
// `cut` runs, in whichever thread came first, with the mutex held, under which journal and metadata change
// too; so it sees all of them at one moment. What runs on behind it is of no account.
class Power {
 public:
  using Lock = std::lock_guard<std::recursive_mutex>;

  // `cut` is called at the event number `from_now` from here, and if `every` is not 0 at each `every`th after
  // it.
  void arm(uint64_t from_now, std::function<void()> cut, uint64_t every = 0) {
    const Lock lock(mutex_);
    cut_ = std::move(cut);
    next_ = events_ + from_now;
    every_ = every;
  }
  void disarm() {
    const Lock lock(mutex_);
    cut_ = nullptr;
  }

  void event() {
    const Lock lock(mutex_);
    if (++events_ < next_ || !cut_) return;
    const auto cut = cut_;
    next_ = events_ + every_;
    if (every_ == 0) cut_ = nullptr;
    cut();
  }

  std::recursive_mutex& mutex() { return mutex_; }
  uint64_t events() {
    const Lock lock(mutex_);
    return events_;
  }

 private:
  std::recursive_mutex mutex_;
  std::function<void()> cut_;
  uint64_t events_ = 0;
  uint64_t next_ = 0;
  uint64_t every_ = 0;
};

}  // namespace pnfsrdma::crash
