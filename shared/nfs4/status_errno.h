// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/status.h"

namespace pnfsrdma::nfs4 {

// What a system call on the mount reports: a positive errno, 0 for kOk. Total: a status that says something
// about the protocol and not about the file is EIO; the caller has dealt with the ones it can retry before
// (kDelay and the like map to EAGAIN, lost state to ESTALE).
int to_errno(Status status);

// What a server answers when the operating system or a library fails with a (positive) errno. 0 is kOk; one
// without a counterpart is kServerFault.
Status from_errno(int number);

}  // namespace pnfsrdma::nfs4
