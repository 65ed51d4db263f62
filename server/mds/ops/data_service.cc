// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/data_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/mds/ops/exports.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/callback_channel.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/server_limits.h"

// READ, WRITE, COMMIT, COPY, OFFLOAD_STATUS, OFFLOAD_CANCEL, CLONE, and what statfs asks.
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {
// Of a READ's result on the wire: eof, the length of the data, its padding.
constexpr uint32_t kReadResultBytes = 4 + 4 + 3;
// Of a READ_PLUS's: eof, the number of pieces.
constexpr uint32_t kReadPlusResultBytes = 4 + 4;

nfs4::Content content_of(FileIo::Piece& piece) {
  if (!piece.data)
    return nfs4::Content::make<nfs4::ContentType::kHole>({.offset = piece.offset, .length = piece.length});
  return nfs4::Content::make<nfs4::ContentType::kData>(
      {.offset = piece.offset, .data = nfs4::Data(std::move(*piece.data))});
}

}  // namespace

DataService::DataService(BrickSet& bricks, Layouts& layouts, LayoutGranter& granter,
                         LayoutCommitter& committer, FileIo& io, FileRanges& ranges, FileCopy& copies,
                         OffloadedCopies& offloads, FileClone& clones, PathReports& paths)
    : bricks_(bricks),
      layouts_(layouts),
      granter_(granter),
      committer_(committer),
      io_(io),
      ranges_(ranges),
      copies_(copies),
      offloads_(offloads),
      clones_(clones),
      paths_(paths) {}

// RFC 8881, 18.22
nfs4::ReadResponse DataService::read(CompoundContext& context, const nfs4::ReadArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, false));
  if (!access.read) return Status::kOpenMode;
  if (access.special) TRY(context.recall_delegations(*inode, FileAct::kUse));
  const uint32_t room = context.reply_room > kReadResultBytes ? context.reply_room - kReadResultBytes : 0;
  // A shorter answer than asked for is the server's right.
  const uint32_t count = std::min({arguments.count, context.services.limits.io_bytes_max, room});
  using Answer = std::expected<FileIo::Read, Status>;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    io_.read(inode->id, arguments.offset, count, std::move(done));
  }));
  TRY(answer);
  context.services.counters.bytes_read += answer->data->size();
  context.count({.read_bytes = answer->data->size()});
  return nfs4::ReadResult{answer->end_of_file, nfs4::Data(std::move(*answer->data))};
}

// RFC 7862, 15.10: a READ that sends no holes. What is left out for want of room is the client's to ask for again.
nfs4::ReadPlusResponse DataService::read_plus(CompoundContext& context,
                                              const nfs4::ReadPlusArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, false));
  if (!access.read) return Status::kOpenMode;
  if (access.special) TRY(context.recall_delegations(*inode, FileAct::kUse));
  const uint32_t reply_room = context.reply_room - std::min(context.reply_room, kReadPlusResultBytes);
  const uint32_t bytes_max = context.services.limits.io_bytes_max;
  const uint32_t room = std::min(bytes_max + FileIo::kPieceBytes, reply_room);
  using Answer = std::expected<FileIo::Pieces, Status>;
  TRY_ASSIGN(Answer answer, context.suspension.ask<Answer>([&](auto done) {
    // As long as a READ, holes or not: its extents are looked up in one turn.
    io_.read_pieces(inode->id, arguments.offset, std::min(arguments.count, bytes_max), room, std::move(done));
  }));
  TRY(answer);
  nfs4::ReadPlusResult result{.end_of_file = answer->end_of_file};
  uint64_t bytes = 0;
  for (FileIo::Piece& piece : answer->pieces) {
    if (piece.data) bytes += piece.length;
    result.contents.push_back(content_of(piece));
  }
  context.services.counters.bytes_read += bytes;
  context.count({.read_bytes = bytes});
  return result;
}

