// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::initiator {

// A LAYOUTGET that travels behind an OPEN, for a file whose handle is not known yet. While one lives, a
// recall that matches nothing we hold is answered DELAY instead of NOMATCHING_LAYOUT: it may have overtaken
// the reply (RFC 8881, 12.5.5.2.1).
class PendingLayout {
 public:
  PendingLayout(std::atomic<int>& count, uint64_t epoch, uint32_t hole_era)
      : count_(&count), epoch_(epoch), hole_era_(hole_era) {
    ++count;
  }
  PendingLayout(PendingLayout&& other) noexcept
      : arguments(std::move(other.arguments)),
        count_(std::exchange(other.count_, nullptr)),
        epoch_(other.epoch_),
        hole_era_(other.hole_era_) {}
  PendingLayout& operator=(PendingLayout&&) = delete;
  ~PendingLayout() {
    if (count_ != nullptr) --*count_;
  }

  // Append it to the OPEN's COMPOUND, behind everything that must not fail with it, and a GETATTR of the size
  // behind it. None: layouts are off.
  std::optional<nfs4::LayoutGetArguments> arguments;

  // DataPath's count of layouts_lost() when it was made: an answer from before is void.
  uint64_t epoch() const { return epoch_; }
  // HoleTrust::era() then.
  uint32_t hole_era() const { return hole_era_; }

 private:
  std::atomic<int>* count_;
  uint64_t epoch_;
  uint32_t hole_era_;
};

}  // namespace pnfsrdma::initiator
