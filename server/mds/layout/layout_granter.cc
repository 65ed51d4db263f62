// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_granter.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "server/mds/layout/layout_answer.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {

namespace {

// Exposures one LAYOUTGET makes at most; the client asks again for the rest.
constexpr size_t kExposuresMax = 256;
// How far beyond what it needs a client gets holes and grants told in one answer is up to what it asked for;
// a hole is told no further than this, so that filling it recalls little.
constexpr uint64_t kHoleMax = uint64_t{64} << 20;
// No segment is shorter on the wire.
constexpr uint32_t kSegmentBytesMin = 64;
// What a turn of the loop looks at, exposes and tells is bounded by that of an answer, whatever the client would take.
constexpr uint32_t kAnswerBytesMax = uint32_t{128} << 10;
// Of a LayoutEnd.
constexpr uint32_t kEndBytes = 8;

// An extent is a segment at least: more than the answer has room for need not be read.
size_t extents_told(const GrantRequest& request) {
  return request.max_bytes / kSegmentBytesMin + 1;
}

// The brick refused the client a grant: because it has too many of its own, or all together have.
uint64_t greedy_client(const BrickDevice& brick, uint64_t client) {
  const uint64_t holder = brick.at_own_limit(client) ? client : brick.holder_of_most();
  return holder != 0 ? holder : client;
}

// `extents` without `parts` of them; both in order.
std::vector<Extent> without(const std::vector<Extent>& extents, const std::vector<Extent>& parts) {
  std::vector<Extent> left;
  auto part = parts.begin();
  for (const Extent& extent : extents) {
    uint64_t at = extent.file_offset;
    const auto keep = [&](uint64_t end) {
      if (end > at) left.push_back({at, extent.logical + (at - extent.file_offset), end - at});
    };
    for (; part != parts.end() && part->file_offset < extent.end(); ++part) {
      keep(part->file_offset);
      at = part->end();
    }
    keep(extent.end());
  }
  return left;
}

}  // namespace

// One LAYOUTGET under way. Everything that may have changed over a wait is looked up again.
struct LayoutGranter::Work {
  GrantRequest request;
  InodeQueue::Turn turn;
  Done done;
  uint64_t fences = 0;                  // Layouts::fences() when it came
  ByteRange needed;                     // what the answer must cover
  std::deque<Extent> gaps;              // to expose, in order
  ByteRange filled;                     // where memory came for holes
  std::vector<HeldGrant> booked;        // for this answer
  std::vector<ByteRange> booked_holes;  // likewise
  std::optional<uint64_t> greedy;       // a limit of the brick is met: who is asked for less
  bool from_writable = false;           // answered with the read-write grants the client holds already
};

LayoutGranter::LayoutGranter(Namespace& names, BrickSet& bricks, FileSpace& space, LayoutTable& table,
                             InodeQueue& queue, Layouts& layouts, LayoutRecords& records, Counters& counters,
                             Random& random)
    : names_(names),
      bricks_(bricks),
      space_(space),
      table_(table),
      queue_(queue),
      layouts_(layouts),
      records_(records),
      counters_(counters),
      random_(random),
      // Never one that an earlier run gave: a client would take what it knows of that end for this one's.
      next_end_token_(random.next_u64() | 1) {}

void LayoutGranter::grant(const GrantRequest& request, Done done) {
  auto work = std::make_shared<Work>();
  work->request = request;
  work->request.max_bytes = std::min(request.max_bytes, kAnswerBytesMax);
  work->done = std::move(done);
  work->fences = layouts_.fences(request.client);
  // Before the queue: a recall that an operation in front of us waits for would keep us waiting for
  // ourselves.
  when_present(work, [this, work] {
    if (const auto status = refusal(work->request)) return fail(work, *status);
    queue_.exclusive(work->request.inode, [this, work](InodeQueue::Turn turn) {
      work->turn = std::move(turn);
      when_present(work, [this, work] {
        look_then(
            names_.store(), lifetime_.token(),
            [this, work] { static_cast<void>(names_.get(work->request.inode)); },
            [this, work] { begin(work); });
      });
    });
  });
}

// Fails where a brick of the range is away: what goes through the server then says for how long.
void LayoutGranter::when_present(const WorkPointer& work, std::function<void()> then) {
  space_.absence(work->request.inode, work->request.range,
                 lifetime_.guard([this, work, then = std::move(then)](nfs4::Status absent) {
                   if (absent != nfs4::Status::kOk) return fail(work, nfs4::Status::kLayoutTryLater);
                   then();
                 }));
}

