// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "shared/rdma/iwarp/wire_format.h"
#include "shared/rdma/registration.h"

namespace pnfsrdma::rdma::iwarp {

// Where a segment's payload goes. The registration is pinned again for every piece that arrives, so a region
// that dies in the middle of a segment gets not one byte more.
struct Placement {
  std::shared_ptr<Registration> registration;
  std::byte* address = nullptr;
};

// Empty: go on. Else the stream ends with this Terminate.
using Verdict = std::optional<TerminateCode>;

// What the frame reader hands over: the protocol behind the framing.
class SegmentHandler {
 public:
  virtual ~SegmentHandler() = default;
  // A segment with payload to be placed, before its payload: check the header and say where to. `placement`
  // is void for an empty payload.
  virtual Verdict begin_segment(const Segment& segment, Placement& placement) = 0;
  // All its payload is in place.
  virtual Verdict end_segment(const Segment& segment) = 0;
  // A segment that is a message to the protocol itself (requests, flush responses, Terminate), whole.
  virtual Verdict control_segment(const Segment& segment, ByteSpan payload) = 0;
};

}  // namespace pnfsrdma::rdma::iwarp
