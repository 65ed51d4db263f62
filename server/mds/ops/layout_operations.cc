// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "server/mds/ops/data_service.h"
#include "server/mds/state/delegations.h"
#include "shared/base/log.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/xdr/codec.h"

// GETDEVICEINFO, LAYOUTGET, LAYOUTCOMMIT, LAYOUTRETURN, LAYOUTERROR, LAYOUTSTATS.
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

LayoutStateid layout_stateid(const nfs4::Stateid& stateid) {
  return {stateid.seqid, stateid.other};
}

bool names_layout(const nfs4::Stateid& stateid) {
  return stateid.other[0] == kLayoutStateidTag;
}

// A length that is nothing, or that leads past the last offset there is (2^64-1 means "to the end").
bool bad_range(uint64_t offset, uint64_t length) {
  return length == 0 || (length != nfs4::kLengthToEnd && length > nfs4::kLengthToEnd - offset);
}

// What the client may do with the file by all of its opens: a layout stateid names none of them.
OpenAccess access_by_opens(CompoundContext& context, const Inode& inode) {
  OpenAccess access{.client = context.client_id()};
  const uint32_t opened = context.services.opens.access_of_client(inode.id, access.client);
  access.read = (opened & kShareRead) != 0;
  access.write = (opened & kShareWrite) != 0;
  if (const auto* held = context.services.delegations.table().find(inode.id, access.client)) {
    access.read = true;
    access.write |= held->kind == DelegationKind::kWrite;
  }
  if (access.write && !access.read) access.read = context.check_access(inode, kMayRead).has_value();
  return access;
}

// Whether the open's rights are enough for a handle of this kind. Bricks have none for writing alone: memory
// that can be written can be read. Who may only write does so by WRITE.
Outcome<> check_handle_rights(const OpenAccess& access, bool writes) {
  if (writes ? !access.write : !access.read) return std::unexpected(Status::kOpenMode);
  if (!access.read) return std::unexpected(Status::kLayoutUnavailable);
  return {};
}

nfs4::DeviceAddress device_address(const brick::ClaimResult& brick, const Ticket& ticket) {
  nfs4::DeviceAddress address;
  for (const brick::Path& path : brick.paths) {
    if (address.paths.size() < nfs4::kDevicePathsMax) address.paths.push_back({path.netid, path.address});
  }
  address.ticket = ticket;
  // The brick flushes on LAYOUTCOMMIT whatever else it can do.
  address.flush_methods = brick.flush_methods | nfs4::kFlushLayoutCommit;
  address.durability = static_cast<Durability>(brick.durability);
  address.block_size = static_cast<uint32_t>(brick::kBlockSize);
  return address;
}

nfs4::GetDeviceInfoResponse answer_with(const nfs4::DeviceAddress& address, uint32_t bytes_max) {
  nfs4::GetDeviceInfoResult result;
  result.device_address.layout_type = nfs4::kLayoutTypePmem;
  xdr::Encoder encoder(result.device_address.body);
  xdr::encode(encoder, address);
  xdr::Encoder counter = xdr::Encoder::counter();
  xdr::encode(counter, result.device_address);
  const auto bytes = static_cast<uint32_t>(counter.position());
  if (bytes > bytes_max) return nfs4::GetDeviceInfoResponse::failed({bytes});
  return result;
}

std::expected<std::vector<nfs4::PersistRange>, Status> persist_ranges(const nfs4::TypedBody& update) {
  if (update.body.empty()) return std::vector<nfs4::PersistRange>();
  nfs4::LayoutUpdate decoded;
  xdr::Decoder decoder(update.body);
  if (!xdr::decode(decoder, decoded) || decoder.remaining() > 0) return std::unexpected(Status::kBadXdr);
  for (const nfs4::PersistRange& range : decoded.persist) {
    if (bad_range(range.offset, range.length) || range.length == nfs4::kLengthToEnd) {
      return std::unexpected(Status::kInval);
    }
  }
  return std::vector<nfs4::PersistRange>(std::move(decoded.persist));
}

}  // namespace

// RFC 8881, 18.40
nfs4::GetDeviceInfoResponse DataService::get_device_info(CompoundContext& context,
                                                         const nfs4::GetDeviceInfoArguments& arguments) {
  if (arguments.layout_type != nfs4::kLayoutTypePmem) return Status::kUnknownLayoutType;
  if (arguments.device == nfs4::kEveryDevice) return every_device(arguments.max_count);
  BrickDevice* const brick = bricks_.find(arguments.device);
  if (brick == nullptr) return Status::kNoEnt;
  nfs4::GetDeviceInfoResult result;
  result.device_address.layout_type = nfs4::kLayoutTypePmem;
  // Nothing is notified: a device changes with the brick's process, and then its layouts are revoked anyway.
  // A count of 0 only asks for notifications, and whether the device is there.
  if (arguments.max_count == 0) return result;
  if (layouts_.gone(context.client_id())) return Status::kDelay;
  // 18.40.3 knows no error for a device that is away: after a while it is not there.
  if (const Status absent = brick->absence(); absent != Status::kOk)
    return absent == Status::kDelay ? absent : Status::kNoEnt;
  using Answer = BrickDevice::Answer<Ticket>;
  TRY_ASSIGN(const Answer ticket, context.suspension.ask<Answer>([&](auto done) {
    brick->open_session(context.client_id(), std::move(done));
  }));
  if (!ticket) return status_of(ticket.error());
  return answer_with(device_address(brick->identity(), *ticket), arguments.max_count);
}

