// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_state.h"

#include <algorithm>
#include <mutex>

#include "shared/base/check.h"

namespace pnfsrdma::fuse_client {

bool PageState::outdated_by(const PageAnswer& answer, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  // Who asks the server from here on gets what is newer than this answer: only what was handed out before
  // counts.
  if (drops_in_doubt_ > 0) return true;
  const bool has_pages = handed_out_ || drops_ > 0;
  const uint64_t kernel_size = kernel_size_;
  // The page at the end that the kernel knows has zeros behind it.
  if (has_pages && kernel_size != kUnknown && answer.size > kernel_size) return true;
  if (change_ == answer.change) {
    checked_at_ = std::max(checked_at_, answer.asked_at);
    return false;
  }
  if (overtaken(answer)) return false;
  // Heard before ours was sent: so `change_` does not count ours yet, and one more is ours.
  const bool own =
      answer.of_own_change && change_ && answer.change == *change_ + 1 && answer.asked_at > change_heard_at_;
  if (has_pages && !own) return true;
  renew(answer, now);
  return false;
}

bool PageState::written(uint64_t offset, uint64_t end) {
  uint64_t known = kernel_size_;
  while (known != kUnknown && end > known && !kernel_size_.compare_exchange_weak(known, end)) {
  }
  return known != kUnknown && offset > known && handed_out_;
}

void PageState::begin_drop() {
  const std::lock_guard lock(mutex_);
  ++drops_;
  handed_out_ = false;
}

void PageState::end_drop(const PageAnswer& answer, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  CHECK(drops_ > 0);
  --drops_;
  if (!overtaken(answer)) renew(answer, now);
  // The page at the old end is gone.
  uint64_t known = kernel_size_;
  while (known != kUnknown && answer.size > known &&
         !kernel_size_.compare_exchange_weak(known, answer.size)) {
  }
}

void PageState::begin_drop_in_doubt() {
  const std::lock_guard lock(mutex_);
  ++drops_in_doubt_;
  handed_out_ = false;
}

void PageState::end_drop_in_doubt(SteadyTime begun) {
  const std::lock_guard lock(mutex_);
  CHECK(drops_in_doubt_ > 0);
  --drops_in_doubt_;
  checked_at_ = std::max(checked_at_, begun);
}

bool PageState::may_be_there() const {
  if (handed_out_) return true;
  const std::lock_guard lock(mutex_);
  return handed_out_ || drops_ > 0 || drops_in_doubt_ > 0;
}

SteadyTime PageState::checked_at() const {
  const std::lock_guard lock(mutex_);
  return checked_at_;
}

bool PageState::overtaken(const PageAnswer& answer) const {
  return change_ && answer.asked_at < checked_at_ && answer.change < *change_;
}

void PageState::renew(const PageAnswer& answer, SteadyTime now) {
  if (change_ != answer.change) change_heard_at_ = now;
  change_ = answer.change;
  checked_at_ = std::max(checked_at_, answer.asked_at);
}

}  // namespace pnfsrdma::fuse_client
