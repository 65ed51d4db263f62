// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace pnfsrdma::nfs4 {

// The name in the root directory of each export that leads to the snapshots, as soon as there is one. No listing shows
// it, so whoever has read a whole directory does not know whether it is there (docs/protocol.md).
inline constexpr std::string_view kSnapshotListName = ".snapshots";

}  // namespace pnfsrdma::nfs4
