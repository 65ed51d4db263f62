// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::nfs4 {

// What a server of ours says of extended attributes (RFC 8276) where it says which ACLs there are (kHasAccessAcl in
// posix_acl.h): the second bit is whether the object has any, where the first one is set.
inline constexpr uint32_t kTellsXattrs = 4;
inline constexpr uint32_t kHasXattrs = 8;

}  // namespace pnfsrdma::nfs4
