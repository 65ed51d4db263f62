// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// Many at once, or one alone, which goes first. Waits are looked at once a second: an error of `wanted` ends
// them. Thread-safe.
class Exclusion {
 public:
  using Wanted = std::function<Result<>()>;

  // Then exactly one leave().
  Result<> enter(const Wanted& wanted);
  void leave();
  // Then exactly one leave_alone().
  Result<> enter_alone(const Wanted& wanted);
  void leave_alone();

 private:
  Mutex mutex_;
  Condition changed_;
  size_t inside_ = 0;
  bool alone_ = false;
};

}  // namespace pnfsrdma::initiator
