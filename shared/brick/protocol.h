// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/xdr/types.h"

// The brick's control protocol: an ONC RPC program (RFC 5531) over a Unix socket or TCP, spoken by the MDS
// and by admin tools. Every changing call carries the caller's epoch; one below the claimed epoch is answered
// kStaleEpoch and changes nothing. Blocks are 2 MiB; logical addresses are the MDS's, 64 bit, multiples of
// the block size where blocks are named.
namespace pnfsrdma::brick {

inline constexpr uint32_t kProgram = 0x20524D42;  // from the user-defined range of RFC 5531, 13.1
inline constexpr uint32_t kVersion = 2;           // 1 knew neither identify nor erase
inline constexpr uint32_t kDefaultControlPort = 20050;
inline constexpr uint32_t kDefaultDataPort = 20051;
inline constexpr uint64_t kBlockSize = uint64_t{2} << 20;

inline constexpr size_t kRunsMax = 65536;
inline constexpr size_t kGrantsPerCallMax = 4096;
inline constexpr size_t kRangesPerCallMax = 4096;
// Runs of blocks an MDS asks for at a time.
inline constexpr uint32_t kListedRunsPerCall = 4096;
// Grants of a session an MDS is told at a time.
inline constexpr size_t kListedGrantsPerCall = 4096;
inline constexpr size_t kTicketSize = 16;
// Freed or revoked ranges rest this long before they are zeroed or used again: packets in flight.
inline constexpr uint32_t kQuarantineMs = 100;

enum class Procedure : uint32_t {
  kNull = 0,
  kClaim = 1,
  kAlloc = 2,
  kFree = 3,
  kMap = 4,
  kUnmap = 5,
  kList = 6,
  kOpenSession = 7,
  kCloseSession = 8,
  kListSessions = 9,
  kExpose = 10,
  kWithdraw = 11,
  kListAllGrants = 12,  // in one answer: for an MDS of before kListGrants
  kPersist = 13,
  kZero = 14,
  kCopy = 15,
  kStatistics = 16,
  kIdentify = 17,
  kSurvey = 18,
  kErase = 19,
  // Those from here on are unavailable in bricks of before: who asks does without.
  kLoopTurns = 20,
  kSessionTraffic = 21,
  kListGrants = 22,
};

enum class Status : uint32_t {
  kOk = 0,
  kStaleEpoch = 1,  // a newer MDS has claimed this brick
  kExists = 2,      // the logical address is taken
  kNotFound = 3,    // no such block, session or grant
  kNoSpace = 4,     // not enough free blocks
  kBusy = 5,        // still exposed
  kInvalid = 6,     // arguments out of range or misaligned
  kLimit = 7,       // sessions, grants or registrations are used up
  kIo = 8,          // the medium or the device failed; the log says what
  kTryLater = 9,    // blocks are free but not zeroed yet, or rest in quarantine
  kLapsed = 10,     // the claim ended with its lease: claim again, all sessions are gone
};
constexpr bool xdr_known(Status value) {
  return value <= Status::kLapsed;
}

// --- claim ---

// The owner is the MDS's name for itself, shown to administrators. `epoch` must be greater than any claimed
// before. An empty owner gives the brick up: any MDS may have it. When it is answered, every handle of a
// session that has ended is dead.
//
// A claim is in force until the next one, the end of the brick's process, or the end of its lease: an MDS
// that is silent for this time loses all sessions and the connection, and its epoch is answered kLapsed.
struct ClaimArguments {
  uint64_t epoch = 0;
  xdr::String<64> owner;
};
// One way to reach the brick's memory; see nfs4::DevicePath.
struct Path {
  xdr::String<16> netid;
  xdr::String<64> address;
};
struct ClaimResult {
  Status status = Status::kOk;
  uint64_t claimed_epoch = 0;      // the highest one claimed so far: this call's when kOk
  xdr::FixedOpaque<16> uuid{};     // of the pool: the deviceid4 the MDS hands out
  uint64_t incarnation = 0;        // random per process: all sessions and grants die when it changes
  xdr::FixedOpaque<8> verifier{};  // changes whenever memory may have lost unflushed data
  uint64_t block_count = 0;
  uint64_t free_blocks = 0;
  uint32_t flush_methods = 0;  // bits of nfs4::kFlush*
  uint32_t durability = 0;     // Durability
  xdr::String<16> kind;        // "devdax", "fsdax", "file", "tmpfs"
  uint32_t grants_max = 0;     // of one session
  xdr::List<Path, 16> paths;
};

// --- identify ---

// Whose brick it is, asked before it is claimed: a claim ends what another MDS has there.
struct IdentifyResult {
  Status status = Status::kOk;
  xdr::FixedOpaque<16> uuid{};  // of the pool
  uint64_t claimed_epoch = 0;   // the highest one claimed so far
  xdr::String<64> owner;        // who claimed last; empty: nobody, or it was released
  uint64_t block_count = 0;
  uint64_t used_blocks = 0;  // allocated and parked
};

// --- the passive target: blocks ---

// `count` blocks from logical address `logical`, physically contiguous in the brick.
struct Run {
  uint64_t logical = 0;
  uint64_t count = 0;
  bool operator==(const Run&) const = default;
};
// Takes `count` free blocks, zeroed durably, and gives them the logical addresses from `logical` on.
// `contiguous` is a wish: as few runs as can be had. All or nothing. kExists, kNoSpace, kTryLater.
struct AllocArguments {
  uint64_t epoch = 0;
  uint64_t logical = 0;
  uint64_t count = 0;
  bool contiguous = true;
};
struct RunsResult {
  Status status = Status::kOk;
  xdr::List<Run, kRunsMax> runs;
};
// free: gives blocks back (kBusy while exposed); they rest, are zeroed, and can then be allocated again.
// unmap: parks blocks: they keep content and address, and can't be exposed. kBusy while exposed.
struct BlocksArguments {
  uint64_t epoch = 0;
  xdr::List<Run, kRunsMax> runs;
};
// map: parked blocks from `from` become usable again at `to` (which may be the same). kExists when `to` is
// taken.
struct MapArguments {
  uint64_t epoch = 0;
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t count = 0;
};
struct StatusResult {
  Status status = Status::kOk;
};
// list: all blocks with a logical address of at least `from`, in order, at most `limit` runs.
struct ListArguments {
  uint64_t from = 0;
  uint32_t limit = 0;
};
struct ListedRun {
  Run run;
  bool parked = false;
};
struct ListResult {
  Status status = Status::kOk;
  xdr::List<ListedRun, kRunsMax> runs;
  bool end = false;
};

// survey: the blocks as they lie in the brick, from number `from` on, at most `limit` runs.
enum class BlockUse : uint32_t {
  kDirty = 1,      // free, to be zeroed
  kClean = 2,      // free, zeros
  kAllocated = 3,  // at a logical address
  kParked = 4,     // likewise, and can't be exposed
  kDamaged = 5,    // out of service
};
constexpr bool xdr_known(BlockUse value) {
  return value >= BlockUse::kDirty && value <= BlockUse::kDamaged;
}
struct SurveyArguments {
  uint64_t from = 0;
  uint32_t limit = 0;
};
struct SurveyedRun {
  uint64_t first = 0;
  uint64_t count = 0;
  BlockUse use = BlockUse::kDirty;
  uint64_t logical = 0;  // of the first, when allocated or parked; the others follow
  bool operator==(const SurveyedRun&) const = default;
};
struct SurveyResult {
  Status status = Status::kOk;
  xdr::List<SurveyedRun, kRunsMax> runs;
  bool end = false;
};
// erase: `count` blocks from number `from` lose their content: they become dirty, damaged ones too, and are
// zeroed. kBusy when one of them is allocated, parked or in use; kInvalid when `uuid` is not the pool's.
struct EraseArguments {
  uint64_t epoch = 0;
  xdr::FixedOpaque<16> uuid{};
  uint64_t from = 0;
  uint64_t count = 0;
};

// --- sessions, exposures ---

// `client` is the MDS's number for it, not 0; the ticket lets its queue pair in. An open session gets the new
// ticket.
struct OpenSessionArguments {
  uint64_t epoch = 0;
  uint64_t client = 0;
  xdr::FixedOpaque<kTicketSize> ticket{};
};
// Expels: queue pair to the error state, all exposures freed, the ticket dead. Nothing of it moves
// afterwards.
struct CloseSessionArguments {
  uint64_t epoch = 0;
  uint64_t client = 0;
};
struct SessionEntry {
  uint64_t client = 0;
  uint32_t connection = 0;  // 0: not connected
  uint32_t grants = 0;
  xdr::String<64> peer;
  xdr::String<16> transport;
};
struct SessionsResult {
  Status status = Status::kOk;
  xdr::List<SessionEntry, 65536> sessions;
};

// Lets `client` read, or read and write, `length` bytes from `logical`: one grant per physically contiguous
// run, in order.
struct ExposeArguments {
  uint64_t epoch = 0;
  uint64_t client = 0;
  uint64_t logical = 0;
  uint64_t length = 0;
  bool writable = false;
};
// Handle and address are void while `connection` of the answer is 0: the client learns them in its hello.
struct Grant {
  uint64_t grant = 0;  // the brick's number, from a CSPRNG, not 0
  uint64_t logical = 0;
  uint64_t length = 0;
  bool writable = false;
  uint32_t handle = 0;
  uint64_t address = 0;
  bool operator==(const Grant&) const = default;
};
struct ExposeResult {
  Status status = Status::kOk;
  uint32_t connection = 0;
  xdr::List<Grant, kGrantsPerCallMax> grants;
};
// Answered when the handles are dead in the transport. Unknown grants are ignored: withdrawing twice is
// harmless.
struct WithdrawArguments {
  uint64_t epoch = 0;
  uint64_t client = 0;
  xdr::List<uint64_t, kGrantsPerCallMax> grants;
};
// By their numbers, the first ones with a number greater than `after`.
struct ListGrantsArguments {
  uint64_t client = 0;
  uint64_t after = 0;
};
struct GrantsResult {
  Status status = Status::kOk;
  bool more = false;  // there are others behind the last one
  xdr::List<Grant, kListedGrantsPerCall> grants;
};
struct ListAllGrantsArguments {
  uint64_t client = 0;
};
struct AllGrantsResult {
  Status status = Status::kOk;
  xdr::List<Grant, 1 << 20> grants;
};

// --- data ---

struct Range {
  uint64_t logical = 0;
  uint64_t length = 0;
  bool operator==(const Range&) const = default;
};
// persist: makes the ranges durable as the device's class has it. zero: zeroes them, durably.
struct RangesArguments {
  uint64_t epoch = 0;
  xdr::List<Range, kRangesPerCallMax> ranges;
};
struct PersistResult {
  Status status = Status::kOk;
  xdr::FixedOpaque<8> verifier{};
};
// Durable when answered. Source and target do not overlap.
struct CopyArguments {
  uint64_t epoch = 0;
  uint64_t source = 0;
  uint64_t target = 0;
  uint64_t length = 0;
};

// Counters since start.
struct StatisticsResult {
  Status status = Status::kOk;
  uint64_t rdma_write_bytes = 0;
  uint64_t rdma_read_bytes = 0;
  uint64_t rdma_flushes = 0;
  uint64_t commit_messages = 0;
  uint64_t free_blocks = 0;
  uint64_t clean_blocks = 0;  // of the free ones: zeroed and ready
  uint64_t block_count = 0;
  uint32_t sessions = 0;
  uint32_t grants = 0;
  uint64_t rdma_writes = 0;  // operations
  uint64_t rdma_reads = 0;
  uint64_t control_persists = 0;  // flushes the MDS asked for
  uint64_t control_zeroed_bytes = 0;
  uint64_t flush_failures = 0;
  uint64_t damaged_blocks = 0;
  uint32_t waiting_changes = 0;  // of the block table, for a flush
  uint32_t waiting_work = 0;     // persist, zero and copy, for the worker
};

// How long the turns of the brick's control loop took, since its start (shared/base/turn_times.h).
inline constexpr size_t kTurnBucketsMax = 32;
struct LoopTurnsResult {
  Status status = Status::kOk;
  xdr::List<uint64_t, kTurnBucketsMax> counts;  // by bucket of LatencyHistogram, not cumulative
  uint64_t sum_us = 0;
  uint64_t slow = 0;        // of more than 100 ms
  uint32_t longest_ms = 0;  // of the last one to two minutes
  uint32_t stalled = 0;     // of more than 1 s, in that time
};

// What the clients of the open sessions have moved since these were opened, by connections whose transport runs in
// software: what a device moves no processor sees, and its client has zeros.
struct SessionTraffic {
  uint64_t client = 0;
  uint64_t read_bytes = 0;  // by the client
  uint64_t write_bytes = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  bool operator==(const SessionTraffic&) const = default;
};
struct SessionTrafficResult {
  Status status = Status::kOk;
  xdr::List<SessionTraffic, 65536> sessions;
};

}  // namespace pnfsrdma::brick