// RFC 8881, 18.32
nfs4::WriteResponse DataService::write(CompoundContext& context, const nfs4::WriteArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, true));
  if (!access.write) return Status::kOpenMode;
  if (arguments.offset > nfs4::kLengthToEnd - arguments.data.size()) return Status::kInval;
  // An open has recalled them, and keeps others from getting one that it conflicts with.
  if (access.special) TRY(context.recall_delegations(*inode));
  using Answer = std::expected<nfs4::WriteResult, Status>;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    const ByteSpan data = arguments.data.span();
    // A short write is the server's right, too.
    const size_t count = std::min<size_t>(data.size(), context.services.limits.io_bytes_max);
    FileIo::Write write{.client = context.client_id(), .inode = inode->id, .offset = arguments.offset};
    // The one copy: the record the data came in goes when its connection goes, RDMA may still be reading
    // then.
    write.data = std::make_shared<const Bytes>(data.begin(), data.begin() + static_cast<ptrdiff_t>(count));
    write.stable = arguments.stable;
    write.clear_setid = !context.credentials().is_root();
    auto hold = context.services.delegations.hold(inode->id, context.client_id());
    io_.write(std::move(write), holding(std::move(hold), std::move(done)));
  }));
  TRY(answer);
  context.services.counters.bytes_written += answer->count;
  context.count({.write_bytes = answer->count});
  return *answer;
}

// RFC 8881, 18.3
nfs4::CommitResponse DataService::commit(CompoundContext& context, const nfs4::CommitArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  if (arguments.offset > nfs4::kLengthToEnd - arguments.count) return Status::kInval;
  TRY(context.check_modification(*inode));
  using Answer = std::expected<nfs4::Verifier, Status>;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    io_.commit(inode->id, arguments.offset, arguments.count, std::move(done));
  }));
  TRY(answer);
  return nfs4::CommitResult{*answer};
}

// RFC 7862, 15.1
nfs4::AllocateResponse DataService::allocate(CompoundContext& context,
                                             const nfs4::AllocateArguments& arguments) {
  const Status status =
      change_range(context, arguments.stateid, arguments.offset, arguments.length, Change::kAllocate);
  if (status != Status::kOk) return status;
  return nfs4::AllocateResult{};
}

// RFC 7862, 15.4
nfs4::DeallocateResponse DataService::deallocate(CompoundContext& context,
                                                 const nfs4::DeallocateArguments& arguments) {
  const Status status =
      change_range(context, arguments.stateid, arguments.offset, arguments.length, Change::kDeallocate);
  if (status != Status::kOk) return status;
  return nfs4::DeallocateResult{};
}

Status DataService::change_range(CompoundContext& context, const nfs4::Stateid& stateid, uint64_t offset,
                                 uint64_t length, Change change) {
  const auto done = [&]() -> Outcome<> {
    TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
    TRY_ASSIGN(const OpenAccess access, context.io_access(stateid, *inode, true));
    if (!access.write) return std::unexpected(Status::kOpenMode);
    if (length == 0 || offset > nfs4::kLengthToEnd - length) return std::unexpected(Status::kInval);
    if (access.special) TRY(context.recall_delegations(*inode));
    TRY_ASSIGN(const Status answer, context.suspension.ask<Status>([&](auto done) {
      auto told = holding(context.services.delegations.hold(inode->id, context.client_id()), std::move(done));
      const FileRanges::Target target{context.client_id(), inode->id, !context.credentials().is_root()};
      const ByteRange range{offset, offset + length};
      if (change == Change::kAllocate) return ranges_.allocate(target, range, std::move(told));
      ranges_.deallocate(target, range, std::move(told));
    }));
    if (answer != Status::kOk) return std::unexpected(answer);
    return {};
  }();
  return done ? Status::kOk : done.error();
}

