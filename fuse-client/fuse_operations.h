// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse-client/fuse_header.h"

namespace pnfsrdma::fuse_client {

// libfuse's table: each entry hands its request to the FileSystem that is the session's userdata.
fuse_lowlevel_ops fuse_operations();

// What init() settles with the kernel; the FileSystem is asked nothing there.
void negotiate(fuse_conn_info* connection, bool writeback);

}  // namespace pnfsrdma::fuse_client