std::optional<nfs4::Status> LayoutGranter::refusal(const GrantRequest& request) {
  if (layouts_.gone(request.client) || layouts_.being_revoked(request.client, request.inode) ||
      layouts_.fenced(request.client, request.inode))
    return nfs4::Status::kLayoutTryLater;
  if (layouts_.reserved_against(request.inode, request.client)) return nfs4::Status::kLayoutTryLater;
  if (request.mode == IoMode::kReadWrite && layouts_.writers_stopped()) return nfs4::Status::kLayoutTryLater;
  switch (layouts_.recalls().progress(request.client, request.inode, request.range)) {
    case Recalls::Progress::kUnanswered:
      return nfs4::Status::kRecallConflict;
    case Recalls::Progress::kAnswered:
      return nfs4::Status::kReturnConflict;
    case Recalls::Progress::kNone:
      break;
  }
  if (!request.stateid) return std::nullopt;
  const auto layout = layouts_.find(request.client, request.inode, *request.stateid);
  return layout ? std::nullopt : std::optional(layout.error());
}

void LayoutGranter::begin(const WorkPointer& work) {
  const GrantRequest& request = work->request;
  if (const auto status = refusal(request)) return fail(work, *status);
  const auto inode = names_.get(request.inode);
  if (!inode) return fail(work, inode.error());
  const uint64_t size = (*inode)->size;
  const uint64_t begin = request.range.begin;
  work->needed = range_of(begin, std::max<uint64_t>(request.min_length, 1));
  if (request.mode == IoMode::kReadWrite) {
    // Also RW with a min_length of 2^64-1, which would have to be granted whole.
    if (work->needed.end > kFileSizeMax) return fail(work, nfs4::Status::kBadLayout);
    // POSIX write(2): setuid and setgid go with the first byte. Nobody sees one that goes by RDMA, so it is
    // to go by WRITE; then there is a layout.
    if (request.clear_setid && mode_without_setid(**inode) != (*inode)->mode)
      return fail(work, nfs4::Status::kLayoutTryLater);
    return make_writable(work);
  }
  // Nothing to read there; the server answers READ with end-of-file.
  if (begin >= size) {
    return fail(work, request.min_length > 0 ? nfs4::Status::kBadLayout : nfs4::Status::kLayoutTryLater);
  }
  work->needed.end = std::min(work->needed.end, size);
  const HeldLayout* held = table_.find(request.inode, request.client);
  work->from_writable = held != nullptr && held->gaps(work->needed, IoMode::kReadWrite).empty();
  if (work->from_writable) return answer(work);
  find_gaps(work);
}

void LayoutGranter::make_writable(const WorkPointer& work) {
  const HeldLayout* held = table_.find(work->request.inode, work->request.client);
  if (held != nullptr && held->gaps(work->needed, IoMode::kReadWrite).empty()) return answer(work);
  // A tail somebody left dirty is zeroed before it is handed out again.
  space_.clean_tail(work->request.inode, [this, work](nfs4::Status cleaned) {
    if (cleaned != nfs4::Status::kOk) return fail(work, nfs4::Status::kLayoutTryLater);
    own(work);
  });
}

// Memory that other files have, too, is copied before anybody may write there.
void LayoutGranter::own(const WorkPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] {
        return space_.to_unshare(work->request.inode, work->needed, extents_told(work->request));
      },
      [this, work](const Outcome<ByteRange>& stretch) {
        if (!stretch) return fail(work, stretch.error());
        if (stretch->empty()) return fill(work);
        unshare(work, *stretch);
      });
}

void LayoutGranter::unshare(const WorkPointer& work, const ByteRange& stretch) {
  const GrantRequest& request = work->request;
  // Who asks may read there, too. He cannot give that back while he waits for us.
  if (table_.reachable(request.inode, stretch, request.client)) {
    layouts_.recall(request.client, request.inode, stretch);
    return fail(work, nfs4::Status::kRecallConflict);
  }
  layouts_.clear(request.inode, stretch, request.client, [this, work, stretch](bool cleared) {
    if (!cleared) return fail(work, nfs4::Status::kLayoutTryLater);
    space_.unshare(work->request.inode, work->needed, stretch, [this, work](nfs4::Status status) {
      if (status == nfs4::Status::kDelay || status == nfs4::Status::kIo)
        status = nfs4::Status::kLayoutTryLater;
      if (status != nfs4::Status::kOk) return fail(work, status);
      fill(work);
    });
  });
}

