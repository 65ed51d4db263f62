// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/initiator/credential.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::initiator {

// Under which open an operation runs. Asked at call time: stateids change after a reclaim.
struct OpenState {
  nfs4::Stateid stateid;
  Credential credential;
};
class OpenStateSource {
 public:
  virtual ~OpenStateSource() = default;
  // An open with write access when `for_write`, else any with read access. None: the file is not open that
  // way (EBADF). Called without locks of the data path, from any thread of it; must not block on a wire call.
  virtual std::optional<OpenState> open_state(bool for_write) = 0;
  // The write delegation of the file, until it has been returned. None: there is none, or the server has taken it back.
  virtual std::optional<OpenState> write_delegation() { return std::nullopt; }
  // It is in force, while the lease lasts. Whoever ends it has the data path send what it holds before it is returned.
  virtual bool may_hold() { return false; }
  // Locks on the file went with an open that the server took back, and their owners do not know yet.
  virtual bool locks_lost() { return false; }
};

}  // namespace pnfsrdma::initiator
