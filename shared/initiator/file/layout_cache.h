// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/hole_trust.h"
#include "shared/initiator/file/layout_pin.h"
#include "shared/initiator/file/layout_segment.h"
#include "shared/initiator/file/lost_stateids.h"

namespace pnfsrdma::initiator {

// The layouts of one file: the segments held, the gate that I/O passes, the layout stateid with its order of
// events (RFC 8881, 12.5.3 and 12.5.5). No wire calls here. Thread-safe; enter() and leave() hold a mutex for
// some tens of nanoseconds and allocate nothing.
class LayoutCache {
 public:
  // `lost` learns the stateids that end without a LAYOUTRETURN; `holes` says which holes are believed. Either
  // may be null.
  explicit LayoutCache(LostStateids* lost = nullptr, const HoleTrust* holes = nullptr)
      : lost_(lost), holes_(holes) {}

  enum class Entry { kEntered, kMissing, kClosed };
  // Lets an I/O in with as much of the range, from its start, as segments cover (at most kPiecesMax pieces).
  // kMissing: no usable layout at `offset`. kClosed: it is being returned; go another way, never wait for
  // it. `end`: only while end() still says so.
  Entry enter(LayoutPin& pin, uint64_t offset, uint64_t length, bool for_write, uint64_t epoch,
              uint64_t end = 0);
  void leave(LayoutPin& pin);
  // The same of one that was not done: the next one that goes on where it would have begun is sequential.
  void abandon(LayoutPin& pin);
  // For a flush: everything of `ranges` that is held, and what is not. `through_gate`: the flush of a recall
  // itself.
  void enter(FlushPin& pin, std::span<const FileRange> ranges, bool through_gate, uint64_t epoch);
  void leave(FlushPin& pin) { leave(pin.gate_); }

  // The grant is dead: forgets its segments without returning them.
  void drop_grant(uint64_t grant);
  // Everything is void (a new clientid, an expired lease).
  void drop_all();
  // The same, if this is still the stateid.
  void drop_all(const nfs4::Stateid& stateid);
  // The same, and the server may still have to be told that it is known.
  void drop_refused(const nfs4::Stateid& stateid);

  // One LAYOUTGET or LAYOUTRETURN of a file at a time: their seqids then need no sorting. kBusy: a return is
  // under way or the deadline passed. kHeld: another thread has got the range meanwhile.
  enum class Begin { kGo, kHeld, kBusy };
  struct Getting {
    std::optional<nfs4::Stateid> stateid;  // none: use an open stateid
    FileRange gap;  // around the range that is needed: not held, nor being returned; unbounded at the end
    uint64_t held_bytes = 0;
    uint64_t ends_lost = 0;
  };
  Begin begin_get(uint64_t offset, uint64_t length, bool for_write, SteadyTime deadline, uint64_t epoch,
                  Getting& getting);
  // For what is held already: what the server says of it now.
  Begin begin_get_again(uint64_t offset, SteadyTime deadline, uint64_t epoch, Getting& getting);
  // Memory is asked for there: holes are not believed any more. The server takes them from us with its answer,
  // which may be lost, or be long in coming while others write there.
  void forget_holes(FileRange range);
  // Ends it: with the segments of the answer, or without. `epoch` as at its begin: an answer from before is
  // void.
  void finish_get();
  // `end`: none, if the end of the file was not asked for; 0: refused.
  struct End {
    uint64_t token = 0;
    uint64_t ends_lost = 0;  // of Getting
    uint32_t era = 0;        // HoleTrust's, before it was asked for
    SteadyTime now;
  };
  void finish_get(const nfs4::Stateid& stateid, std::vector<LayoutSegment> segments,
                  std::optional<uint64_t> size, uint64_t epoch, const std::optional<End>& end = std::nullopt);
  // A layout that came otherwise (behind an OPEN). `size`: of the file, asked for behind the grant.
  void take(const nfs4::Stateid& stateid, std::vector<LayoutSegment> segments, std::optional<uint64_t> size,
            uint64_t epoch);

  enum class Recall { kAccepted, kNothing, kDelay };
  // The server recalls: takes its seqid and closes the gate. kDelay: a reply of ours that must come first is
  // under way. `range` comes back rounded out to whole segments: that is what the gate is closed for.
  Recall begin_recall(const nfs4::Stateid& stateid, nfs4::IoMode iomode, FileRange& range);
  // The range we give back by ourselves: the same. False: nothing is held there, the gate stays as it is.
  bool begin_return(nfs4::IoMode iomode, FileRange& range);
  // The range, as it is, for a time in which nobody may write there; open_gate(kAny, range) ends it.
  void close_gate(FileRange range);
  // No I/O is inside the range any more; flushes count when asked for. False: `deadline` passed.
  bool drain(FileRange range, SteadyTime deadline, bool with_flushes = true);
  // Keeps LAYOUTGETs away until finish_return() and forgets the segments; the stateid to send. None: the
  // layout has died meanwhile, there is nothing to send.
  std::optional<nfs4::Stateid> start_return(nfs4::IoMode iomode, FileRange range, SteadyTime deadline);
  // The return has been answered, or not: of `sent`, with its stateid of now (none: nothing of it is left at the
  // server). What is held meanwhile under another one stays: that is another layout.
  void finish_return(const nfs4::Stateid& sent, const std::optional<nfs4::Stateid>& left);
  void finish_return();
  void open_gate(nfs4::IoMode iomode, FileRange range);

