// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shared/base/clock.h"
#include "shared/nfs4/bitmap.h"
#include "shared/nfs4/limits.h"
#include "shared/nfs4/status.h"
#include "shared/xdr/types.h"
#include "shared/xdr/union.h"

// The types every operation is built of (RFC 8881, 3.2 and 3.3). Offsets and lengths are bytes; a length of
// kLengthToEnd reaches to the end of the file whatever its size.
namespace pnfsrdma::nfs4 {

inline constexpr uint64_t kLengthToEnd = UINT64_MAX;
inline constexpr uint64_t kOffsetMax = UINT64_MAX - 1;

using FileHandle = xdr::Opaque<kFileHandleSize>;
using Verifier = xdr::FixedOpaque<kVerifierSize>;
using SessionId = xdr::FixedOpaque<kSessionIdSize>;
using DeviceId = xdr::FixedOpaque<kDeviceIdSize>;
using Component = xdr::String<kComponentMax>;
using LinkText = xdr::String<kLinkTextMax>;
using Text = xdr::String<kTextMax>;
using OwnerId = xdr::Opaque<kOpaqueMax>;
using Data = xdr::Payload<kDataMax>;
using SecurityObjectId = xdr::Opaque<kOpaqueMax>;

// nfs_ftype4
enum class FileType : uint32_t {
  kRegular = 1,
  kDirectory = 2,
  kBlock = 3,
  kCharacter = 4,
  kLink = 5,
  kSocket = 6,
  kFifo = 7,
  kAttributeDirectory = 8,
  kNamedAttribute = 9,
};
constexpr bool xdr_known(FileType type) {
  return type >= FileType::kRegular && type <= FileType::kNamedAttribute;
}

// nfstime4, since 1970. Nanoseconds of a billion or more are for the server to refuse (NFS4ERR_INVAL).
struct Time {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  auto operator<=>(const Time&) const = default;

  static Time from(const WallTime& time) { return {time.seconds, time.nanoseconds}; }
  WallTime to_wall_time() const { return {seconds, nanoseconds}; }
};

// settime4: nothing means the server's own time.
enum class TimeHow : uint32_t { kServerTime = 0, kClientTime = 1 };
constexpr bool xdr_known(TimeHow how) {
  return how <= TimeHow::kClientTime;
}
using SetTime =
    xdr::Union<TimeHow, xdr::Arm<xdr::Void, TimeHow::kServerTime>, xdr::Arm<Time, TimeHow::kClientTime>>;

struct Fsid {
  uint64_t major = 0;
  uint64_t minor = 0;
  bool operator==(const Fsid&) const = default;
};

// specdata4: the device numbers of a special file.
struct SpecialData {
  uint32_t major = 0;
  uint32_t minor = 0;
  bool operator==(const SpecialData&) const = default;
};

// change_info4 of a directory, before and after an operation.
struct ChangeInfo {
  bool atomic = false;
  uint64_t before = 0;
  uint64_t after = 0;
  bool operator==(const ChangeInfo&) const = default;
};

struct Stateid {
  uint32_t seqid = 0;
  xdr::FixedOpaque<kStateidOtherSize> other{};
  auto operator<=>(const Stateid&) const = default;

  // The special ones of RFC 8881, 8.2.3.
  static constexpr Stateid anonymous() { return {}; }
  static constexpr Stateid read_bypass() {
    Stateid stateid{UINT32_MAX, {}};
    stateid.other.fill(std::byte{0xff});
    return stateid;
  }
  static constexpr Stateid current() { return {1, {}}; }
  static constexpr Stateid invalid() { return {UINT32_MAX, {}}; }
  bool is_special() const {
    return *this == anonymous() || *this == read_bypass() || *this == current() || *this == invalid();
  }
};

// netaddr4 (RFC 8881, 3.3.9); see shared/rpc/universal_address.h.
struct NetworkAddress {
  xdr::String<kOpaqueMax> netid;
  xdr::String<kOpaqueMax> address;
};

// client_owner4: who the client is, and (the verifier) which incarnation of it.
struct ClientOwner {
  Verifier verifier{};
  OwnerId owner;
};
// server_owner4
struct ServerOwner {
  uint64_t minor_id = 0;
  OwnerId major_id;
};
// state_owner4: open_owner4 and lock_owner4. NFSv4.1 servers take the client from the session and ignore
// `client_id`.
struct StateOwner {
  uint64_t client_id = 0;
  OwnerId owner;
  bool operator==(const StateOwner&) const = default;
};
// nfs_impl_id4
struct Implementation {
  Text domain;
  Text name;
  Time date;
};

// nfsace4. Types, flags and masks are the numbers of RFC 8881, 6.2.1.
struct AccessControlEntry {
  uint32_t type = 0;
  uint32_t flags = 0;
  uint32_t access_mask = 0;
  Text who;
};

// stable_how4
enum class StableHow : uint32_t { kUnstable = 0, kDataSync = 1, kFileSync = 2 };
constexpr bool xdr_known(StableHow how) {
  return how <= StableHow::kFileSync;
}

}  // namespace pnfsrdma::nfs4
