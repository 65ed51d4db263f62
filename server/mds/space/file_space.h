// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/shared_runs.h"
#include "server/mds/space/ahead_files.h"
#include "server/mds/space/allocation_plan.h"
#include "server/mds/space/file_bricks.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// So many extents of a file go in one batch and one turn of the loop.
inline constexpr size_t kExtentsPerBatch = 512;

// So long somebody waits for memory that is taken back from ahead of files; then the answer is DELAY.
inline constexpr Milliseconds kRoomPatience{250};

// Gives memory to files and takes it back, so that a crash between any two steps loses nothing acknowledged,
// leaks nothing for good, and never shows a byte of another file. Every method but those that say so needs
// the inode's exclusive turn, held by the caller until `done`. Control loop only.
//
// Two rules carry it all:
// - allocate on the brick, then commit the extents: a crash between leaves blocks that no extent names; they
// are freed.
// - commit without the extents, wait for the sync, then free: a crash between leaves the same.
class FileSpace {
 public:
  using Done = std::function<void(nfs4::Status)>;
  // Takes memory back that is ahead of files, of some of them (or of some that count for `owner`), but not of one;
  // `done` after kRoomPatience at the latest.
  using TakeBack =
      std::function<void(InodeId except, const std::optional<QuotaId>& owner, std::function<void()> done)>;

  FileSpace(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, LayoutTable& table,
            TakeBack take_back);
  ~FileSpace();
  FileSpace(const FileSpace&) = delete;
  FileSpace& operator=(const FileSpace&) = delete;

  // How much memory `needed` gets: see plan_allocation(). No turn needed.
  std::expected<AllocationPlan, nfs4::Status> plan(InodeId inode, const ByteRange& needed, uint64_t wish_end);

  // Changes that go into the same batch as the new extents.
  struct Change {
    InodeUpdate update;
    Batch extra;
    // kState: no reply waits for it until somebody calls make_durable().
    CommitKind kind = CommitKind::kNamespace;
    // Nobody will register it: any number of pieces will do.
    bool scattered = false;
  };
  // Fills the holes in plan.wished, as far behind plan.needed as there is room to spare. All of it is zeros,
  // durably, and committed (not synced) when `done` gets kOk. Else nothing has changed. kNoSpc: nowhere is
  // that much free, nor ahead of any file. kDQuot: the file's owner, group or tree may not have that much.
  // kDelay: there will be soon, or a brick is away; kLayoutTryLater: it is free in more pieces than are worth
  // registering; kIo. A file stays on one brick as long as that has room; without data yet it gets one by free
  // space; bricks share it when none of them has enough.
  void allocate(InodeId inode, const AllocationPlan& plan, Change change, Done done);

  // What allocate() committed as kState goes with the next sync, and replies wait for that. Before anybody is
  // told that bytes in such memory are durable, or reaches it without the server. No turn needed. kDelay,
  // kIo.
  std::expected<void, nfs4::Status> make_durable();

  // Cuts the file: size, times, the tail record and the first extents, in one batch, then the other extents, in
  // batches; frees, and zeroes up to the end of what is kept, durably, before `done`. A crash between two batches
  // leaves a dirty tail. No client can reach anything from the grain of `size` on: the caller has seen to it.
  void cut(InodeId inode, uint64_t size, const InodeUpdate& update, Done done);

  // Makes a hole of `range`: whole grains are freed, in batches, the rest is zeroed, durably, before `done`. Size
  // stays. A crash between leaves each byte as it was, or zero. No client can reach anything of grains_of(range):
  // the caller has seen to it.
  void punch(InodeId inode, const ByteRange& range, const InodeUpdate& update, Done done);

  // --- memory that several files have (meta/shared_runs.h), or a file and a snapshot. Nobody may write there: who
  // wants to, or cuts or punches in the middle of a grain, gets a copy first. ---