void LayoutGranter::fill(const WorkPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return filling(*work); },
      [this, work](const std::expected<std::optional<AllocationPlan>, nfs4::Status>& plan) {
        if (!plan) return fail(work, plan.error());
        if (!*plan) return clear_stale_holes(work);
        fill_holes(work, **plan);
      });
}

// Only reads. nullopt: there is memory everywhere.
std::expected<std::optional<AllocationPlan>, nfs4::Status> LayoutGranter::filling(const Work& work) {
  const auto mapped = space_.extents().map(work.request.inode, work.needed.begin, work.needed.length(),
                                           extents_told(work.request) + 1);
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  // No answer has room for them.
  if (mapped->back().file_offset + mapped->back().length < work.needed.end)
    return std::unexpected(nfs4::Status::kTooSmall);
  if (std::ranges::all_of(*mapped, [](const Mapping& part) { return part.logical.has_value(); }))
    return std::nullopt;
  return space_.plan(work.request.inode, work.needed, work.request.range.end);
}

void LayoutGranter::fill_holes(const WorkPointer& work, const AllocationPlan& plan) {
  const GrantRequest& request = work->request;
  // Whoever reads zeros there from a hole must ask again, or he would go on reading zeros.
  layouts_.clear_holes(request.inode, plan.wished, request.client, [this, work, plan](bool cleared) {
    if (!cleared) return fail(work, nfs4::Status::kLayoutTryLater);
    read_then(
        names_.store(), lifetime_.token(), [this, work] { return writer_marks(work->request, true); },
        [this, work, plan](Batch marks) { allocate(work, plan, std::move(marks)); });
  });
}

void LayoutGranter::allocate(const WorkPointer& work, const AllocationPlan& plan, Batch marks) {
  FileSpace::Change change{.update = {.space_only = true}, .extra = std::move(marks)};
  space_.allocate(work->request.inode, plan, std::move(change), [this, work, plan](nfs4::Status status) {
    // The brick is away: what goes through the server says for how long.
    if (status == nfs4::Status::kDelay || status == nfs4::Status::kIo) status = nfs4::Status::kLayoutTryLater;
    if (status != nfs4::Status::kOk) return fail(work, status);
    work->filled = plan.wished;
    when_durable(work);
  });
}

// Memory everywhere, but somebody may still be looking at the hole that was there: one whose answer was cut
// short.
void LayoutGranter::clear_stale_holes(const WorkPointer& work) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, work] {
        return space_.extents().overlapping(work->request.inode, work->needed.begin, work->needed.length());
      },
      [this, work](const Result<std::vector<Extent>>& extents) {
        if (!extents) return fail(work, status_of(extents.error()));
        const ByteRange whole{extents->front().file_offset, extents->back().end()};
        layouts_.clear_holes(work->request.inode, whole, work->request.client, [this, work](bool cleared) {
          if (!cleared) return fail(work, nfs4::Status::kLayoutTryLater);
          note_writer(work);
        });
      });
}

// Of the holes it had, the client may have been granted less than was filled: there it would go on reading
// zeros.
void LayoutGranter::tell_of_filled_holes(const WorkPointer& work) {
  if (!work->filled.empty()) layouts_.recall_holes(work->request.client, work->request.inode, work->filled);
}

// What must be on record before a client can write: that the tail may become dirty, that somebody is writing.
Batch LayoutGranter::writer_marks(const GrantRequest& request, bool mark_tail) {
  Batch batch;
  if (mark_tail && !space_.tail_dirty(request.inode)) Extents::mark_tail_dirty(batch, request.inode);
  if (!table_.writable(request.inode))
    Records::put(batch, RecordKind::kLayout, writing_record_key(request.inode), "");
  return batch;
}

void LayoutGranter::note_writer(const WorkPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return marks_of_grant(work->request); },
      [this, work](const std::expected<Batch, nfs4::Status>& marks) {
        if (!marks) return fail(work, marks.error());
        if (!marks->empty()) {
          if (const auto committed = names_.store().commit(*marks, CommitKind::kNamespace); !committed)
            return fail(work, status_of(committed.error()));
        }
        when_durable(work);
      });
}