  std::optional<nfs4::Stateid> stateid() const;
  // Another number than at a write: layouts were lost since, and with them what was written beyond the
  // server's end of file. A later layout must not be used to commit it.
  uint64_t incarnation() const;
  bool holds_anything() const;
  // Where the first segment begins behind `offset`; UINT64_MAX: none does.
  uint64_t next_held(uint64_t offset) const;
  // Of what is held in the range, each once.
  std::vector<Device*> devices(FileRange range = {0, UINT64_MAX}) const;
  // A LAYOUTGET is under way.
  bool getting() const;

  // So long the file is at least, and stays as long as what is held is held: before a server cuts a file it
  // takes back every layout behind the new end. What was said of the size before a layout was got proves
  // nothing for it, and what goes invalidates its knowledge.
  uint64_t known_size() const;
  // Counts what is granted and what goes.
  uint64_t holdings() const;
  // The server has said it in an answer; `holdings` as when it was asked: by others it proves nothing.
  void learn_size(uint64_t size, uint64_t holdings);

  // While what lies behind the end of the file is ours alone, and we know where that is: a number that is never
  // the same again once it was not so. 0: it is not, or we do not know.
  uint64_t end() const;
  // Whether it is ours, known or not.
  bool holds_end() const;
  // The server has said where it is, asked then, and nothing of our own has overtaken the answer.
  void know_end(SteadyTime asked);
  // We change it ourselves, in a way whose outcome may stay unknown.
  void lose_end();

  struct Held {
    size_t segments = 0;
    uint64_t readable_bytes = 0;  // holes left out
    uint64_t writable_bytes = 0;
  };
  Held held() const;

  // Until then I/O without a layout goes through the MDS and nobody asks for one.
  void pause_until(SteadyTime time);
  bool paused(SteadyTime now) const;

 private:
  using Lock = std::unique_lock<Mutex>;
  struct Closing {
    nfs4::IoMode iomode;
    FileRange range;
    bool operator==(const Closing& other) const = default;
  };

  bool begin_getting(Lock& lock, SteadyTime deadline);
  void take_in(const nfs4::Stateid& stateid, const std::vector<LayoutSegment>& segments,
               std::optional<uint64_t> size, uint64_t epoch, const std::optional<End>& end);
  void take_end(const End& end);
  bool has_end() const;
  void end_went();
  void refresh(uint64_t epoch);
  void clear(bool returned);
  bool closed(uint64_t offset, uint64_t length, nfs4::IoMode held) const;
  // Index of the segment that contains `offset`, or of the first one behind it.
  size_t find(uint64_t offset) const;
  bool usable(const LayoutSegment& segment, bool for_write) const;
  void link(LayoutPin& pin);
  bool inside(FileRange range, bool with_flushes) const;
  void insert(const LayoutSegment& segment);
  void remove(nfs4::IoMode iomode, FileRange range);
  // Widens the range to the segments it touches. False: it touches none.
  bool round_out(nfs4::IoMode iomode, FileRange& range) const;
  std::vector<LayoutSegment> parts_not_writable(const LayoutSegment& segment) const;
  void carve(FileRange range, nfs4::IoMode iomode = nfs4::IoMode::kAny);
  void take_stateid(const nfs4::Stateid& stateid);
  // Where the last one ends that the server would have to recall; holes it need not.
  uint64_t held_end() const;
  void some_went();
  FileRange gap_around(uint64_t offset, uint64_t length, bool for_write) const;

  LostStateids* const lost_;
  const HoleTrust* const holes_;
  mutable Mutex mutex_;
  std::vector<LayoutSegment> segments_;  // sorted, without overlap
  std::vector<Closing> closing_;
  LayoutPin* pins_ = nullptr;
  int drainers_ = 0;
  Condition drained_;
  bool getting_ = false;
  int returning_ = 0;
  Condition operation_done_;
  std::optional<nfs4::Stateid> stateid_;
  uint64_t epoch_ = 0;
  uint64_t incarnation_ = 1;
  uint64_t known_size_ = 0;  // never behind held_end()
  uint64_t holdings_ = 0;
  uint64_t end_token_ = 0;   // the server's number; 0: not ours
  uint64_t end_number_ = 0;  // our own
  bool end_known_ = false;
  SteadyTime end_taken_{};
  uint32_t end_era_ = 0;
  uint64_t ends_lost_ = 0;  // counts what ended it, or would have
  uint64_t last_end_ = 0;
  uint64_t run_begin_ = 0;
  SteadyTime paused_until_{};
};

}  // namespace pnfsrdma::initiator
