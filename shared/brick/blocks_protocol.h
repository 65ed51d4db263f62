// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/brick/protocol.h"
#include "shared/xdr/types.h"

// The protocol of a partition's owner: an ONC RPC program (RFC 5531) within TLS 1.3 by the partition's key (RFC 9289
// but for the certificates), for programs that bring their own metadata. Bytes go by the data connection
// (session_messages.h), as an MDS's clients' do. An owner has any number of attachments, each a process; what one
// of them holds is a mapping. Addresses are of blocks, multiples of block_size.
//
// Every call may be repeated if its answer was lost.
namespace pnfsrdma::brick::blocks {

inline constexpr uint32_t kProgram = 0x20524D43;  // from the user-defined range of RFC 5531, 13.1
inline constexpr uint32_t kVersion = 1;

inline constexpr size_t kRunsPerCallMax = 4096;
inline constexpr size_t kMappingsMax = 4096;  // of a partition
inline constexpr size_t kIoBytesMax = size_t{64} << 10;
inline constexpr uint64_t kAnyAddress = UINT64_MAX;

enum class Procedure : uint32_t {
  kNull = 0,
  kAttach = 1,
  kDetach = 2,
  kAlloc = 3,
  kFree = 4,
  kMap = 5,
  kUnmap = 6,
  kRelease = 7,
  kWithdraw = 8,
  kList = 9,
  kListMappings = 10,
  kRead = 11,
  kWrite = 12,
  kCommit = 13,
};

enum class Status : uint32_t {
  kOk = 0,
  kExists = 1,     // the address is taken
  kNotFound = 2,   // no such blocks
  kNoSpace = 3,    // not enough free blocks
  kQuota = 4,      // more than the partition may have allocated
  kConflict = 5,   // somebody has it mapped in a way that excludes this
  kRevoked = 6,    // the mapping is not there any more
  kInvalid = 7,    // arguments out of range or misaligned
  kLimit = 8,      // attachments, mappings or registrations are used up
  kIo = 9,         // the medium or the device failed; the log says what
  kTryLater = 10,  // blocks are not zeroed yet, or are being taken back
  kUnknown = 11,   // no such attachment: it was silent for the lease, or is of an earlier process
  kReadOnly = 12,  // the mapping is not for writing
};
constexpr bool xdr_known(Status value) {
  return value <= Status::kReadOnly;
}

struct StatusResult {
  Status status = Status::kOk;
};

// --- attachments ---

// `attachment` 0: a new one. Else one that has lost its connection: it, its ticket and its mappings are as they were,
// and an earlier connection of it is ended. An attachment that says nothing for the lease is ended.
struct AttachArguments {
  uint64_t attachment = 0;
};
struct AttachResult {
  Status status = Status::kOk;
  uint64_t attachment = 0;  // from a CSPRNG
  xdr::FixedOpaque<kTicketSize> ticket{};
  // Grows with each start of the partition's brick, and whenever unmap or free has ended mappings.
  uint64_t epoch = 0;
  xdr::FixedOpaque<16> uuid{};
  xdr::FixedOpaque<8> verifier{};
  uint64_t block_size = 0;
  uint64_t block_count = 0;
  uint64_t quota_blocks = 0;  // 0: none
  uint64_t allocated_blocks = 0;
  uint32_t lease_ms = 0;
  uint32_t flush_methods = 0;
  uint32_t durability = 0;
  xdr::String<16> kind;
  xdr::List<Path, 16> paths;
};
struct AttachmentArguments {
  uint64_t attachment = 0;
};

// --- blocks ---

// `count` zeroed blocks, which nobody has mapped. `address`: kAnyAddress, or where. `tag`: random, not 0; a
// call with that of an earlier one is answered as that was.
struct AllocArguments {
  uint64_t attachment = 0;
  uint64_t address = kAnyAddress;
  uint64_t count = 0;
  uint64_t tag = 0;
};
struct AllocResult {
  Status status = Status::kOk;
  uint64_t address = 0;
};
// unmap: ends all mappings that have a part of the blocks, whosever they are; when it is answered their handles
// are dead in the transport. free: that, and gives the blocks back: they are zeroed before anybody gets them.
struct BlocksArguments {
  uint64_t attachment = 0;
  uint64_t address = 0;
  uint64_t count = 0;
};
struct ListArguments {
  uint64_t attachment = 0;
  uint64_t from = 0;
  uint32_t limit = 0;
};
struct AllocatedRun {
  uint64_t address = 0;
  uint64_t count = 0;
  bool operator==(const AllocatedRun&) const = default;
};
struct ListResult {
  Status status = Status::kOk;
  xdr::List<AllocatedRun, kRunsPerCallMax> runs;  // in order; neighbours in address are one
  bool end = false;
};

// --- mappings ---

// Two mappings exclude each other where they overlap and one of them is for writing, unless both are shared.
enum class How : uint32_t {
  kBegin = 0,  // a new one
  kAgain =
      1,  // one that there is: its grants as they are now, exposed again if they were withdrawn. Else kRevoked
  // One that was there in the last epoch of the brick's process before this. kRevoked: somebody may have changed the
  // blocks or taken them back since.
  kReclaim = 2,
};
constexpr bool xdr_known(How value) {
  return value <= How::kReclaim;
}
struct MapArguments {
  uint64_t attachment = 0;
  uint64_t mapping = 0;  // the attachment's number for it, never used before
  uint64_t address = 0;
  uint64_t count = 0;
  bool writable = false;
  bool shared = false;
  How how = How::kBegin;
  uint64_t epoch =
      0;  // kReclaim: in which it was there: that of attach, or a later one if it was listed behind that
};
struct MapResult {
  Status status = Status::kOk;
  uint32_t connection = 0;  // as in ExposeResult
  xdr::List<Grant, kGrantsPerCallMax> grants;
};
// release: the mapping ends. withdraw: its handles are dead, and it stays. Both may be said twice.
struct MappingArguments {
  uint64_t attachment = 0;
  uint64_t mapping = 0;
};
struct MappingEntry {
  uint64_t attachment = 0;
  uint64_t mapping = 0;
  uint64_t address = 0;
  uint64_t count = 0;
  bool writable = false;
  bool shared = false;
  bool operator==(const MappingEntry&) const = default;
};
struct MappingsResult {
  Status status = Status::kOk;
  xdr::List<MappingEntry, kMappingsMax> mappings;
};

// --- bytes, where the data connection does not carry them ---

// Offsets are of the mapping.
struct ReadArguments {
  uint64_t attachment = 0;
  uint64_t mapping = 0;
  uint64_t offset = 0;
  uint32_t count = 0;
};
struct ReadResult {
  Status status = Status::kOk;
  xdr::Opaque<kIoBytesMax> data;
};
struct WriteArguments {
  uint64_t attachment = 0;
  uint64_t mapping = 0;
  uint64_t offset = 0;
  bool durable = false;
  xdr::Opaque<kIoBytesMax> data;
};
struct CommitArguments {
  uint64_t attachment = 0;
  uint64_t mapping = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct CommitResult {
  Status status = Status::kOk;
  xdr::FixedOpaque<8> verifier{};
};

}  // namespace pnfsrdma::brick::blocks
