// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/data_operations.h"
#include "server/mds/ops/handlers.h"

// The operations that the layout module implements, and the hint that asks nothing of it.
namespace pnfsrdma::mds {

nfs4::ReadResponse handle(CompoundContext& context, const nfs4::ReadArguments& arguments) {
  return context.services.data.read(context, arguments);
}
nfs4::ReadPlusResponse handle(CompoundContext& context, const nfs4::ReadPlusArguments& arguments) {
  return context.services.data.read_plus(context, arguments);
}
nfs4::WriteResponse handle(CompoundContext& context, const nfs4::WriteArguments& arguments) {
  return context.services.data.write(context, arguments);
}
nfs4::CommitResponse handle(CompoundContext& context, const nfs4::CommitArguments& arguments) {
  return context.services.data.commit(context, arguments);
}
nfs4::AllocateResponse handle(CompoundContext& context, const nfs4::AllocateArguments& arguments) {
  return context.services.data.allocate(context, arguments);
}
nfs4::DeallocateResponse handle(CompoundContext& context, const nfs4::DeallocateArguments& arguments) {
  return context.services.data.deallocate(context, arguments);
}
nfs4::CopyResponse handle(CompoundContext& context, const nfs4::CopyArguments& arguments) {
  return context.services.data.copy(context, arguments);
}
nfs4::OffloadStatusResponse handle(CompoundContext& context, const nfs4::OffloadStatusArguments& arguments) {
  return context.services.data.offload_status(context, arguments);
}
nfs4::OffloadCancelResponse handle(CompoundContext& context, const nfs4::OffloadCancelArguments& arguments) {
  return context.services.data.offload_cancel(context, arguments);
}
nfs4::CloneResponse handle(CompoundContext& context, const nfs4::CloneArguments& arguments) {
  return context.services.data.clone(context, arguments);
}
nfs4::SeekResponse handle(CompoundContext& context, const nfs4::SeekArguments& arguments) {
  return context.services.data.seek(context, arguments);
}
nfs4::GetDeviceInfoResponse handle(CompoundContext& context, const nfs4::GetDeviceInfoArguments& arguments) {
  return context.services.data.get_device_info(context, arguments);
}
nfs4::LayoutGetResponse handle(CompoundContext& context, const nfs4::LayoutGetArguments& arguments) {
  return context.services.data.layout_get(context, arguments);
}
nfs4::LayoutCommitResponse handle(CompoundContext& context, const nfs4::LayoutCommitArguments& arguments) {
  return context.services.data.layout_commit(context, arguments);
}
nfs4::LayoutReturnResponse handle(CompoundContext& context, const nfs4::LayoutReturnArguments& arguments) {
  return context.services.data.layout_return(context, arguments);
}
nfs4::LayoutErrorResponse handle(CompoundContext& context, const nfs4::LayoutErrorArguments& arguments) {
  return context.services.data.layout_error(context, arguments);
}
nfs4::LayoutStatisticsResponse handle(CompoundContext& context,
                                      const nfs4::LayoutStatisticsArguments& arguments) {
  return context.services.data.layout_statistics(context, arguments);
}

// RFC 7862, 15.5. All memory is as near as any other: no hint changes what the server does, and it says so.
nfs4::IoAdviseResponse handle(CompoundContext& context, const nfs4::IoAdviseArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (arguments.count > UINT64_MAX - arguments.offset) return nfs4::Status::kInval;
  TRY(context.io_access(arguments.stateid, *inode, /*write=*/false));
  return nfs4::IoAdviseResult{};
}

}  // namespace pnfsrdma::mds
