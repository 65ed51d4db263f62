// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/result.h"
#include "shared/rdma/iwarp/mpa_frame.h"
#include "shared/rdma/iwarp/queue_pair.h"

// What two sides agree on while they connect: pure functions from frames to an Agreement.
//
// MPA has no word for Flush, so ours stands in front of the private data, eight bytes: "pRDM", version 1,
// flags (1: native flush, 2: aligned WRITEs of eight bytes are placed by one store), two zero bytes. Flags a
// side does not know it ignores and does not answer with. Only connect() begins it; a peer that does not
// answer with it gets plain RFC 5040.
namespace pnfsrdma::rdma::iwarp {

inline constexpr size_t kPrefixSize = 8;

// Puts our prefix in front of `private_data`; its flags are those of `limits`.
Bytes add_prefix(ByteSpan private_data, const QueuePairLimits& limits);
struct Prefixed {
  bool present = false;
  bool native_flush = false;
  bool atomic_write = false;
  Bytes private_data;
};
// Takes it off again, when it is there.
Prefixed take_prefix(const Bytes& private_data);

// The Request that connect() sends.
MpaFrame make_request(const QueuePairLimits& limits, uint8_t revision, bool crc, ByteSpan private_data);

// The connecting side, having read the Reply to `request` with the prefix `said` in it. EPROTO when the reply
// cannot be lived with.
Result<Agreement> agree_on_reply(const QueuePairLimits& limits, const MpaFrame& request,
                                 const MpaFrame& reply, const Prefixed& said);

// The accepting side: the Agreement, and the Reply that says it.
struct Answer {
  Agreement agreement;
  MpaFrame reply;
};
Answer answer_request(const QueuePairLimits& limits, const MpaFrame& request, const Prefixed& prefix,
                      bool crc, ByteSpan private_data);
MpaFrame make_reject(const MpaFrame& request, const Prefixed& prefix, ByteSpan private_data);

}  // namespace pnfsrdma::rdma::iwarp