namespace {
// What COPY asks for, of a source of that size. INVAL: beyond its end, or over itself.
Outcome<ByteRange> source_range(const nfs4::CopyArguments& arguments, const Inode& source,
                                const Inode& target) {
  const uint64_t from = arguments.source_offset;
  if (from > source.size) return std::unexpected(Status::kInval);
  const uint64_t count = arguments.count == 0 ? source.size - from : arguments.count;
  if (count > source.size - from) return std::unexpected(Status::kInval);
  if (arguments.target_offset > nfs4::kLengthToEnd - count) return std::unexpected(Status::kInval);
  const ByteRange range{from, from + count};
  const ByteRange to{arguments.target_offset, arguments.target_offset + count};
  const bool overlap = range.begin < to.end && to.begin < range.end;
  if (source.id == target.id && overlap) return std::unexpected(Status::kInval);
  return range;
}

// From the saved file to the current one.
struct TwoFiles {
  InodePointer source;
  InodePointer target;
};

// COPY and CLONE: who asks may read the one and write the other.
template <typename Arguments>
Outcome<TwoFiles> two_files(CompoundContext& context, const Arguments& arguments) {
  TRY_ASSIGN(InodePointer source, context.saved_regular_file());
  TRY_ASSIGN(InodePointer target, context.current_regular_file());
  TRY_ASSIGN(const OpenAccess from, context.saved_io_access(arguments.source_stateid, *source));
  TRY_ASSIGN(const OpenAccess to, context.io_access(arguments.target_stateid, *target, true));
  if (!from.read || !to.write) return std::unexpected(Status::kOpenMode);
  if (from.special) TRY(context.recall_delegations(*source, FileAct::kUse));
  if (to.special) TRY(context.recall_delegations(*target));
  return TwoFiles{std::move(source), std::move(target)};
}

nfs4::WriteOutcome outcome_of(const FileCopy::Copied& copied) {
  return {.callback_id = {},
          .count = copied.count,
          .committed = nfs4::StableHow::kFileSync,
          .verifier = copied.verifier};
}
}  // namespace

// RFC 7862, 15.2: within this server only. Who does not wait for a long one has a copy that goes on by itself, if there
// is room for it; all others are answered when it is done, and are short.
nfs4::CopyResponse DataService::copy(CompoundContext& context, const nfs4::CopyArguments& arguments) {
  if (!arguments.source_servers.empty()) return Status::kNotSupp;
  TRY_ASSIGN(const TwoFiles files, two_files(context, arguments));
  const auto& [source, target] = files;
  using Answer = std::expected<nfs4::WriteOutcome, Status>;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    // In here: when it is done, the sizes are others.
    const auto range = source_range(arguments, *source, *target);
    if (!range) return done(std::unexpected(range.error()));
    FileCopy::What what{.client = context.client_id(), .source = source->id, .source_offset = range->begin};
    what.target = target->id;
    what.target_offset = arguments.target_offset;
    what.count = range->length();
    what.clear_setid = !context.credentials().is_root();
    if (!arguments.synchronous && what.count > FileCopy::kBytesMax && offloads_.has_room(*context.client))
      return done(offload(context, std::move(what)));
    copies_.copy(what, holding(context.services.delegations.hold(target->id, context.client_id()),
                               [done](const std::expected<FileCopy::Copied, Status>& copied) {
                                 if (!copied) return done(std::unexpected(copied.error()));
                                 done(outcome_of(*copied));
                               }));
  }));
  TRY(answer);
  const uint64_t count = answer->count;
  context.services.counters.bytes_read += count;
  context.services.counters.bytes_written += count;
  context.count({.read_bytes = count, .write_bytes = count});
  const bool synchronous = !answer->callback_id;
  return nfs4::CopyResult{*answer, {.consecutive = true, .synchronous = synchronous}};
}

namespace {
// As a reply would have it: what was done is durable, and this server still leads.
void when_durable(KeyValueStore& store, std::function<void()> then) {
  store.when_synced(store.last_namespace_sequence(), [&store, then = std::move(then)] {
    if (store.written(store.last_sequence())) return then();
    store.when_written(then);
  });
}

// Who has the file open may write on; who has not, as long as nobody denies it (as with a special stateid).
Status may_write_on(const Services& services, ClientId client, const ObjectHandle& target) {
  const Export* const exported = services.exports.find_accepted(target.export_id);
  if (exported == nullptr) return Status::kStale;
  if (exported->read_only) return Status::kRoFs;
  if ((services.opens.access_of_client(target.inode, client) & kShareWrite) != 0) return Status::kOk;
  const DelegationState* const held = services.delegations.table().find(target.inode, client);
  if (held != nullptr && held->kind == DelegationKind::kWrite) return Status::kOk;
  return services.opens.access_denied_by_others(target.inode, kShareWrite) ? Status::kLocked : Status::kOk;
}
}  // namespace

