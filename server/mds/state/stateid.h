// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// The 12 bytes of stateid4 behind its seqid, as this server makes them: the kind, three bytes of the time, then eight
// of a CSPRNG. They repeat neither within a run nor after a restart, and no client can guess another's. The time makes
// the records of stateids that are young together lie together in the store, which has them by these bytes: to write
// one costs a third of what it does among all others.
using StateidOther = xdr::FixedOpaque<12>;

// The value is the first byte of `other`. Layout stateids belong to the layout module (recaller.h).
enum class StateKind : uint8_t { kOpen = 1, kLock = 2, kDelegation = 3, kCopy = 4, kLayout = 0x4C };

StateidOther make_stateid_other(StateKind kind, SteadyTime now, Random& random);
// One of another kind beside it: who knows the one knows the other.
StateidOther with_kind(StateKind kind, const StateidOther& other);
// Nothing: this server never made such a stateid.
std::optional<StateKind> kind_of(const StateidOther& other);

struct StateidOtherHash {
  size_t operator()(const StateidOther& other) const;
};

// RFC 8881, 8.2.3.
enum class SpecialStateid {
  kNone,        // an ordinary one
  kAnonymous,   // (0, zeros)
  kReadBypass,  // (2^32-1, ones)
  kCurrent,     // (1, zeros)
  kInvalid,     // (2^32-1, zeros), and every other seqid beside zeros or ones
};
SpecialStateid special_stateid(const nfs4::Stateid& stateid);

// RFC 8881, 8.2.2, for everything but layouts: 0 means the newest, older is OLD_STATEID, newer than any given
// out is BAD_STATEID. kOk otherwise.
nfs4::Status check_seqid(uint32_t asked, uint32_t current);
// The seqid after `seqid`: it wraps past 0.
constexpr uint32_t next_seqid(uint32_t seqid) {
  return seqid == 0xFFFFFFFF ? 1 : seqid + 1;
}

}  // namespace pnfsrdma::mds
