// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <functional>
#include <memory>

#include "shared/base/result.h"
#include "shared/initiator/brick/device.h"
#include "shared/initiator/brick/fabric.h"

namespace pnfsrdma::initiator {

// The errno of a brick that could not be asked; not for applications (Patience::as_mounted() says what that
// means on this mount).
inline constexpr int kBrickSilent = EHOSTDOWN;

// The server has said it; it is not that nobody has waited for what it says.
bool is_answer(const Error& error);

// How long one waits for a brick, and who still wants to know. All but still_wanted() wait, so never under a
// mutex. Thread-safe; without a state of its own.
class Patience {
 public:
  explicit Patience(const Fabric& fabric) : fabric_(fabric) {}

  // Error: the mount ends (ESHUTDOWN), or whoever asked was killed (EINTR).
  Result<> still_wanted(const char* what) const;
  // Between two tries. Error: this was the last one.
  Result<> rest_of_brick(SteadyTime deadline) const;
  // A brick whose connection has just died rests for a moment; that alone must not become the EIO of an
  // fsync.
  Result<std::shared_ptr<Connection>> connect(Device& device) const;
  // What kBrickSilent means to an application; by no thread that others need.
  Result<> as_mounted(const std::function<Result<>()>& operation) const;

 private:
  const Fabric& fabric_;
};

}  // namespace pnfsrdma::initiator
