// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/device.h"
#include "shared/initiator/file/range_set.h"
#include "shared/initiator/file/unstable_writes.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

// The place that has the bytes of a write, and its verifier then: a brick, or the MDS.
struct Place {
  Device* device = nullptr;  // none: the MDS
  xdr::FixedOpaque<8> verifier{};
  bool operator==(const Place&) const = default;
};

// Bytes that are not on the medium yet as far as we know, or that the MDS has not been told of. A value.
struct DirtyExtent {
  uint64_t offset = 0;
  uint64_t end = 0;
  // Of the newest write in it.
  uint64_t sequence = 0;
  Place place;
  // The layout it was written under: LayoutCache::incarnation() and the device's incarnation.
  uint64_t layout_incarnation = 0;
  uint32_t incarnation = 0;
  bool unflushed = true;
  // The MDS has it, and a copy is kept of each write in it.
  bool copied = false;
  // The same, but nobody has been sent it yet: only the copies are there.
  bool held = false;
  // Behind what the file was known to have, and not committed: a copy is kept, and is written again when the
  // layout is lost.
  bool growth = false;

  bool growth_void(uint64_t incarnation_now) const;
};

// A flush of everything that was complete before it began. What is written meanwhile is none of its business:
// a flush covers what was complete before it was posted, or was posted before it on the same queue pair.
struct Flush {
  uint64_t sequence = 0;
  RangeSet by_rdma;
  RangeSet by_mds;
  RangeSet held;                 // to be sent first
  std::vector<Device*> devices;  // that took some of `by_rdma`

  bool empty() const { return by_rdma.empty() && by_mds.empty() && held.empty(); }
};

// One LAYOUTCOMMIT's worth of what the MDS has not been told.
struct Commit {
  uint64_t first = 0;  // everything written lies in [first, last)
  uint64_t last = 0;
  uint64_t layout_incarnation = 0;  // LayoutCache::incarnation() at its begin
  WallTime modified;
  std::optional<uint64_t> size;  // the file has grown to this
};

// WRITEs that were posted and have no outcome: they may still arrive. The hull of those on one connection.
struct UnknownWrites {
  Device* device = nullptr;
  uint32_t connection = 0;          // Hello::connection
  uint64_t layout_incarnation = 0;  // of the layout
  nfs4::Stateid layout;
  FileRange range;
};

// What is dirty of one file, and what follows from it: what to flush, what to commit, what was lost, how long
// the file is. The one model of it; no wire calls. An extent stays in the list until it is flushed and
// committed: a flush or a commit that fails has nothing to put back, and one that succeeds clears only what
// it was for. Bounded: of very many extents neighbours in the same place are joined, so that a flush may
// cover more than was written, never less. Thread-safe; a write takes the mutex once and allocates nothing in
// steady state.
class DirtyList {
 public:
  static constexpr size_t kExtentsMax = 1024;

  explicit DirtyList(uint64_t server_size) : server_size_(server_size) {}

  // --- writes. A WRITE that was confirmed on a connection with this verifier, to a file that was known to be
  // `known_size` long (LayoutCache::known_size()): what lies behind is growth, a copy is kept of it. True:
  // there are far too many extents, and none can be joined: flush them. `flushed_behind`: its flush was posted
  // behind it on the same queue pair and was answered on this connection, under this verifier; what was
  // noted() when both were posted lay under it.
  bool wrote(const LayoutSegment& piece, uint64_t known_size, uint64_t layout_incarnation,
             const BrickVerifier& verifier, WallTime now,
             std::optional<uint64_t> flushed_behind = std::nullopt);
  // Number of the newest write here.
  uint64_t noted() const;
  // A WRITE that the MDS has answered. Where a copy is kept an UNSTABLE one is not lost with the server: it is
  // written again.
  void wrote_through_mds(uint64_t offset, const nfs4::WriteResult& written, UnstableCopy copy = nullptr);

  // --- writes that are kept here until they are flushed, under a delegation: what the MDS has lost before it had it.
  void hold(FileRange range, UnstableCopy copy, WallTime now);
  // The last hold() of the range has not been answered: another write of it follows.
  void unhold(FileRange range);
  bool holds() const { return holds_.load(std::memory_order_acquire); }

