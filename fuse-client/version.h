// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma::fuse_client {

// "0.1.0", as CMake has it.
inline constexpr const char* kVersion = PNFSRDMA_VERSION;

}  // namespace pnfsrdma::fuse_client
