// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "fuse-client/fuse_header.h"
#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

// Flags that libfuse 3.14 has no names for are added to its answers, on the way out. Kernels that do not know them
// ignore them. To FUSE_INIT:
// - FUSE_DIRECT_IO_ALLOW_MMAP (Linux 6.6): a descriptor with direct I/O may be mapped shared; ENODEV without.
//   The kernel keeps both views the same: it writes mapped pages back before direct I/O and drops them behind
//   a direct write.
// - FUSE_HANDLE_KILLPRIV_V2 (Linux 5.12): a write of anybody without CAP_FSETID, a truncation and a chown take
//   the set-id bits away here, or at the server, and not by a SETATTR of the kernel. Without it the kernel asks
//   for "security.capability" before each buffered write, a request for every one.
// To FUSE_OPEN and FUSE_CREATE:
// - FOPEN_PARALLEL_DIRECT_WRITES (Linux 6.2): direct writes that do not grow the file do not wait for each other;
//   without it the kernel sends one at a time. While the file is open through the page cache, too, it does so anyhow.
// And the answer to a question for the time of birth gets its form (birth_question.h).
// Once, on a mounted session that has served nothing yet.
Result<> extend_answers(fuse_session* session);

// By the handler of INIT, or of an open with direct I/O: the next answer of this thread is the one.
void init_is_answered_next();
void direct_open_is_answered_next();

// Adds the flags to an answer to FUSE_INIT, as libfuse hands it to writev(2). False: it is none, or an error.
bool add_init_flags(std::span<const iovec> answer);
// The same to FUSE_OPEN or FUSE_CREATE.
bool add_direct_open_flags(std::span<const iovec> answer);

}  // namespace pnfsrdma::fuse_client
