// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "shared/base/bytes.h"
#include "shared/initiator/file/layout_pin.h"

namespace pnfsrdma::fuse_client {

// Of a FUSE request as the kernel sent it, what is needed to know which bricks it may wait for.
struct DataRequest {
  uint64_t node = 0;
  // Of the file's bytes; none: all that was written and is not flushed or told yet.
  std::optional<initiator::FileRange> range;
};

// None: it is about names or attributes, and waits for no brick.
std::optional<DataRequest> data_request(ByteSpan message);
// The thread behind it; 0: the kernel's own, or nobody this process can see.
pid_t caller_of(ByteSpan message);

// Answers such a request with an error, past libfuse, which has not seen it.
void refuse(int fuse_descriptor, ByteSpan message, int error);

}  // namespace pnfsrdma::fuse_client