nfs4::WriteOutcome DataService::offload(CompoundContext& context, FileCopy::What what) {
  const ObjectHandle target = *context.current.handle;
  Services& services = context.services;
  const ClientId client = context.client_id();
  auto may_write = [&services, client, target] { return may_write_on(services, client, target); };
  auto tell = [&services, client](const nfs4::CallbackOffloadArguments& outcome,
                                  std::function<void(bool)> done) {
    when_durable(services.store, [&services, client, outcome, done = std::move(done)] {
      services.callbacks.call(client, outcome, [done](const CallbackChannel::Answer& answer) {
        done(answer && nfs4::status_of(*answer) != Status::kDelay);
      });
    });
  };
  auto hold = services.delegations.hold(what.target, context.client_id());
  nfs4::WriteOutcome outcome = outcome_of({});
  outcome.callback_id =
      offloads_.start({.client = context.client,
                       .other = make_stateid_other(StateKind::kCopy, services.clock.now(), services.random),
                       .target = target,
                       .named = services.handles.encode(target),
                       .what = std::move(what),
                       .hold = std::move(hold),
                       .may_write = std::move(may_write),
                       .tell = std::move(tell)});
  return outcome;
}

// RFC 7862, 15.9
nfs4::OffloadStatusResponse DataService::offload_status(CompoundContext& context,
                                                        const nfs4::OffloadStatusArguments& arguments) {
  TRY_ASSIGN(nfs4::OffloadStatusResult progress, offloads_.progress(context.client_id(), arguments.stateid));
  return progress;
}

// RFC 7862, 15.8
nfs4::OffloadCancelResponse DataService::offload_cancel(CompoundContext& context,
                                                        const nfs4::OffloadCancelArguments& arguments) {
  TRY_ASSIGN(const Status cancelled, context.suspension.ask<Status>([&](auto done) {
    offloads_.cancel(context.client_id(), arguments.stateid, std::move(done));
  }));
  return cancelled;
}

// RFC 7862, 15.13
nfs4::CloneResponse DataService::clone(CompoundContext& context, const nfs4::CloneArguments& arguments) {
  TRY_ASSIGN(const TwoFiles files, two_files(context, arguments));
  const auto& [source, target] = files;
  TRY_ASSIGN(const Status answer, context.suspension.ask<Status>([&](auto done) {
    const FileClone::What what{.client = context.client_id(),
                               .source = source->id,
                               .source_offset = arguments.source_offset,
                               .target = target->id,
                               .target_offset = arguments.target_offset,
                               .count = arguments.count,
                               .clear_setid = !context.credentials().is_root()};
    auto hold = context.services.delegations.hold(target->id, context.client_id());
    clones_.clone(what, holding(std::move(hold), std::move(done)));
  }));
  if (answer != Status::kOk) return answer;
  return nfs4::CloneResult{};
}

// RFC 7862, 15.11
nfs4::SeekResponse DataService::seek(CompoundContext& context, const nfs4::SeekArguments& arguments) {
  TRY_ASSIGN(const InodePointer inode, context.current_regular_file());
  TRY_ASSIGN(const OpenAccess access, context.io_access(arguments.stateid, *inode, false));
  if (!access.read) return Status::kOpenMode;
  if (access.special) TRY(context.recall_delegations(*inode, FileAct::kUse));
  using Answer = std::expected<nfs4::SeekResult, Status>;
  TRY_ASSIGN(const Answer answer, context.suspension.ask<Answer>([&](auto done) {
    ranges_.seek(inode->id, arguments.offset, arguments.what, std::move(done));
  }));
  TRY(answer);
  return *answer;
}

std::optional<Durability> DataService::least_durability() const {
  std::optional<uint32_t> least;
  for (BrickDevice* const brick : bricks_.all()) {
    const BrickRecord& record = brick->record();
    if (record.claimed_before()) least = std::min(least.value_or(record.durability), record.durability);
  }
  if (!least) return std::nullopt;
  return static_cast<Durability>(*least);
}

std::string DataService::durability() const {
  const auto least = least_durability();
  return least ? to_string(*least) : "unknown";
}

DataOperations::Space DataService::space() const {
  DataOperations::Space sum;
  for (BrickDevice* const brick : bricks_.all()) {
    const uint64_t total = brick->record().block_count * brick::kBlockSize;
    const uint64_t free = brick->space().unused_bytes();
    sum.total += total;
    sum.free += free;
    // One that is away has its space still: the file system is not full because of it.
    if (!brick->record().leaving) sum.available += free;
  }
  return sum;
}

}  // namespace pnfsrdma::mds