// The class that a client asks for which may not see a device (nfs4::kEveryDevice).
nfs4::GetDeviceInfoResponse DataService::every_device(uint32_t bytes_max) const {
  const auto least = least_durability();
  if (!least) return Status::kNoEnt;
  nfs4::DeviceAddress address;
  address.durability = *least;
  return answer_with(address, bytes_max);
}

// RFC 8881, 18.43
nfs4::LayoutGetResponse DataService::layout_get(CompoundContext& context,
                                                const nfs4::LayoutGetArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (arguments.layout_type != nfs4::kLayoutTypePmem) return Status::kUnknownLayoutType;
  if (arguments.io_mode != IoMode::kRead && arguments.io_mode != IoMode::kReadWrite)
    return Status::kBadIoMode;
  if (bad_range(arguments.offset, arguments.length) || arguments.length < arguments.min_length)
    return Status::kInval;
  if (context.in_grace()) return Status::kGrace;
  const bool writes = arguments.io_mode == IoMode::kReadWrite;
  if (writes) TRY(context.check_writable());
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  GrantRequest request{.client = context.client_id(),
                       .inode = inode->id,
                       .export_id = handle.export_id,
                       .generation = handle.generation,
                       .old_handle = handle.old,
                       .mode = arguments.io_mode};
  OpenAccess access;
  if (names_layout(stateid)) {
    request.stateid = layout_stateid(stateid);
    access = access_by_opens(context, *inode);
  } else {
    // The first one comes with an open stateid; so may a later one, when the client has opened the file in
    // one COMPOUND with LAYOUTGET and holds its layout already.
    TRY_ASSIGN(access, context.io_access(stateid, *inode, writes));
    if (access.special) return Status::kBadStateid;
  }
  TRY(check_handle_rights(access, writes));
  request.clear_setid = !context.credentials().is_root();
  request.wants_end = arguments.signal_when_available;
  request.range = range_of(arguments.offset, arguments.length);
  request.min_length = arguments.min_length;
  request.max_bytes = std::min(arguments.max_count, context.reply_room);
  // Layouts under an export that changes are looked for then, once: what is answered later must not be among them.
  request.still_allowed = context.exports_stay();
  using Answer = LayoutGranter::Answer;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    const FileAct act = writes ? FileAct::kChange : FileAct::kUse;
    auto hold = context.services.delegations.hold(inode->id, request.client, act);
    granter_.grant(request, holding(std::move(hold), std::move(done)));
  }));
  TRY(answer);
  context.current.stateid = answer->stateid;
  return *answer;
}

// RFC 8881, 18.42
nfs4::LayoutCommitResponse DataService::layout_commit(CompoundContext& context,
                                                      const nfs4::LayoutCommitArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (arguments.update.layout_type != nfs4::kLayoutTypePmem) return Status::kUnknownLayoutType;
  // Layouts are not reclaimable here: within grace there is nothing to commit to, the client writes its data
  // again.
  if (arguments.reclaim) return context.in_grace() ? Status::kReclaimBad : Status::kNoGrace;
  if (bad_range(arguments.offset, arguments.length)) return Status::kInval;
  if (arguments.time_modify && arguments.time_modify->nanoseconds >= 1'000'000'000) return Status::kInval;
  TRY(context.check_modification(*inode));
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (!names_layout(stateid)) return Status::kBadStateid;
  TRY_ASSIGN(std::vector<nfs4::PersistRange> persist, persist_ranges(arguments.update));
  CommitRequest request{
      .client = context.client_id(), .inode = inode->id, .stateid = layout_stateid(stateid)};
  request.range = range_of(arguments.offset, arguments.length);
  request.last_write_offset = arguments.last_write_offset;
  if (arguments.time_modify) request.mtime = arguments.time_modify->to_wall_time();
  request.persist = std::move(persist);
  request.clear_setid = !context.credentials().is_root();
  using Answer = LayoutCommitter::Answer;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    auto hold = context.services.delegations.hold(inode->id, request.client);
    committer_.commit(request, holding(std::move(hold), std::move(done)));
  }));
  TRY(answer);
  return nfs4::LayoutCommitResult{*answer};
}

