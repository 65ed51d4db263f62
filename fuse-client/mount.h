// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse-client/mount_options.h"
#include "fuse-client/readiness.h"
#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

// Mounts, serves until the file system is unmounted or a signal (TERM, INT, HUP) ends it, and leaves in
// order: layouts committed and returned, opens closed, session destroyed. An error names cause and fix;
// nothing is mounted then.
Result<> run_mount(const MountOptions& options, Readiness& readiness);

// The arguments for libfuse: what mount(8) shows and what the kernel enforces.
std::vector<std::string> fuse_arguments(const MountOptions& options, std::string_view transport,
                                        std::string_view durability);

}  // namespace pnfsrdma::fuse_client
