// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/stateid.h"

#include <algorithm>
#include <cstring>

namespace pnfsrdma::mds {

namespace {

bool all(const StateidOther& other, std::byte value) {
  return std::all_of(other.begin(), other.end(), [value](std::byte byte) { return byte == value; });
}

}  // namespace

StateidOther make_stateid_other(StateKind kind, SteadyTime now, Random& random) {
  StateidOther other;
  const auto time = std::chrono::duration_cast<Milliseconds>(now.time_since_epoch()).count();
  store_big_endian(other.data(), static_cast<uint32_t>(time));  // its high byte is the kind's
  other[0] = static_cast<std::byte>(kind);
  random.fill(std::span(other).subspan<sizeof(uint32_t)>());
  return other;
}

StateidOther with_kind(StateKind kind, const StateidOther& other) {
  StateidOther same = other;
  same[0] = static_cast<std::byte>(kind);
  return same;
}

std::optional<StateKind> kind_of(const StateidOther& other) {
  const auto kind = static_cast<StateKind>(other[0]);
  switch (kind) {
    case StateKind::kOpen:
    case StateKind::kLock:
    case StateKind::kDelegation:
    case StateKind::kCopy:
    case StateKind::kLayout:
      return kind;
  }
  return std::nullopt;
}

size_t StateidOtherHash::operator()(const StateidOther& other) const {
  size_t hash = 0;
  std::memcpy(&hash, other.data() + 4, sizeof(hash));  // random already
  return hash;
}

SpecialStateid special_stateid(const nfs4::Stateid& stateid) {
  const bool zeros = all(stateid.other, std::byte{0});
  const bool ones = all(stateid.other, std::byte{0xFF});
  if (!zeros && !ones) return SpecialStateid::kNone;
  if (zeros && stateid.seqid == 0) return SpecialStateid::kAnonymous;
  if (ones && stateid.seqid == 0xFFFFFFFF) return SpecialStateid::kReadBypass;
  if (zeros && stateid.seqid == 1) return SpecialStateid::kCurrent;
  return SpecialStateid::kInvalid;
}

nfs4::Status check_seqid(uint32_t asked, uint32_t current) {
  if (asked == 0 || asked == current) return nfs4::Status::kOk;
  // The signed difference orders seqids across the wrap.
  return static_cast<int32_t>(asked - current) < 0 ? nfs4::Status::kOldStateid : nfs4::Status::kBadStateid;
}

}  // namespace pnfsrdma::mds
