// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/exclusion.h"

namespace pnfsrdma::initiator {

namespace {

constexpr std::chrono::seconds kLook{1};

}  // namespace

Result<> Exclusion::enter(const Wanted& wanted) {
  std::unique_lock lock(mutex_);
  while (alone_) {
    TRY(wanted());
    changed_.wait_for(lock, kLook);
  }
  ++inside_;
  return {};
}

void Exclusion::leave() {
  std::lock_guard lock(mutex_);
  if (--inside_ == 0 && alone_) changed_.notify_all();
}

Result<> Exclusion::enter_alone(const Wanted& wanted) {
  std::unique_lock lock(mutex_);
  while (alone_) {
    TRY(wanted());
    changed_.wait_for(lock, kLook);
  }
  alone_ = true;
  while (inside_ > 0) {
    if (Result<> still = wanted(); !still) {
      alone_ = false;
      changed_.notify_all();
      return still;
    }
    changed_.wait_for(lock, kLook);
  }
  return {};
}

void Exclusion::leave_alone() {
  std::lock_guard lock(mutex_);
  alone_ = false;
  changed_.notify_all();
}

}  // namespace pnfsrdma::initiator
