// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse-client/fuse_header.h"
#include "fuse-client/mount_options.h"

namespace pnfsrdma::fuse_client {

// libfuse's table: each entry hands its request to the FileSystem that is the session's userdata.
fuse_lowlevel_ops fuse_operations();

// What init() settles with the kernel. True: it keeps its pages over answers that have been overtaken.
bool negotiate(fuse_conn_info* connection, const MountOptions& options, bool posix_acls);

}  // namespace pnfsrdma::fuse_client
