// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/bricks/path_reports.h"
#include "server/mds/layout/file_clone.h"
#include "server/mds/layout/file_copy.h"
#include "server/mds/layout/file_io.h"
#include "server/mds/layout/file_ranges.h"
#include "server/mds/layout/layout_committer.h"
#include "server/mds/layout/layout_granter.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/offloaded_copies.h"

namespace pnfsrdma::mds {

// The handlers of the operations on file data and layouts: each checks its arguments and who asks, as its
// section of the RFC says, asks one question, and shapes the answer. The one question is deliberate: what the
// machinery behind does may change what a second run of the checks would ask for. Control loop only.
class DataService final : public DataOperations {
 public:
  DataService(BrickSet& bricks, Layouts& layouts, LayoutGranter& granter, LayoutCommitter& committer,
              FileIo& io, FileRanges& ranges, FileCopy& copies, OffloadedCopies& offloads, FileClone& clones,
              PathReports& paths);

  nfs4::ReadResponse read(CompoundContext& context, const nfs4::ReadArguments& arguments) override;
  nfs4::ReadPlusResponse read_plus(CompoundContext& context,
                                   const nfs4::ReadPlusArguments& arguments) override;
  nfs4::WriteResponse write(CompoundContext& context, const nfs4::WriteArguments& arguments) override;
  nfs4::CommitResponse commit(CompoundContext& context, const nfs4::CommitArguments& arguments) override;
  nfs4::AllocateResponse allocate(CompoundContext& context,
                                  const nfs4::AllocateArguments& arguments) override;
  nfs4::DeallocateResponse deallocate(CompoundContext& context,
                                      const nfs4::DeallocateArguments& arguments) override;
  nfs4::CopyResponse copy(CompoundContext& context, const nfs4::CopyArguments& arguments) override;
  nfs4::OffloadStatusResponse offload_status(CompoundContext& context,
                                             const nfs4::OffloadStatusArguments& arguments) override;
  nfs4::OffloadCancelResponse offload_cancel(CompoundContext& context,
                                             const nfs4::OffloadCancelArguments& arguments) override;
  nfs4::CloneResponse clone(CompoundContext& context, const nfs4::CloneArguments& arguments) override;
  nfs4::SeekResponse seek(CompoundContext& context, const nfs4::SeekArguments& arguments) override;
  nfs4::GetDeviceInfoResponse get_device_info(CompoundContext& context,
                                              const nfs4::GetDeviceInfoArguments& arguments) override;
  nfs4::LayoutGetResponse layout_get(CompoundContext& context,
                                     const nfs4::LayoutGetArguments& arguments) override;
  nfs4::LayoutCommitResponse layout_commit(CompoundContext& context,
                                           const nfs4::LayoutCommitArguments& arguments) override;
  nfs4::LayoutReturnResponse layout_return(CompoundContext& context,
                                           const nfs4::LayoutReturnArguments& arguments) override;
  nfs4::LayoutErrorResponse layout_error(CompoundContext& context,
                                         const nfs4::LayoutErrorArguments& arguments) override;
  nfs4::LayoutStatisticsResponse layout_statistics(CompoundContext& context,
                                                   const nfs4::LayoutStatisticsArguments& arguments) override;

  nfs4::Status test_copy(ClientId client, const nfs4::Stateid& stateid) const override {
    return offloads_.test(client, stateid);
  }
  bool layouts_available() const override { return bricks_.identified(); }
  std::string durability() const override;
  uint32_t layout_block_size() const override { return kGrainSize; }
  DataOperations::Space space() const override;

 private:
  // Of all bricks that were ever claimed; none: there is no such brick.
  std::optional<Durability> least_durability() const;
  nfs4::GetDeviceInfoResponse every_device(uint32_t bytes_max) const;
  // A copy that goes on behind its COPY.
  nfs4::WriteOutcome offload(CompoundContext& context, FileCopy::What what);
  // ALLOCATE or DEALLOCATE, once its range makes sense.
  enum class Change { kAllocate, kDeallocate };
  nfs4::Status change_range(CompoundContext& context, const nfs4::Stateid& stateid, uint64_t offset,
                            uint64_t length, Change change);
  // What an answer of LAYOUTRETURN needs to know once the handles are dead.
  using Returned = std::expected<std::optional<LayoutStateid>, nfs4::Status>;

  void return_range(uint64_t client, uint64_t inode, IoMode mode, const ByteRange& range,
                    const LayoutStateid& stateid, std::function<void(Returned)> done);
  void return_everything(uint64_t client, IoMode mode, std::function<void(Returned)> done);

  BrickSet& bricks_;
  Layouts& layouts_;
  LayoutGranter& granter_;
  LayoutCommitter& committer_;
  FileIo& io_;
  FileRanges& ranges_;
  FileCopy& copies_;
  OffloadedCopies& offloads_;
  FileClone& clones_;
  PathReports& paths_;
};

}  // namespace pnfsrdma::mds
