// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shared/base/sync.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::initiator {

// Stateids that are no longer used and were not returned: the server may have revoked them and then
// remembers them until they are freed (FREE_STATEID, RFC 8881, 18.38). Bounded: the oldest are forgotten;
// the server forgets them with the lease. Thread-safe.
class LostStateids {
 public:
  static constexpr size_t kMax = 4096;

  void add(const nfs4::Stateid& stateid);
  void remove(const nfs4::Stateid& stateid);
  void clear();
  std::vector<nfs4::Stateid> all() const;

 private:
  mutable Mutex mutex_;
  std::vector<nfs4::Stateid> stateids_;  // oldest first
};

}  // namespace pnfsrdma::initiator