// Only reads.
std::expected<Batch, nfs4::Status> LayoutGranter::marks_of_grant(const GrantRequest& request) {
  TRY_ASSIGN(const InodePointer inode, names_.get(request.inode));
  // Grants are whole extents: whether one of those we may grant reaches past the end.
  const auto behind = space_.extents().overlapping(request.inode, inode->size, kEndOfFile - inode->size, 1);
  if (!behind) return std::unexpected(status_of(behind.error()));
  return writer_marks(request, !behind->empty());
}

void LayoutGranter::when_durable(const WorkPointer& work) {
  // The client flushes what it writes there itself: the extents that lead to it must not be lost.
  if (const auto made = space_.make_durable(); !made) return fail(work, made.error());
  // A crash before this: the client has no handle. Behind it: the record finds the dirty tail.
  KeyValueStore& store = names_.store();
  if (store.synced_sequence() >= store.last_namespace_sequence()) return find_gaps(work);
  store.when_synced(store.last_namespace_sequence(), lifetime_.guard([this, work] { find_gaps(work); }));
}

// What of the extents the client asked for it does not hold yet. Whole extents: a large file is few segments.
// Only as far as one answer tells it: a writer to the first hole, a reader to the first that is not told
// whole.
void LayoutGranter::find_gaps(const WorkPointer& work) {
  const ByteRange range{work->needed.begin, std::max(work->needed.end, work->request.range.end)};
  read_then(
      names_.store(), lifetime_.token(),
      [this, work, range] { return extents_to_expose(work->request, range); },
      [this, work, range](const Outcome<std::vector<Extent>>& extents) {
        if (!extents) return fail(work, extents.error());
        list_gaps(work, range, *extents);
      });
}

// Only reads. Of those of the range: a writer gets none that others have, too.
Outcome<std::vector<Extent>> LayoutGranter::extents_to_expose(const GrantRequest& request,
                                                              const ByteRange& range) {
  TRY_ASSIGN(const InodePointer inode, names_.get(request.inode));
  auto extents =
      space_.extents().overlapping(request.inode, range.begin, range.length(), extents_told(request));
  if (!extents) return std::unexpected(status_of(extents.error()));
  if (request.mode == IoMode::kRead || extents->empty()) return *std::move(extents);
  const ByteRange whole{extents->front().file_offset, extents->back().end()};
  TRY_ASSIGN(const std::vector<Extent> shared,
             space_.shared_parts(request.inode, whole, extents_told(request)));
  return without(*extents, shared);
}

void LayoutGranter::list_gaps(const WorkPointer& work, const ByteRange& range,
                              const std::vector<Extent>& extents) {
  const GrantRequest& request = work->request;
  const auto inode = names_.get(request.inode);
  if (!inode) return fail(work, inode.error());
  // Ended while they were read.
  if (layouts_.gone(request.client)) return fail(work, nfs4::Status::kLayoutTryLater);
  const HeldLayout* held = table_.find(request.inode, request.client);
  uint64_t told = std::max(range.begin, holes_end(work, (*inode)->size));
  for (const Extent& extent : extents) {
    if (extent.file_offset > told) break;
    told = std::max(told, extent.end());
    const ByteRange whole{extent.file_offset, extent.end()};
    const std::vector<ByteRange> gaps =
        held != nullptr ? held->gaps(whole, request.mode) : std::vector{whole};
    for (const ByteRange& gap : gaps) {
      // What lies in front of the asked range, or behind it, was not asked for if it is a gap of its own.
      if (!gap.overlaps(range)) continue;
      work->gaps.push_back({gap.begin, extent.logical + (gap.begin - extent.file_offset), gap.length()});
    }
  }
  if (work->gaps.size() > kExposuresMax) work->gaps.resize(kExposuresMax);
  expose_next(work);
}

void LayoutGranter::expose_next(const WorkPointer& work) {
  const GrantRequest& request = work->request;
  if (work->gaps.empty() || work->greedy) return note_holes(work);
  BrickDevice& brick = bricks_.at(work->gaps.front().logical);
  const uint32_t grants_max = brick.identity().grants_max;
  if (grants_max > 0 && brick.grants_of(request.client) + 1 >= grants_max) {
    work->greedy = request.client;
    return note_holes(work);
  }
  if (layouts_.gone(request.client)) return fail(work, nfs4::Status::kLayoutTryLater);
  brick.open_session(request.client, lifetime_.guard([this, work](BrickDevice::Answer<Ticket> open) {
    if (!open) return fail(work, nfs4::Status::kLayoutTryLater);
    const Extent gap = work->gaps.front();
    work->gaps.pop_front();
    expose(work, gap);
  }));
}

