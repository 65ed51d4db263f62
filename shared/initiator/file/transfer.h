// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/initiator/file/brick_io.h"
#include "shared/initiator/file/growth_room.h"
#include "shared/initiator/file/layout_getter.h"
#include "shared/initiator/file/pending_io.h"

namespace pnfsrdma::initiator {

// The way of one I/O of a file: through the gate of its layouts to the bricks, or through the MDS, and again
// what was not acknowledged. Waits as the mount does. Thread-safe; without a state of its own.
class Transfer final : private OutcomeTaker {
 public:
  Transfer(FileState& file, Barrier& barrier, ThroughMds& through_mds, Committer& committer,
           GrowthRoom& growth_room, Flusher& flusher, LayoutGetter& layouts, BrickIo& bricks)
      : file_(file),
        barrier_(barrier),
        through_mds_(through_mds),
        committer_(committer),
        growth_room_(growth_room),
        flusher_(flusher),
        layouts_(layouts),
        bricks_(bricks) {}

  // Moves all of `slice`; a READ ends early only at the end of the file.
  Result<size_t> move(const Io& io, uint64_t offset, BufferSlice slice);

  // The same in parts, which do not wait. False: it would have to; nothing has happened.
  bool start(PendingIo& pending, const Io& io, uint64_t offset, BufferSlice slice,
             PendingIoListener* listener);
  // Of a complete one.
  bool finish_may_wait(const PendingIo& pending) const;
  Result<size_t> finish(PendingIo& pending);
  void abandon(PendingIo& pending);

 private:
  bool may_hold(const Io& io, uint64_t offset, uint64_t length) const;
  bool try_post(PendingIo& pending);
  void take_outcome(PendingIo& pending) override;
  Result<size_t> finish_moved(PendingIo& pending);
  void count_latency(const PendingIo& pending);
  Result<size_t> move_now(Io io, uint64_t offset, BufferSlice slice);
  // One pin of the gate: returns the bytes done, at least one; none: go through the MDS.
  Result<std::optional<size_t>> step(const Io& io, uint64_t offset, BufferSlice slice);
  // What follows outside of the gate: the pieces that are not done, and what is due for the next I/O.
  Result<size_t> conclude(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done);
  // True: inside. False: go through the MDS.
  Result<bool> enter(const Io& io, uint64_t offset, uint64_t length, LayoutPin& pin);
  Result<> check_devices(const LayoutPin& pin, uint32_t done) const;
  Result<> finish_pieces(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done);
  void report_unreached(const Io& io, const LayoutSegment& piece) const;
  Result<size_t> go_through_mds(const Io& io, uint64_t offset, BufferSlice slice);

  FileState& file_;
  Barrier& barrier_;
  ThroughMds& through_mds_;
  Committer& committer_;
  GrowthRoom& growth_room_;
  Flusher& flusher_;
  LayoutGetter& layouts_;
  BrickIo& bricks_;
};

}  // namespace pnfsrdma::initiator