  // --- writes without an outcome: nothing goes there another way before they are known to be dead: by a
  // newer connection of the device, or without the layout.
  void posted(const UnknownWrites& writes);
  std::optional<UnknownWrites> unknown_in(FileRange range) const;
  void dead(const Device* device);
  void dead(FileRange returned);

  // --- flush. One at a time: begin_flush(), then end_flush(). Not `with_held`: what is held stays so.
  Flush begin_flush(bool with_held = true);
  // `done`: all of it is on the medium. False: some of it had been written over when its brick, or the MDS, lost it;
  // what was written there since has to be flushed as well.
  [[nodiscard]] bool end_flush(const Flush& flush, bool done);
  // The brick says this verifier now (none: it is not there any more). What the flush is for and was written
  // under another one is void where a copy is kept, and lost otherwise. False: none of it is lost.
  bool verify(const Flush& flush, const Device* device, const std::optional<xdr::FixedOpaque<8>>& now);
  // The MDS says this write verifier now. What the flush is for and was written under another one has to be
  // rewritten from the copies in `copied`, and stays in the list until that is done; data without a copy is
  // lost.
  struct Gone {
    std::vector<FileRange> copied;
    bool lost = false;
  };
  Gone gone_from_mds(const Flush& flush, const WriteVerifier& now);
  // As UnstableWrites::first().
  std::optional<FileRange> first_copy(FileRange within, MutableByteSpan sink) const;
  // The server does not take it again.
  void lost_at_mds(FileRange range);
  // Others may write there from now on: a copy would come over theirs. (Not over what is held under a delegation.)
  void drop_copies();
  // Where what is copied ends; 0: nothing is.
  uint64_t copied_end() const;
  bool keeps_copies() const { return keeps_copies_.load(std::memory_order_acquire); }
  // The device still has some of what the flush is for, or had before that was written over.
  bool pending(const Flush& flush, const Device* device) const;
  // The device, which has not answered behind its part of the flush, has to say its verifier. False: nothing of the
  // flush is there any more; what was written over that has to be flushed, which end_flush() says.
  bool to_be_asked(const Flush& flush, const Device* device);
  bool anything_unflushed() const;
  // Everything of the range that is not flushed is on this device, under this verifier.
  bool only_at(FileRange range, const Device* device, const BrickVerifier& verifier) const;
  // It was true, and what was noted() then has been flushed there under that verifier.
  void flushed(FileRange range, uint64_t noted);
  // That have some of what is not flushed, each once.
  std::vector<Device*> devices() const;
  // Some of it on a device that does not answer just now.
  bool unflushed_on_resting_device() const;
  // Nobody will ask for it again: the file has been removed.
  void forget_unflushed();

  // --- commit. One at a time: begin_commit(), then one of the three. None: nothing to tell.
  std::optional<Commit> begin_commit(uint64_t layout_incarnation);
  // `new_size`: of the file behind the commit, where the server said it. Returns what is no longer growth,
  // and needs no copy.
  std::vector<FileRange> committed(const Commit& commit, std::optional<uint64_t> new_size);
  void not_committed(const Commit& commit);
  // The layout is gone. What was grown has to be written again; the server has set the mtime itself.
  void commit_void(const Commit& commit);
  bool anything_uncommitted() const;
  // Some of it is growth.
  bool grew() const;
  std::vector<FileRange> growth() const;
  // Some of it that begins before `end`.
  bool grew_before(uint64_t end) const;
  // How many commits have succeeded: what they told is not kept any more.
  uint64_t commits() const { return commits_.load(std::memory_order_acquire); }

  // --- growth whose layout is lost
  // Its layouts are gone, whatever its incarnation.
  void void_growth();
  bool growth_void(uint64_t incarnation_now) const;
  // Everything that is kept was written through the MDS. True: something was not kept, and is lost.
  bool restored();
  void growth_lost();
  // How often either happened: what was flushed before has to be flushed again.
  uint64_t restorations() const;

