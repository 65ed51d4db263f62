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

// "pnfsrdma-<host name>-<128 random bits>": the client's name at the server for the life of this mount.
std::string make_owner();

// The durability class a server tells in its implementation name ("… durability=process"); "unknown" if it
// does not.
std::string durability_told(std::string_view implementation);

// The arguments for libfuse: what mount(8) shows and what the kernel enforces.
std::vector<std::string> fuse_arguments(const MountOptions& options, std::string_view transport,
                                        std::string_view durability);

}  // namespace pnfsrdma::fuse_client