// RFC 8881, 18.44
nfs4::LayoutReturnResponse DataService::layout_return(CompoundContext& context,
                                                      const nfs4::LayoutReturnArguments& arguments) {
  if (arguments.layout_type != nfs4::kLayoutTypePmem) return Status::kUnknownLayoutType;
  if (arguments.reclaim && !context.in_grace()) return Status::kNoGrace;
  // Nothing is left of what an earlier run of the server had granted.
  if (arguments.reclaim) return nfs4::LayoutReturnResult{};
  const uint64_t client = context.client_id();
  const IoMode mode = arguments.io_mode;
  const auto* file = arguments.what.get_if<nfs4::LayoutReturnType::kFile>();
  if (file == nullptr) {
    // One file system: FSID is ALL. There are no bulk recalls, so nothing of them can be pending.
    TRY_ASSIGN(const Returned returned, context.suspension.ask<Returned>([&](auto done) {
      return_everything(client, mode, std::move(done));
    }));
    TRY(returned);
    return nfs4::LayoutReturnResult{};
  }
  TRY_ASSIGN(const InodeId inode, context.current_file_to_give_back());
  if (bad_range(file->offset, file->length) || !file->body.empty()) return Status::kInval;
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(file->stateid));
  if (!names_layout(stateid)) return Status::kBadStateid;
  TRY_ASSIGN(const Returned returned, context.suspension.ask<Returned>([&](auto done) {
    return_range(client, inode, mode, range_of(file->offset, file->length), layout_stateid(stateid),
                 std::move(done));
  }));
  TRY(returned);
  nfs4::LayoutReturnResult result;
  if (*returned) {
    result.stateid = nfs4::Stateid{(*returned)->seqid, (*returned)->other};
    context.current.stateid = *result.stateid;
  }
  return result;
}

// RFC 7862, 15.6. What is kept is for people: a device that a client cannot reach is not known in any other way.
nfs4::LayoutErrorResponse DataService::layout_error(CompoundContext& context,
                                                    const nfs4::LayoutErrorArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (bad_range(arguments.offset, arguments.length)) return Status::kInval;
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (!names_layout(stateid)) return Status::kBadStateid;
  const uint64_t client = context.client_id();
  if (const auto layout = layouts_.find(client, inode->id, layout_stateid(stateid)); !layout)
    return layout.error();
  for (const nfs4::DeviceError& error : arguments.errors) {
    // If the brick is away, or no longer ours, nobody can reach it, and that is known.
    const BrickDevice* const brick = bricks_.find(error.device);
    if (error.status == Status::kOk || brick == nullptr || !brick->ready()) continue;
    if (!paths_.note(client, error.device, error.status, layouts_.now())) continue;
    log_warning("layouts", "path-broken client={:#x} brick={} operation={} error={}", client,
                uuid_text(error.device), error.operation, nfs4::to_string(error.status));
  }
  return nfs4::LayoutErrorResult{};
}

constexpr uint64_t kReportedCountMax = uint64_t{1} << 32;
constexpr uint64_t kReportedBytesMax = uint64_t{1} << 50;

// RFC 7862, 15.7. What is said is what has been done since it was said last. It is kept for people, in memory.
nfs4::LayoutStatisticsResponse DataService::layout_statistics(
    CompoundContext& context, const nfs4::LayoutStatisticsArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (arguments.update.layout_type != nfs4::kLayoutTypePmem) return Status::kUnknownLayoutType;
  if (bad_range(arguments.offset, arguments.length) || !arguments.update.body.empty()) return Status::kInval;
  for (const nfs4::IoInfo& done : {arguments.read, arguments.write}) {
    if (done.count == 0 && done.bytes != 0) return Status::kInval;
    // More than anybody does: it would spoil the sums of all.
    if (done.count > kReportedCountMax || done.bytes > kReportedBytesMax) return Status::kInval;
  }
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(arguments.stateid));
  if (!names_layout(stateid)) return Status::kBadStateid;
  TRY_ASSIGN(HeldLayout* const layout,
             layouts_.find(context.client_id(), inode->id, layout_stateid(stateid)));
  const ReportedIo more{.reads = arguments.read.count,
                        .read_bytes = arguments.read.bytes,
                        .writes = arguments.write.count,
                        .write_bytes = arguments.write.bytes};
  layout->report(more);
  context.client->reported += more;
  context.services.counters.reported += more;
  return nfs4::LayoutStatisticsResult{};
}

void DataService::return_range(uint64_t client, uint64_t inode, IoMode mode, const ByteRange& range,
                               const LayoutStateid& stateid, std::function<void(Returned)> done) {
  if (const auto layout = layouts_.find(client, inode, stateid); !layout)
    return done(std::unexpected(layout.error()));
  // Answered when the handles are dead in the transport, not before.
  layouts_.give_back(client, inode, range, mode,
                     [this, client, inode, other = stateid.other, done = std::move(done)] {
                       done(layouts_.stateid_left(client, inode, other));
                     });
}

void DataService::return_everything(uint64_t client, IoMode mode, std::function<void(Returned)> done) {
  layouts_.give_back_all(client, mode, [done = std::move(done)] { done(std::nullopt); });
}

}  // namespace pnfsrdma::mds