  // --- losses. Every open file is told once of writes that are gone.
  void lost();
  uint64_t losses() const;
  // An open file has been told of so many.
  void heard(uint64_t losses);
  // Where a new open file starts: before what no open file has heard of.
  uint64_t unheard_from() const;

  // --- sizes: what is shown to applications. Whether a write grows the file is not for these to say: others
  // may have cut it since.
  uint64_t size() const;
  uint64_t server_size() const { return server_size_.load(std::memory_order_acquire); }
  uint64_t version() const;
  static constexpr uint64_t kFirstVersion = 1;
  // The answer to who asked when this was at `version`. When something changed here since, it makes the file no
  // shorter; when it was cut here since, or somebody who asked later has been answered, it says nothing.
  bool server_size(uint64_t size, uint64_t version, SteadyTime asked);
  // Nothing of ours is under way: the server's word counts.
  void server_size(uint64_t size);
  std::optional<WallTime> modified() const;

  // --- truncation. begin_truncation() right before the SETATTR is sent, end_truncation() when it is answered
  // (`size`: done). What was complete before it was sent is cut; what was written beside it may have been
  // written behind it, and stays.
  struct Cut {
    std::vector<FileRange> settled;  // no growth any more, needs no copy
    uint64_t version = 0;            // for what a GETATTR behind the SETATTR says of the size; 0: old already
  };
  void begin_truncation();
  Cut end_truncation(std::optional<uint64_t> size);

  // Reserves room at the end for an append: the offset. Then exactly one end_append().
  uint64_t begin_append(uint64_t length);
  void end_append(uint64_t offset, uint64_t length, bool done);

  // For tests.
  std::vector<DirtyExtent> extents() const;

 private:
  using Extents = std::vector<DirtyExtent>;

  void put(const DirtyExtent& extent);
  void put_flushed(DirtyExtent extent, uint64_t noted);
  void carve(uint64_t offset, uint64_t end);
  bool has_unflushed(const Flush& flush, const Device* device) const;
  void note_overwritten(const DirtyExtent& extent);
  void doubt_overwritten(const Device* device, const std::optional<BrickVerifier>& now);
  bool joins(const DirtyExtent& front, const DirtyExtent& back) const;
  Extents::iterator first_behind(uint64_t offset);
  void bound_extents(size_t most);
  void join_neighbours();
  void drop_clean();
  void look_for_held();
  void forget_copies(FileRange range);
  void tell_again(const Commit& commit);
  void void_all_growth();
  bool any_growth() const;
  uint64_t growth_end() const;
  void server_reaches(uint64_t end);

  mutable Mutex mutex_;
  std::atomic<uint64_t> server_size_;  // written under the mutex
  uint64_t append_end_ = 0;            // of the appends that are under way
  size_t appending_ = 0;
  uint64_t version_ = kFirstVersion;
  uint64_t cut_at_ = 0;    // version of the last truncation
  SteadyTime size_asked_;  // when whoever was answered last of the size had asked
  Extents extents_;        // sorted, without overlap
  UnstableWrites copies_;  // of extents that the MDS has
  std::atomic<bool> keeps_copies_ = false;
  std::atomic<bool> holds_ = false;  // some extent is held
  WallTime held_at_;                 // the newest of them
  size_t join_at_ = kExtentsMax;
  uint64_t growth_from_ = UINT64_MAX;  // no growth begins before
  std::atomic<uint64_t> commits_ = 0;
  uint64_t sequence_ = 0;
  // What is being flushed goes up to here: what comes meanwhile is not joined with it.
  uint64_t flushing_ = 0;
  // Places of what is being flushed and was written over meanwhile, each once; some of them have lost it.
  std::vector<Place> overwritten_;
  bool overwritten_lost_ = false;
  // The same of what is being cut; and the size that the server has shown beside that.
  uint64_t cutting_ = 0;
  uint64_t reached_ = 0;
  // The mtime that is to be told, and the one that is being told.
  std::optional<Commit> changed_, committing_;
  std::vector<UnknownWrites> unknown_;  // one per device
  uint64_t losses_ = 0;
  uint64_t heard_ = 0;
  uint64_t restorations_ = 0;
};

}  // namespace pnfsrdma::initiator
