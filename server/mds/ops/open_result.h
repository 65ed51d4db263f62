// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "shared/nfs4/operations.h"

namespace pnfsrdma::mds {

// What every OPEN answers, without what it has changed and given (RFC 8881, 18.16.2).
inline nfs4::OpenResult open_result(const nfs4::Stateid& stateid) {
  // Without LOCKTYPE_POSIX a client says ENOLCK by itself.
  constexpr uint32_t kFlags =
      nfs4::kOpenResultPreserveUnlinked | nfs4::kOpenResultLockTypePosix | nfs4::kOpenResultMayNotifyLock;
  nfs4::OpenResult result;
  result.stateid = stateid;
  result.flags = kFlags;
  return result;
}

// Of one that gives a delegation and no open (RFC 9754, 4).
inline nfs4::OpenResult result_without_open(nfs4::Delegation delegation) {
  nfs4::OpenResult result = open_result({});
  result.flags |= nfs4::kOpenResultNoOpenStateid;
  result.delegation = std::move(delegation);
  return result;
}

// The attributes of a file that has been made this way.
inline nfs4::Bitmap created_with(const nfs4::CreateHow& how) {
  if (const auto* exclusive = how.get_if<nfs4::CreateMode::kExclusive41>())
    return exclusive->attributes.mask();
  if (const auto* guarded = how.get_if<nfs4::CreateMode::kGuarded>()) return guarded->mask();
  if (const auto* unchecked = how.get_if<nfs4::CreateMode::kUnchecked>()) return unchecked->mask();
  return {};
}

}  // namespace pnfsrdma::mds
