// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "fuse-client/fuse_header.h"
#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

// A descriptor with direct I/O may be mapped shared (FUSE_DIRECT_IO_ALLOW_MMAP, Linux 6.6; older kernels
// ignore the flag and answer ENODEV). The kernel then keeps both views the same: it writes mapped pages back
// before direct I/O and drops them behind a direct write. libfuse 3.14 has no name for the flag, so it is added
// to its answer to FUSE_INIT on the way out. Once, on a mounted session that has served nothing yet.
Result<> allow_mapped_direct_io(fuse_session* session);

// By the handler of INIT: the next answer of this thread is the one.
void init_is_answered_next();

// Adds the flag to an answer to FUSE_INIT, as libfuse hands it to writev(2). False: it is none, or an error.
bool add_mapped_direct_io(std::span<const iovec> answer);

}  // namespace pnfsrdma::fuse_client
