// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_committer.h"

#include <utility>

#include "server/mds/meta/permissions.h"
#include "server/mds/meta/read_then.h"

namespace pnfsrdma::mds {

namespace {

// In order, and each byte once: what is looked at for them is bounded by what the file has.
std::vector<nfs4::PersistRange> merged(const std::vector<nfs4::PersistRange>& ranges) {
  RangeSet bytes;
  for (const nfs4::PersistRange& range : ranges) bytes.add(range_of(range.offset, range.length));
  std::vector<nfs4::PersistRange> found;
  for (const ByteRange& range : bytes.all()) found.push_back({range.begin, range.length()});
  return found;
}

}  // namespace

LayoutCommitter::LayoutCommitter(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks,
                                 FileSpace& space, Layouts& layouts)
    : clock_(clock),
      names_(names),
      space_(space),
      layouts_(layouts),
      persister_(loop, names.store(), bricks) {}

void LayoutCommitter::commit(CommitRequest request, Done done) {
  request.persist = merged(request.persist);
  const auto shared = std::make_shared<const CommitRequest>(std::move(request));
  look_and(shared, [this, shared, done = std::move(done)] { persist(shared, done); });
}

void LayoutCommitter::persist(const RequestPointer& request, const Done& done) {
  if (const auto checked = check(*request); !checked) return done(std::unexpected(checked.error()));
  if (request->persist.empty()) return conclude(request, done);
  std::vector<ByteRange> ranges;
  for (const nfs4::PersistRange& range : request->persist)
    ranges.push_back(range_of(range.offset, range.length));
  persister_.persist(request->inode, std::move(ranges), [this, request, done](nfs4::Status persisted) {
    // A crash here: bytes behind the old size, with their tail record. The client has no answer and sends
    // again.
    if (persisted != nfs4::Status::kOk) return done(std::unexpected(persisted));
    look_and(request, [this, request, done] { conclude(request, done); });
  });
}

// Behind what check() and apply() read.
void LayoutCommitter::look_and(const RequestPointer& request, std::function<void()> then) {
  look_then(
      names_.store(), lifetime_.token(),
      [this, inode = request->inode] { static_cast<void>(names_.get(inode)); }, std::move(then));
}

void LayoutCommitter::conclude(const RequestPointer& request, const Done& done) {
  const auto inode = names_.get(request->inode);
  const auto last = request->last_write_offset;
  if (!inode || !last || *last >= kFileSizeMax || *last < (*inode)->size) return done(apply(*request));
  // What lies there on a brick that is not ready may be another writer's of an earlier run: zeroed first.
  space_.absence(request->inode, {(*inode)->size, *last + 1},
                 lifetime_.guard([this, request, done](nfs4::Status absent) {
                   if (absent != nfs4::Status::kOk) return done(std::unexpected(absent));
                   look_and(request, [this, request, done] { done(apply(*request)); });
                 }));
}

std::expected<InodePointer, nfs4::Status> LayoutCommitter::check(const CommitRequest& request) {
  TRY_ASSIGN(HeldLayout* const layout, layouts_.find(request.client, request.inode, request.stateid));
  TRY_ASSIGN(const InodePointer inode, names_.get(request.inode));
  // RFC 8881, 18.42.3: the range must overlap a read-write layout of the client.
  if (!layout->holds(request.range, IoMode::kReadWrite)) {
    return std::unexpected(layout->holds(request.range, IoMode::kAny) ? nfs4::Status::kBadIoMode
                                                                      : nfs4::Status::kBadLayout);
  }
  for (const nfs4::PersistRange& range : request.persist) {
    if (!layout->may_write(range_of(range.offset, range.length)))
      return std::unexpected(nfs4::Status::kBadLayout);
  }
  if (!request.last_write_offset) return inode;
  const uint64_t last = *request.last_write_offset;
  if (last < request.range.begin || last >= request.range.end) return std::unexpected(nfs4::Status::kInval);
  if (last >= kFileSizeMax) return std::unexpected(nfs4::Status::kInval);
  if (last < inode->size) return inode;
  // A size from before a recall says nothing about the file behind it: it may have been truncated.
  if (layout->older_than_completed_recall(request.stateid.seqid))
    return std::unexpected(nfs4::Status::kBadStateid);
  if (!layout->may_write({last, last + 1})) return std::unexpected(nfs4::Status::kBadLayout);
  return inode;
}

LayoutCommitter::Answer LayoutCommitter::apply(const CommitRequest& request) {
  TRY_ASSIGN(const InodePointer inode, check(request));
  if (!request.last_write_offset && !request.mtime) return std::nullopt;
  const WallTime mtime = request.mtime.value_or(clock_.wall_now());
  // LAYOUTCOMMIT never shrinks a file.
  if (!request.last_write_offset || *request.last_write_offset < inode->size) {
    if (request.clear_setid && mode_without_setid(*inode) != inode->mode) {
      TRY(names_.update(request.inode, {.mtime = mtime, .clear_setid = true}));
      return std::nullopt;
    }
    // Times alone: at once, and durable within seconds, as lazytime has it.
    TRY(names_.touch(request.inode, mtime));
    return std::nullopt;
  }
  const uint64_t size = *request.last_write_offset + 1;
  // What of the growth the client does not hold itself is zeros, or some other living writer's. Where a
  // writer has ended it becomes zeros first: soon, and without the help of any client.
  if (space_.has_leftovers(request.inode, {inode->size, size})) return std::unexpected(nfs4::Status::kDelay);
  // Namespace durability: the reply waits for the sync.
  TRY(names_.update(request.inode, {.size = size, .mtime = mtime, .clear_setid = request.clear_setid}));
  return size;
}

}  // namespace pnfsrdma::mds
