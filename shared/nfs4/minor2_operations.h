// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// What NFSv4.2 adds (RFC 7862, 15): space, copy, sparse files. LAYOUTERROR and LAYOUTSTATS are in
// pnfs_operations.h.
namespace pnfsrdma::nfs4 {

// netloc4
enum class LocationType : uint32_t { kName = 1, kUrl = 2, kNetworkAddress = 3 };
constexpr bool xdr_known(LocationType type) {
  return type >= LocationType::kName && type <= LocationType::kNetworkAddress;
}
using NetworkLocation = xdr::Union<LocationType, xdr::Arm<Text, LocationType::kName, LocationType::kUrl>,
                                   xdr::Arm<NetworkAddress, LocationType::kNetworkAddress>>;

// write_response4. A callback id is there when the operation goes on without the client waiting.
struct WriteOutcome {
  std::optional<Stateid> callback_id;
  uint64_t count = 0;
  StableHow committed = StableHow::kUnstable;
  Verifier verifier{};
};

// ALLOCATE (15.1), DEALLOCATE (15.4)
struct AllocateArguments {
  Stateid stateid;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct AllocateResult {};
using AllocateResponse = Response<AllocateResult>;

struct DeallocateArguments {
  Stateid stateid;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct DeallocateResult {};
using DeallocateResponse = Response<DeallocateResult>;

// COPY (15.2): from the saved to the current file. A count of 0 means to the end.
struct CopyArguments {
  Stateid source_stateid;
  Stateid target_stateid;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t count = 0;
  bool consecutive = false;
  bool synchronous = false;
  xdr::List<NetworkLocation, kSmallListMax> source_servers;
};
struct CopyRequirements {
  bool consecutive = false;
  bool synchronous = false;
};
struct CopyResult {
  WriteOutcome outcome;
  CopyRequirements requirements;
};
using CopyResponse = Response<CopyResult, Status::kOffloadNoReqs, CopyRequirements>;

// COPY_NOTIFY (15.3)
struct CopyNotifyArguments {
  Stateid source_stateid;
  NetworkLocation destination_server;
};
struct CopyNotifyResult {
  Time lease_time;
  Stateid stateid;
  xdr::List<NetworkLocation, kSmallListMax> source_servers;
};
using CopyNotifyResponse = Response<CopyNotifyResult>;

// IO_ADVISE (15.5): hints are bits of a bitmap.
enum class IoAdvice : uint32_t {
  kNormal = 0,
  kSequential = 1,
  kSequentialBackwards = 2,
  kRandom = 3,
  kWillNeed = 4,
  kWillNeedOpportunistic = 5,
  kDontNeed = 6,
  kNoReuse = 7,
  kRead = 8,
  kWrite = 9,
  kInitProximity = 10,
};
struct IoAdviseArguments {
  Stateid stateid;
  uint64_t offset = 0;
  uint64_t count = 0;
  Bitmap hints;
};
struct IoAdviseResult {
  Bitmap hints;
};
using IoAdviseResponse = Response<IoAdviseResult>;

// OFFLOAD_CANCEL (15.8), OFFLOAD_STATUS (15.9)
struct OffloadCancelArguments {
  Stateid stateid;
};
struct OffloadCancelResult {};
using OffloadCancelResponse = Response<OffloadCancelResult>;

struct OffloadStatusArguments {
  Stateid stateid;
};
struct OffloadStatusResult {
  uint64_t count = 0;
  std::optional<Status> complete;
};
using OffloadStatusResponse = Response<OffloadStatusResult>;

// READ_PLUS (15.10)
struct ReadPlusArguments {
  Stateid stateid;
  uint64_t offset = 0;
  uint32_t count = 0;
};
enum class ContentType : uint32_t { kData = 0, kHole = 1 };
constexpr bool xdr_known(ContentType type) {
  return type <= ContentType::kHole;
}
struct DataContent {
  uint64_t offset = 0;
  Data data;
};
struct HoleContent {
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Content = xdr::Union<ContentType, xdr::Arm<DataContent, ContentType::kData>,
                           xdr::Arm<HoleContent, ContentType::kHole>>;
struct ReadPlusResult {
  bool end_of_file = false;
  xdr::List<Content, kListMax> contents;
};
using ReadPlusResponse = Response<ReadPlusResult>;

// SEEK (15.11)
struct SeekArguments {
  Stateid stateid;
  uint64_t offset = 0;
  ContentType what = ContentType::kData;
};
struct SeekResult {
  bool end_of_file = false;
  uint64_t offset = 0;
};
using SeekResponse = Response<SeekResult>;

// WRITE_SAME (15.12)
struct ApplicationDataBlock {
  uint64_t offset = 0;
  uint64_t block_size = 0;
  uint64_t block_count = 0;
  uint64_t block_number_offset = 0;  // in each block
  uint32_t block_number = 0;
  uint64_t pattern_offset = 0;  // in each block
  Data pattern;
};
struct WriteSameArguments {
  Stateid stateid;
  StableHow stable = StableHow::kUnstable;
  ApplicationDataBlock block;
};
struct WriteSameResult {
  WriteOutcome outcome;
};
using WriteSameResponse = Response<WriteSameResult>;

// CLONE (15.13): shares blocks of the saved with the current file. A count of 0 means to the end.
struct CloneArguments {
  Stateid source_stateid;
  Stateid target_stateid;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t count = 0;
};
struct CloneResult {};
using CloneResponse = Response<CloneResult>;

}  // namespace pnfsrdma::nfs4