void LayoutGranter::expose(const WorkPointer& work, const Extent& gap) {
  bricks_.at(gap.logical)
      .expose(work->request.client, gap.logical, gap.length, work->request.mode == IoMode::kReadWrite,
              lifetime_.guard([this, work, gap](BrickDevice::Answer<brick::ExposeResult> exposed) {
                if (exposed && keep(work, gap, *exposed)) return expose_next(work);
                if (!exposed && exposed.error() == brick::Status::kLimit) {
                  work->greedy = greedy_client(bricks_.at(gap.logical), work->request.client);
                  return note_holes(work);
                }
                // Expelled, or the brick is gone: whatever it exposed has died with the session.
                fail(work, nfs4::Status::kLayoutTryLater);
              }));
}

// Enters what the brick exposed. False: that is not what was asked for; it is withdrawn again.
bool LayoutGranter::keep(const WorkPointer& work, const Extent& gap, const brick::ExposeResult& exposed) {
  const GrantRequest& request = work->request;
  std::vector<HeldGrant> grants;
  uint64_t at = gap.logical;
  for (const brick::Grant& grant : exposed.grants) {
    if (grant.grant == 0 || grant.logical != at || grant.length == 0 || grant.length > gap.logical_end() - at)
      break;
    const uint64_t offset = gap.file_offset + (grant.logical - gap.logical);
    grants.push_back({.grant = grant.grant,
                      .file = {offset, offset + grant.length},
                      .logical = grant.logical,
                      .writable = request.mode == IoMode::kReadWrite,
                      .connection = exposed.connection,
                      .handle = grant.handle,
                      .address = grant.address});
    at += grant.length;
  }
  if (at != gap.logical_end()) {
    log_error("layouts", "exposure-incomplete client={} inode={} logical={}", request.client, request.inode,
              gap.logical);
    std::vector<uint64_t> numbers;
    for (const brick::Grant& grant : exposed.grants) numbers.push_back(grant.grant);
    bricks_.at(gap.logical).withdraw(request.client, numbers, [] {});
    return false;
  }
  // The last writer before us may have taken its record along since ours was committed.
  const Batch marks = request.mode == IoMode::kReadWrite ? writer_marks(request, false) : Batch{};
  if (!marks.empty()) static_cast<void>(names_.store().commit(marks, CommitKind::kState));
  HeldLayout& layout = layout_of(request);
  for (HeldGrant& grant : grants) {
    work->booked.push_back(grant);
    table_.add_grant(layout, std::move(grant));
  }
  return true;
}

HeldLayout& LayoutGranter::layout_of(const GrantRequest& request) {
  HeldLayout* layout = table_.find(request.inode, request.client);
  if (layout == nullptr) {
    std::array<std::byte, 12> other;
    random_.fill(other);
    other[0] = kLayoutStateidTag;
    layout = &table_.add(request.inode, request.client, other);
    layout->set_granted(layouts_.now());
  }
  layout->set_handle(request.export_id, request.generation, request.old_handle);
  return *layout;
}

// How far holes are told; a writer is told none.
uint64_t LayoutGranter::holes_end(const WorkPointer& work, uint64_t size) const {
  const GrantRequest& request = work->request;
  if (request.mode == IoMode::kReadWrite) return 0;
  return std::min({request.range.end, round_up(size, kGrainSize), work->needed.end + kHoleMax});
}

void LayoutGranter::note_holes(const WorkPointer& work) {
  read_then(
      names_.store(), lifetime_.token(), [this, work] { return holes_to_tell(work); },
      [this, work](const std::expected<std::vector<ByteRange>, nfs4::Status>& holes) {
        if (!holes) return fail(work, holes.error());
        for (const ByteRange& hole : *holes) {
          for (const ByteRange& fresh : layout_of(work->request).add_hole(hole))
            work->booked_holes.push_back(fresh);
        }
        answer(work);
      });
}

// Only reads.
std::expected<std::vector<ByteRange>, nfs4::Status> LayoutGranter::holes_to_tell(const WorkPointer& work) {
  TRY_ASSIGN(const InodePointer inode, names_.get(work->request.inode));
  std::vector<ByteRange> holes;
  const uint64_t end = holes_end(work, inode->size);
  const uint64_t begin = round_down(work->needed.begin, kGrainSize);
  if (end <= begin) return holes;
  const auto mapped =
      space_.extents().map(work->request.inode, begin, end - begin, extents_told(work->request));
  if (!mapped) return std::unexpected(status_of(mapped.error()));
  for (const Mapping& part : *mapped) {
    if (!part.logical) holes.push_back({part.file_offset, part.file_offset + part.length});
  }
  return holes;
}

