// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::mds {

// The operations that touch file data or its layouts. The layout module implements them; unit tests of the
// other operations put a file in memory here. Each is a handler as compound_context.h describes it.
class DataOperations {
 public:
  virtual ~DataOperations() = default;

  virtual nfs4::ReadResponse read(CompoundContext&, const nfs4::ReadArguments&) = 0;
  virtual nfs4::ReadPlusResponse read_plus(CompoundContext&, const nfs4::ReadPlusArguments&) = 0;
  virtual nfs4::WriteResponse write(CompoundContext&, const nfs4::WriteArguments&) = 0;
  virtual nfs4::CommitResponse commit(CompoundContext&, const nfs4::CommitArguments&) = 0;
  virtual nfs4::AllocateResponse allocate(CompoundContext&, const nfs4::AllocateArguments&) = 0;
  virtual nfs4::DeallocateResponse deallocate(CompoundContext&, const nfs4::DeallocateArguments&) = 0;
  virtual nfs4::CopyResponse copy(CompoundContext&, const nfs4::CopyArguments&) = 0;
  virtual nfs4::OffloadStatusResponse offload_status(CompoundContext&,
                                                     const nfs4::OffloadStatusArguments&) = 0;
  virtual nfs4::OffloadCancelResponse offload_cancel(CompoundContext&,
                                                     const nfs4::OffloadCancelArguments&) = 0;
  virtual nfs4::CloneResponse clone(CompoundContext&, const nfs4::CloneArguments&) = 0;
  virtual nfs4::SeekResponse seek(CompoundContext&, const nfs4::SeekArguments&) = 0;
  virtual nfs4::GetDeviceInfoResponse get_device_info(CompoundContext&,
                                                      const nfs4::GetDeviceInfoArguments&) = 0;
  virtual nfs4::LayoutGetResponse layout_get(CompoundContext&, const nfs4::LayoutGetArguments&) = 0;
  virtual nfs4::LayoutCommitResponse layout_commit(CompoundContext&, const nfs4::LayoutCommitArguments&) = 0;
  virtual nfs4::LayoutReturnResponse layout_return(CompoundContext&, const nfs4::LayoutReturnArguments&) = 0;
  virtual nfs4::LayoutErrorResponse layout_error(CompoundContext&, const nfs4::LayoutErrorArguments&) = 0;
  virtual nfs4::LayoutStatisticsResponse layout_statistics(CompoundContext&,
                                                           const nfs4::LayoutStatisticsArguments&) = 0;

  // TEST_STATEID of a copy's: BAD_STATEID for none that this client has.
  virtual nfs4::Status test_copy(ClientId client, const nfs4::Stateid& stateid) const = 0;
  // fs_layout_types of an export's files is kLayoutTypePmem only if this is true (a brick is there).
  virtual bool layouts_available() const = 0;
  // Of the brick that keeps the least: "volatile", "process" or "power"; "unknown" while no brick is there.
  virtual std::string durability() const = 0;
  // layout_blksize and clone_blksize, bytes.
  virtual uint32_t layout_block_size() const = 0;
  // space_total, space_free, space_avail in bytes.
  struct Space {
    uint64_t total = 0;
    uint64_t free = 0;
    uint64_t available = 0;
  };
  virtual Space space() const = 0;
};

}  // namespace pnfsrdma::mds
