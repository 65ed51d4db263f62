// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "server/mds/ops/data_operations.h"

namespace pnfsrdma::mds {

// File data in memory. Checks stateids as the RFC says, so that tests see what an open allows; no layouts.
class FakeData final : public DataOperations {
 public:
  nfs4::ReadResponse read(CompoundContext& context, const nfs4::ReadArguments& arguments) override {
    TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
    TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, /*write=*/false));
    if (!access.read) return nfs4::Status::kOpenMode;
    const Bytes& content = files[inode->id];
    const size_t from = std::min<size_t>(arguments.offset, content.size());
    const size_t count = std::min<size_t>(arguments.count, content.size() - from);
    nfs4::ReadResult result;
    result.end_of_file = from + count == content.size();
    result.data = Bytes(content.begin() + static_cast<ptrdiff_t>(from),
                        content.begin() + static_cast<ptrdiff_t>(from + count));
    return result;
  }
  nfs4::ReadPlusResponse read_plus(CompoundContext&, const nfs4::ReadPlusArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::WriteResponse write(CompoundContext& context, const nfs4::WriteArguments& arguments) override {
    TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
    TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, /*write=*/true));
    if (!access.write) return nfs4::Status::kOpenMode;
    Bytes& content = files[inode->id];
    const ByteSpan data = arguments.data.span();
    content.resize(std::max<size_t>(content.size(), arguments.offset + data.size()));
    std::copy(data.begin(), data.end(), content.begin() + static_cast<ptrdiff_t>(arguments.offset));
    InodeUpdate update;
    update.size = content.size();
    TRY(context.services.names.update(inode->id, update));
    return nfs4::WriteResult{
        .count = static_cast<uint32_t>(data.size()), .committed = arguments.stable, .verifier = {}};
  }
  nfs4::CommitResponse commit(CompoundContext&, const nfs4::CommitArguments&) override {
    return nfs4::CommitResult{};
  }
  nfs4::AllocateResponse allocate(CompoundContext&, const nfs4::AllocateArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::DeallocateResponse deallocate(CompoundContext&, const nfs4::DeallocateArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::CopyResponse copy(CompoundContext&, const nfs4::CopyArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::OffloadStatusResponse offload_status(CompoundContext&, const nfs4::OffloadStatusArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::OffloadCancelResponse offload_cancel(CompoundContext&, const nfs4::OffloadCancelArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::Status test_copy(ClientId, const nfs4::Stateid&) const override { return nfs4::Status::kBadStateid; }
  nfs4::CloneResponse clone(CompoundContext&, const nfs4::CloneArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::SeekResponse seek(CompoundContext&, const nfs4::SeekArguments&) override {
    return nfs4::Status::kNotSupp;
  }
  nfs4::GetDeviceInfoResponse get_device_info(CompoundContext&,
                                              const nfs4::GetDeviceInfoArguments&) override {
    return nfs4::Status::kNoEnt;
  }
  nfs4::LayoutGetResponse layout_get(CompoundContext&, const nfs4::LayoutGetArguments&) override {
    return nfs4::Status::kLayoutUnavailable;
  }
  nfs4::LayoutCommitResponse layout_commit(CompoundContext&, const nfs4::LayoutCommitArguments&) override {
    return nfs4::Status::kBadLayout;
  }
  nfs4::LayoutReturnResponse layout_return(CompoundContext&, const nfs4::LayoutReturnArguments&) override {
    return nfs4::Status::kBadStateid;
  }
  nfs4::LayoutErrorResponse layout_error(CompoundContext&, const nfs4::LayoutErrorArguments&) override {
    return nfs4::Status::kBadStateid;
  }
  nfs4::LayoutStatisticsResponse layout_statistics(CompoundContext&,
                                                   const nfs4::LayoutStatisticsArguments&) override {
    return nfs4::Status::kBadStateid;
  }
  bool layouts_available() const override { return true; }
  std::string durability() const override { return "process"; }
  uint32_t layout_block_size() const override { return 4096; }
  Space space() const override { return {.total = 1 << 30, .free = 1 << 29, .available = 1 << 29}; }

  std::map<uint64_t, Bytes> files;
};

}  // namespace pnfsrdma::mds