  static constexpr size_t kClonedExtentsMax = 16'384;
  static constexpr size_t kClonedPerBatch = 2048;
  // The memory of `range` becomes that of another file, or of another place of this one, in place of what that had
  // there, all of it or nothing. Both turns; nobody can write to the one, nor reach anything of the other; tails are
  // clean. The source may be a snapshot's: what of its memory no file has any more is the target's alone then.
  struct Clone {
    InodeId source = kNoInode;
    ByteRange range;  // whole grains, but for the end of the source
    InodeId target = kNoInode;
    uint64_t target_offset = 0;
    InodeUpdate update;  // of the target; size and memory are set here
    // Where the target has no bytes yet, so many extents a batch: they are behind its end, on record as ahead of it
    // and as a dirty tail, until the last batch makes that longer. Elsewhere it is one batch.
    size_t slice = kClonedPerBatch;
  };
  // kFBig: more than kClonedExtentsMax extents in the place of bytes that the target has, or of memory ahead of it.
  // kDelay: the end of a file has moved. kDQuot: as of allocate().
  // kXDev: its memory is on a brick that is being drained: a copy goes to another one. kStale: its snapshot goes.
  void clone(const Clone& clone, Done done);
  // The parts of the range that are shared, in grains, as extents: of its first `most` extents. Only reads.
  Outcome<std::vector<Extent>> shared_parts(InodeId inode, const ByteRange& range, size_t most);
  // Where nobody may reach anything before unshare(): around the first kUnsharedAtOnce of `range` from its first shared
  // byte on; empty: none of it is shared. Only reads.
  Outcome<ByteRange> to_unshare(InodeId inode, const ByteRange& range, size_t most = kExtentsPerBatch);
  // Gives the file memory of its own for what is shared of `stretch`, durably copied, at least of `needed`; what it
  // was is freed when nobody has it any more. Committed (not synced) when `done` gets kOk. kNoSpc, kDelay, kIo.
  void unshare(InodeId inode, const ByteRange& needed, const ByteRange& stretch, Done done);
  // What was another file's, too, and is this one's alone by now is so durably: a crash would give it back, with what
  // is written there by then. Before bytes go to memory that a file had before. At once where it never shared any.
  void when_owned_durably(InodeId inode, std::function<void()> then);

  // "Bytes past the end of file are zeros" made true again, but for those that somebody may still write: that
  // somebody's end brings us back. Frees whole extents nobody can reach, zeroes the rest.
  void clean_tail(InodeId inode, Done done);
  // What is ahead of the file, unless somebody reaches it: extents past kept_end(). What absence() says of the brick of
  // the end or of what is ahead: nothing has changed.
  void trim(InodeId inode, Done done);
  // The files that may have some. No turn needed.
  AheadFiles& ahead() { return ahead_; }
  // Before a file gets another owner or group, and this size if it is to be cut: takes memory back that is ahead of
  // it, or of files that count for whoever may not have what this one will have. kOk, kDQuot, kDelay: some is on its
  // way back; nothing has changed but that. check_owners() says whether that is needed: it only reads, and needs no
  // turn.
  void make_owners_allowance(InodeId inode, const InodeUpdate& owners, Done done);
  Outcome<> check_owners(InodeId inode, const InodeUpdate& owners);
  // Of a file that an earlier run gave memory ahead: whom it counts for, so that they can have it back. No turn needed.
  void count_ahead(const Inode& inode);
  // Everything of an orphan: its extents, in batches, and with the last ones the inode.
  void destroy(InodeId inode, Done done);

  // Handles through which these could be written have ended: behind the end of the file they may have left
  // bytes nobody committed. No turn needed.
  void left_behind(InodeId inode, const std::vector<ByteRange>& ranges);
  // The same for all behind the end. No turn needed.
  void tail_unknown(InodeId inode);
  // Whether `range` has such bytes that clean_tail() is still to zero: a file must not grow over them. Those
  // that a living writer reaches too are his to answer for. No turn needed.
  bool has_leftovers(InodeId inode, const ByteRange& range) const;

  // Bytes whose handle was revoked rest before they are zeroed: packets in flight. No turn needed.
  void rest(InodeId inode);

  // Whether something of a revoked handle may still arrive anywhere. No turn needed.
  bool any_rests();
  // When nothing of a handle that was revoked can arrive any more. No turn needed.
  void when_rested(InodeId inode, std::function<void()> then);

