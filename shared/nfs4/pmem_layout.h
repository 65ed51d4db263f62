// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/durability.h"
#include "shared/xdr/types.h"

// The pNFS layout type of this project: the bodies of device_addr4, layout_content4 and layoutupdate4. The
// grammar and the meaning of each combination stand in README.md beside this file.
namespace pnfsrdma::nfs4 {

// From the private range of RFC 8881, 3.3.13.
inline constexpr uint32_t kLayoutTypePmem = 0x80524D41;

inline constexpr size_t kDevicePathsMax = 16;
inline constexpr size_t kTicketSize = 16;
inline constexpr size_t kSegmentsMax = 4096;
inline constexpr size_t kPersistRangesMax = 1024;

// Bits of DeviceAddress::flush_methods.
inline constexpr uint32_t kFlushNative = 1;          // RDMA FLUSH, persistent
inline constexpr uint32_t kFlushCommitMessage = 2;   // SEND with ranges, answered by the brick
inline constexpr uint32_t kFlushLayoutCommit = 4;    // the MDS has the brick flush
inline constexpr uint32_t kFlushReadAfterWrite = 8;  // reserved: an administrator's statement about hardware
inline constexpr uint32_t kFlushNone = 16;           // reserved: likewise

// One way to reach a brick: netaddr4 (RFC 8881, 3.3.9). The netid is "tcp" or "tcp6" for iwarp in user space,
// "rdma" or "rdma6" for verbs; the address is universal ("127.0.0.1.78.82").
struct DevicePath {
  xdr::String<16> netid;
  xdr::String<64> address;
  bool operator==(const DevicePath&) const = default;
};

// da_addr_body. The ticket is this client's alone and dies with its lease; it goes into the CM private data.
struct DeviceAddress {
  xdr::List<DevicePath, kDevicePathsMax> paths;
  xdr::FixedOpaque<kTicketSize> ticket{};
  uint32_t flush_methods = 0;
  Durability durability = Durability::kVolatile;
  uint32_t block_size = 0;  // bytes
  bool operator==(const DeviceAddress&) const = default;
};

// The id of no device: GETDEVICEINFO of it tells, as `durability`, the least of all devices of the server;
// nothing else of the answer means anything.
inline constexpr xdr::FixedOpaque<16> kEveryDevice = [] {
  xdr::FixedOpaque<16> id{};
  id.fill(std::byte{0xff});
  return id;
}();

// What the client needs to touch memory. grant 0: absent. Handle (R_key, STag) and address belong to one
// connection.
struct Target {
  uint64_t grant = 0;
  uint32_t handle = 0;
  uint64_t address = 0;
  bool operator==(const Target&) const = default;
};

// `length` bytes of the file from `file_offset`. Both targets present and the same: in-place data. Only read:
// read-only. Neither: a hole.
struct Segment {
  xdr::FixedOpaque<16> device{};
  uint64_t file_offset = 0;
  uint64_t length = 0;
  Target read;
  Target write;
  bool operator==(const Segment&) const = default;
};

// loc_body. `connection`: the number of the client's connection to this device that handles and addresses are
// of; 0 = not connected yet.
struct LayoutBody {
  uint32_t connection = 0;
  xdr::List<Segment, kSegmentsMax> segments;
  bool operator==(const LayoutBody&) const = default;
};

// Stands behind the first loc_body of an answer to a LAYOUTGET that asked for it (signal_when_available) and got
// it: what lies behind the end of the file is this client's alone.
struct LayoutEnd {
  uint64_t token = 0;  // another number whenever somebody else may have had it between
  bool operator==(const LayoutEnd&) const = default;
};

struct PersistRange {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  bool operator==(const PersistRange&) const = default;
};

// lou_body of LAYOUTCOMMIT: ranges the MDS has the brick flush first. LAYOUTRETURN's body is empty.
struct LayoutUpdate {
  xdr::List<PersistRange, kPersistRangesMax> persist;
  bool operator==(const LayoutUpdate&) const = default;
};

}  // namespace pnfsrdma::nfs4
