// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/transfer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "shared/nfs4/operation_table.h"

// The way of one I/O. In steady state, at queue depth 1, 4 KiB, layout held:
//   READ:  one doorbell (1 send), one wait (1 receive), the bytes land in the reply buffer: 0 copies, 0 MDS
//   calls; WRITE: the same, out of the request buffer; a WRITE that has to be durable: the same, with its
//   flush behind it;
// 0 allocations, 0 hand-overs to other threads, one network round trip, however many bricks.
namespace pnfsrdma::initiator {

namespace {

// A connection may die under an I/O this often before the MDS has to carry it.
constexpr int kAttemptsMax = 3;
// Committing our own growth makes room at once; that of others has to be waited for.
constexpr int kRoomTries = 3;

}  // namespace

Result<size_t> Transfer::move(const Io& io, uint64_t offset, BufferSlice slice) {
  if (may_hold(io, offset, slice.size())) {
    TRY_ASSIGN(const bool held, through_mds_.hold(offset, slice));
    if (held) return slice.size();
  }
  if (file_.unstable_in_doubt()) TRY(flusher_.settle_doubt());
  Result<size_t> moved = move_now(io, offset, slice);
  // The session has become another one meanwhile: it may be the new server that was read.
  if (io.direction == Direction::kRead && file_.unstable_in_doubt()) {
    TRY(flusher_.settle_doubt());
    moved = move_now(io, offset, slice);
  }
  return moved;
}

// A small file that has no layout and will get none for this, whose growth is all known, and where nothing that is on
// its way to a brick could come over it.
bool Transfer::may_hold(const Io& io, uint64_t offset, uint64_t length) const {
  return io.direction == Direction::kWrite && io.stability == Stability::kMayBeHeld && io.end == 0 &&
         io.attempt == 0 && range_end(offset, length) <= kHeldEndMax && !file_.cache.stateid() &&
         (!file_.fabric.options.layouts || !layouts_.layout_wanted(io.direction, offset, length)) &&
         !file_.dirty.grew() && !file_.dirty.unknown_in({offset, length});
}

Result<size_t> Transfer::move_now(Io io, uint64_t offset, BufferSlice slice) {
  size_t done = 0;
  while (done < slice.size()) {
    const BufferSlice rest = slice.slice(done, slice.size() - done);
    TRY_ASSIGN(const std::optional<size_t> stepped, step(io, offset + done, rest));
    if (!stepped) {
      if (io.end != 0) return fail(ECANCELED, "append: the end of the file is not ours alone any more");
      TRY_ASSIGN(const size_t count, go_through_mds(io, offset + done, rest));
      return done + count;
    }
    done += *stepped;
    // What has begun has its place, whosever the end is by now.
    io.end = 0;
  }
  return done;
}

Result<std::optional<size_t>> Transfer::step(const Io& io, uint64_t offset, BufferSlice slice) {
  const Direction direction = io.direction;
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = file_.fabric.statistics.fallbacks;
  if (!file_.fabric.options.layouts) return std::nullopt;
  if (io.attempt >= kAttemptsMax) {
    fallbacks.add();
    return std::nullopt;
  }
  LayoutPin pin;
  std::optional<KeptWrites::Room> room;
  for (int tries = 1; !room; ++tries) {
    TRY_ASSIGN(const bool entered, enter(io, offset, slice.size(), pin));
    if (!entered) return std::nullopt;
    // For what goes by RDMA, and no more; inside of the gate nobody waits.
    room = for_write ? growth_room_.room_for_copy(pin) : KeptWrites::Room();
    if (room) break;
    file_.cache.leave(pin);
    if (tries < kRoomTries && growth_room_.make_room()) continue;
    fallbacks.add();
    return std::nullopt;
  }
  const uint32_t done = bricks_.post_pieces(io, pin, slice);
  room.reset();
  file_.cache.leave(pin);
  TRY_ASSIGN(const size_t moved, conclude(io, pin, slice, done));
  return moved;
}

Result<size_t> Transfer::conclude(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done) {
  const uint32_t all = (1u << pin.pieces().size()) - 1;
  if (done != all) TRY(check_devices(pin, done));
  if (done != all) TRY(finish_pieces(io, pin, slice, done));
  if (pin.sequential) layouts_.prefetch_behind(pin, io.direction);
  if (io.direction == Direction::kWrite && file_.kept.any()) growth_room_.commit_early();
  return static_cast<size_t>(pin.length);
}

bool Transfer::start(PendingIo& pending, const Io& io, uint64_t offset, BufferSlice slice,
                     PendingIoListener* listener) {
  CHECK(pending.state_ != PendingIo::State::kInFlight);
  pending.io_ = io;
  pending.offset_ = offset;
  pending.slice_ = slice;
  pending.state_ = slice.size() == 0 ? PendingIo::State::kComplete : PendingIo::State::kIdle;
  pending.listener_ = listener;
  if (slice.size() == 0) {
    if (listener != nullptr) listener->completed(pending);
    return true;
  }
  CompletionPoller& completions = file_.fabric.completions;
  // Before the gate: whoever drains it looks whether somebody has to poll.
  completions.begin();
  if (!try_post(pending)) {
    completions.end();
    return false;
  }
  pending.release_hold();
  return true;
}

bool Transfer::try_post(PendingIo& pending) {
  LayoutPin& pin = pending.pin_;
  const bool for_write = pending.io_.direction == Direction::kWrite;
  pending.work_.lacks_room = false;
  if (!file_.fabric.options.layouts || file_.unstable_in_doubt()) return false;
  pending.began_ = file_.fabric.now();
  pin.unanswered = false;
  if (file_.cache.enter(pin, pending.offset_, pending.slice_.size(), for_write, file_.layouts.epoch) !=
      LayoutCache::Entry::kEntered)
    return false;
  if (!file_.growth_void() && pin.length == pending.slice_.size())
    pending.room_ = for_write ? growth_room_.room_for_copy(pin) : KeptWrites::Room();
  if (!pending.room_ || !bricks_.try_prepare(pending.work_, pending.io_, pin, pending.slice_, pending)) {
    pending.room_.reset();
    file_.cache.abandon(pin);
    return false;
  }
  pending.taker_ = this;
  pending.file_ = file_.shared_from_this();
  pending.holds_ = pending.work_.ends() + 1;
  pending.state_ = PendingIo::State::kInFlight;
  pending.done_ = bricks_.post(pending.work_, pending.io_, pin, pending.slice_);
  pending.io_.chains = nullptr;  // its caller's, who goes on
  return true;
}

void Transfer::take_outcome(PendingIo& pending) {
  CompletionPoller& completions = file_.fabric.completions;
  pending.done_ |= bricks_.take_outcomes(pending.work_, pending.io_, pending.pin_, pending.slice_);
  pending.room_.reset();
  file_.cache.leave(pending.pin_);
  if (pending.whole()) count_latency(pending);
  // Seen as complete it may be used for another one at once, and this file be gone. (With a listener: told.)
  PendingIoListener* const listener = pending.listener_;
  pending.state_ = PendingIo::State::kComplete;
  completions.complete();
  if (listener != nullptr) listener->completed(pending);
}

bool Transfer::finish_may_wait(const PendingIo& pending) const {
  return !pending.whole() || (pending.io_.direction == Direction::kRead && pending.slice_.size() > 0 &&
                              file_.unstable_in_doubt());
}

Result<size_t> Transfer::finish(PendingIo& pending) {
  CHECK(pending.is_complete());
  if (pending.slice_.size() == 0) {
    pending.state_ = PendingIo::State::kIdle;
    return size_t{0};
  }
  CHECK(pending.taker_ == this);
  const std::shared_ptr<FileState> alive = std::move(pending.file_);
  const Result<size_t> moved = finish_moved(pending);
  if (!pending.whole()) count_latency(pending);
  pending.state_ = PendingIo::State::kIdle;
  return moved;
}

void Transfer::abandon(PendingIo& pending) {
  CHECK(pending.is_complete());
  const std::shared_ptr<FileState> alive = std::move(pending.file_);
  pending.state_ = PendingIo::State::kIdle;
}

Result<size_t> Transfer::finish_moved(PendingIo& pending) {
  const Io& io = pending.io_;
  if (!pending.whole() && file_.fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const Result<size_t> moved = conclude(io, pending.pin_, pending.slice_, pending.done_);
  // As in move().
  if (io.direction != Direction::kRead || !file_.unstable_in_doubt()) return moved;
  TRY(flusher_.settle_doubt());
  return move_now(io, pending.offset_, pending.slice_);
}

void Transfer::count_latency(const PendingIo& pending) {
  Statistics& counters = file_.fabric.statistics;
  (pending.io_.direction == Direction::kRead ? counters.read_latency : counters.write_latency)
      .add(file_.fabric.now() - pending.began_);
}

Result<bool> Transfer::enter(const Io& io, uint64_t offset, uint64_t length, LayoutPin& pin) {
  const Direction direction = io.direction;
  const bool for_write = direction == Direction::kWrite;
  Counter& fallbacks = file_.fabric.statistics.fallbacks;
  bool asked = false;
  for (int turn = 0; turn < kStateidTries;) {
    const auto entry = file_.cache.enter(pin, offset, length, for_write, file_.layouts.epoch, io.end);
    if (file_.growth_void()) {
      // First what was lost with its layouts: else a read finds zeros there.
      if (entry == LayoutCache::Entry::kEntered) file_.cache.leave(pin);
      TRY(committer_.commit_as_mounted());
      ++turn;
      continue;
    }
    if (entry == LayoutCache::Entry::kEntered) return true;
    if (entry == LayoutCache::Entry::kMissing && !std::exchange(asked, true)) {
      if (!layouts_.layout_wanted(direction, offset, length)) {
        if (file_.cache.paused(file_.fabric.now())) fallbacks.add();
        return false;
      }
      if (layouts_.acquire(direction, offset, length)) continue;
    }
    break;
  }
  fallbacks.add();
  return false;
}

// The pieces that are not done may not be done through the MDS either where the memory is too weak.
Result<> Transfer::check_devices(const LayoutPin& pin, uint32_t done) const {
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    const Device* device = pin.pieces()[i].device;
    if ((done & (1u << i)) == 0 && device != nullptr && device->too_weak())
      return std::unexpected(device->weakness());
  }
  return {};
}

Result<> Transfer::finish_pieces(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done) {
  Io again = io;
  ++again.attempt;
  if (done != 0) again.end = 0;
  // Exactly what was not acknowledged, each piece under what layout and connection there are by now.
  for (size_t i = 0; i < pin.pieces().size(); ++i) {
    if ((done & (1u << i)) != 0) continue;
    const LayoutSegment& piece = pin.pieces()[i];
    file_.fabric.statistics.replays.add();
    report_unreached(io, piece);
    const BufferSlice part = slice.slice(piece.offset - pin.offset, piece.length);
    // The hello of a new connection ends the old one: what still lies in the brick's socket lands no more.
    if (pin.unanswered) (void)file_.patience.connect(*piece.device);
    TRY_ASSIGN(const size_t moved, move(again, piece.offset, part));
    again.end = 0;
    // The MDS sees the file end earlier than we did: what is behind it reads as zeros.
    if (moved < part.size()) std::memset(part.data() + moved, 0, part.size() - moved);
  }
  return {};
}

// The server cannot see it, and its administrator should.
void Transfer::report_unreached(const Io& io, const LayoutSegment& piece) const {
  // Who asks whether it is due has told it: so only who can.
  const std::optional<nfs4::Stateid> layout = file_.cache.stateid();
  if (!layout || piece.device == nullptr || !piece.device->report_due()) return;
  const bool for_write = io.direction == Direction::kWrite;
  nfs4::LayoutErrorArguments arguments{.offset = piece.offset, .length = piece.length, .stateid = *layout};
  arguments.errors.push_back(
      {.device = piece.device->id(),
       .status = nfs4::Status::kNxIo,
       .operation = static_cast<uint32_t>(for_write ? nfs4::Operation::kWrite : nfs4::Operation::kRead)});
  file_.mds.start_layout_error(file_.reference(for_write), arguments);
}

Result<size_t> Transfer::go_through_mds(const Io& io, uint64_t offset, BufferSlice slice) {
  const Direction direction = io.direction;
  // What was written here beyond the server's end of file is not there for the server yet.
  if (file_.dirty.grew() &&
      (direction == Direction::kWrite || offset + slice.size() > file_.cache.known_size())) {
    TRY(committer_.commit_as_mounted());
  }
  if (direction == Direction::kRead) return through_mds_.read(offset, slice);
  TRY(file_.patience.as_mounted([&] { return barrier_.end_unknown({offset, slice.size()}, false); }));
  return through_mds_.write(offset, slice, io.stability);
}

}  // namespace pnfsrdma::initiator