  // Frees what no file has any more, and no snapshot either, now that one is off the record, durably, and nobody
  // reaches its memory. In batches, over all that is dead; `done` behind the last one, false: there may be more, later.
  // No turn needed.
  void free_dead(std::function<void(bool)> done) { free_dead_behind(0, std::move(done)); }
  // Bytes that only snapshots have.
  uint64_t dead_bytes() const { return dead_bytes_; }

  // Zeroes free grains in the background, from now on. No turn needed.
  void start_zeroing();

  bool tail_dirty(InodeId inode);
  // OK when all memory of `range` is on bricks that are ready; else what an operation that needs it answers. At once,
  // or in a later turn of the loop: see file_bricks.h. No turn needed.
  void absence(InodeId inode, const ByteRange& range, Done done) {
    file_bricks_.absence(inode, range, std::move(done));
  }
  // Whether some of the memory behind `offset` is on this brick, and none of it on one that cannot be asked now.
  void is_tail_of(BrickNumber brick, InodeId inode, uint64_t offset, std::function<void(bool)> done);
  Extents& extents() { return extents_; }

 private:
  struct Removal;    // extents of a file that go
  struct Tail;       // what is to be zeroed behind the end, a batch of extents
  struct Leftovers;  // the same beside living writers
  struct Placed;
  struct Placing;  // the new extents of a file
  struct Hole;
  struct Look {
    std::vector<Mapping> mapped;
    Quotas::Allowance allowed;
  };
  struct Allocation;
  using AllocationPointer = std::shared_ptr<Allocation>;
  struct Allowing;
  using AllowingPointer = std::shared_ptr<Allowing>;
  // Only reads. Who may not have what is wanted.
  using WhoLacks = std::function<Outcome<std::optional<QuotaId>>()>;
  struct Zeroing {
    std::vector<Piece> pieces;
    uint64_t left = 0;
  };

  void begin_anew(const AllocationPointer& work);
  void begin_placing(const AllocationPointer& work);
  std::expected<std::deque<BrickNumber>, nfs4::Status> places(InodeId inode, uint64_t begin);
  std::expected<Look, nfs4::Status> look(const Allocation& work, uint64_t begin);
  void place_next(const AllocationPointer& work);
  void find_holes(const AllocationPointer& work, const std::vector<Mapping>& mapped);
  GrainRequest request_for(const AllocationPointer& work, BrickDevice& brick, const Hole& hole);
  bool take(const AllocationPointer& work, BrickDevice& brick, const Hole& hole);
  static void allocated(const AllocationPointer& work, const Hole& hole, const Taken& taken);
  void not_allocated(const AllocationPointer& work, BrickNumber number, Taken taken, brick::Status why);
  void zero_placed(const AllocationPointer& work);
  void commit_placed(const AllocationPointer& work);
  std::expected<Placing, nfs4::Status> placing(const Allocation& work);
  void commit_extents(const AllocationPointer& work, const Placing& placing);
  void place_copies(const AllocationPointer& work);
  void copy_placed(const AllocationPointer& work, size_t at);
  std::expected<void, nfs4::Status> replace_shared(const Placed& placed, Placing& placing);
  void give_back(const AllocationPointer& work);
  void retreat(const AllocationPointer& work, nfs4::Status status);
  void make_room(const AllocationPointer& work);
  void make_allowance(const AllocationPointer& work);
  struct Allowance {
    InodeId inode = kNoInode;  // whose turn we have
    SteadyTime until;
    WhoLacks who_lacks;
    Done done;
    bool keeps_own = false;  // what is ahead of the file itself stays
  };
  void make_allowance(Allowance wanted);
  void allow(const AllowingPointer& work);
  void take_back_for(const AllowingPointer& work, const QuotaId& owner);
  Outcome<std::optional<QuotaId>> who_lacks(InodeId inode, uint64_t bytes);
  struct OwnerChange;
  Outcome<OwnerChange> owner_change(InodeId inode, const InodeUpdate& owners);
  static void finish(const AllocationPointer& work, nfs4::Status status);