void LayoutGranter::answer(const WorkPointer& work) {
  // Where the file ends is told as it is in the turn of the answer.
  look_then(
      names_.store(), lifetime_.token(),
      [this, work] {
        if (work->request.wants_end) static_cast<void>(names_.get(work->request.inode));
      },
      [this, work] { answer_now(work); });
}

void LayoutGranter::answer_now(const WorkPointer& work) {
  const GrantRequest& request = work->request;
  layouts_.end_lost(request.inode, request.client);
  HeldLayout* layout = table_.find(request.inode, request.client);
  const bool allowed =
      layouts_.fences(request.client) == work->fences && (!request.still_allowed || request.still_allowed());
  // Expelled or revoked while we waited.
  if (layout == nullptr || !allowed || layouts_.being_revoked(request.client, request.inode)) {
    if (work->greedy) layouts_.ask_for_less(*work->greedy);
    return fail(work, nfs4::Status::kLayoutTryLater);
  }
  const IoMode mode = work->from_writable ? IoMode::kReadWrite : request.mode;
  const ByteRange range{work->needed.begin, std::max(work->needed.end, request.range.end)};
  LayoutAnswer told = describe_layout(
      *layout, [this](uint64_t logical) { return bricks_.uuid_at(logical); }, range, mode,
      request.max_bytes - std::min(request.max_bytes, request.wants_end ? kEndBytes : 0));
  const bool enough = told.end >= work->needed.end;
  if (!enough || told.layouts.empty()) {
    if (work->greedy) layouts_.ask_for_less(*work->greedy);
    return fail(work, told.out_of_bytes ? nfs4::Status::kTooSmall : nfs4::Status::kLayoutTryLater);
  }
  nfs4::LayoutGetResult result{.return_on_close = false};
  const LayoutStateid& stateid = table_.advance(*layout);
  result.stateid = {stateid.seqid, stateid.other};
  result.layouts = std::move(told.layouts);
  if (request.wants_end && mode == IoMode::kReadWrite) tell_end(request, *layout, result.layouts.front());
  std::vector<HeldGrant> named;
  std::ranges::copy_if(work->booked, std::back_inserter(named),
                       [&](const HeldGrant& grant) { return grant.file.begin < told.end; });
  take_back_untold(work, told.end);
  // Before it is told; a crash on the way leaves grants that the next start withdraws.
  if (!records_.told(*layout, named)) {
    work->booked = std::move(named);
    return fail(work, nfs4::Status::kLayoutTryLater);
  }
  ++counters_.layouts_granted;
  tell_of_filled_holes(work);
  work->turn.reset();
  std::exchange(work->done, nullptr)(std::move(result));
}

// In the turn in which the answer goes: what is true now is true until his layout behind the end was recalled.
void LayoutGranter::tell_end(const GrantRequest& request, HeldLayout& layout, nfs4::Layout& told) {
  const auto inode = names_.get(request.inode);
  if (!inode) return;
  if (layout.end_token() == 0) {
    if (!layouts_.end_is_free(request.inode, request.client, (*inode)->size)) return;
    layout.set_end_token(next_end_token_);
    next_end_token_ += 2;  // stays odd, and so never 0
  }
  xdr::Encoder encoder(told.content.body);
  xdr::encode(encoder, nfs4::LayoutEnd{layout.end_token()});
}

// Of what was booked on the way, what the answer does not name: it names everything in front of `told_end`.
void LayoutGranter::take_back_untold(const WorkPointer& work, uint64_t told_end) {
  const auto named = [&](const ByteRange& range) { return range.begin < told_end; };
  std::erase_if(work->booked, [&](const HeldGrant& grant) { return named(grant.file); });
  std::erase_if(work->booked_holes, named);
  if (work->booked.empty() && work->booked_holes.empty()) return;
  layouts_.take_back(work->request.client, work->request.inode, work->booked, work->booked_holes);
}

void LayoutGranter::fail(const WorkPointer& work, nfs4::Status status) {
  take_back_untold(work, 0);
  tell_of_filled_holes(work);
  work->turn.reset();
  std::exchange(work->done, nullptr)(std::unexpected(status));
}

}  // namespace pnfsrdma::mds