  struct Unnaming;
  bool may_share(const Inode& inode) const;
  Result<> take_names(const Inode& inode, const std::vector<Extent>& removed, Unnaming& unnaming);
  Result<std::vector<LogicalRange>> shared_of(const Inode& inode, const LogicalRange& memory,
                                              SnapshotNumber born);
  Outcome<uint64_t> batch_end(const Inode& inode, const ByteRange& range);
  void own_edges(InodeId inode, std::vector<ByteRange> edges, Done done);
  Outcome<std::vector<brick::Range>> own_memory(const Inode& inode, const Extent& extent);
  struct Cloning;
  Outcome<Cloning> cloning(const Clone& clone);
  Result<std::vector<LogicalRange>> take_alive(InodeId source, const std::vector<Extent>& extents,
                                               Revival& revival);
  struct CloneSlice;
  void clone_slice(const CloneSlice& slice, Done done);
  void make_clone_allowance(const CloneSlice& slice, const Cloning& work, Done done);
  nfs4::Status commit_clone(const CloneSlice& slice, const Cloning& work);

  // Extents of the file behind `end` go, what is kept behind `size` is zeroed: the common end of cut,
  // clean_tail and trim.
  void shorten(InodeId inode, uint64_t end, const InodeUpdate& update, bool mark_dirty, Done done);
  void shorten_by(InodeId inode, const Removal& removal, uint64_t end, InodeUpdate update, bool mark_dirty,
                  const Done& done);
  void shortened(InodeId inode, uint64_t size, const Done& done);
  std::expected<Removal, nfs4::Status> removal(InodeId inode, const ByteRange& range);
  void take_out(InodeId inode, const ByteRange& range, Done done);
  void take_out_by(InodeId inode, const Removal& removal, const Done& done);
  Result<bool> has_extent_behind(InodeId inode, uint64_t size);
  struct Punching;
  std::expected<Punching, nfs4::Status> punching(InodeId inode, const ByteRange& range);
  void punch_owned(InodeId inode, const ByteRange& range, const InodeUpdate& update, Done done);
  void punch_by(InodeId inode, const Punching& punching, InodeUpdate update, const Done& done);
  void zero_edges(InodeId inode, std::vector<brick::Range> edges, Done done);
  void clean_tail_now(InodeId inode, const Done& done);
  void trim_present(InodeId inode, const Done& done);
  void trim_now(InodeId inode, const Done& done);
  void zero_tail(InodeId inode, uint64_t from, Done done);
  Outcome<std::optional<Tail>> tail(InodeId inode, uint64_t from);
  void zero_page(InodeId inode, const Tail& page, const Done& done);
  void tail_zeroed(InodeId inode, const Done& done);
  void zero_leftovers(InodeId inode, uint64_t from, Done done);
  Outcome<Leftovers> leftovers(InodeId inode, uint64_t from);
  void zero_dead(InodeId inode, const Leftovers& page, const Done& done);
  void destroy_with(InodeId inode, const Removal& removal, const Done& done);
  void free_when_synced(const Unnaming& unnaming, std::function<void()> then);
  void free_when_synced(std::vector<LogicalRange> memory, std::function<void()> then);
  void release(const std::vector<LogicalRange>& memory);
  void free_dead_behind(uint64_t from, std::function<void(bool)> done);
  void free_dead_page(const std::vector<DeadRun>& page, std::function<void(bool)> done);
  void zero_in_background();
  void zero_free_grains(BrickNumber number);
  void leave_ahead(InodeId inode);
  Milliseconds rest_left(InodeId inode);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  KeyValueStore& store_;
  Extents extents_;
  BrickSet& bricks_;
  FileBricks file_bricks_;
  LayoutTable& table_;
  const TakeBack take_back_;
  AheadFiles ahead_;
  uint64_t released_ = 0;  // bytes, ever
  uint64_t dead_bytes_ = 0;
  // The newest namespace commit when memory was last given lazily: a newer one includes it.
  std::optional<Sequence> lazy_behind_;
  std::unordered_map<InodeId, SteadyTime> resting_;
  // Of files with a dirty tail, what no living writer reaches: it is his, until he leaves it. Only of handles of this
  // run: a start zeroes tails before there is any.
  std::unordered_map<InodeId, RangeSet> leftovers_;
  EventLoop::TimerId zeroing_timer_ = 0;
  std::set<BrickNumber> zeroing_;  // where a batch is under way
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
