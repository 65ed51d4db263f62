// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/signals.h"

#include <cerrno>
#include <utility>

namespace pnfsrdma::initiator {

namespace {

// A grant may be taken back, or a connection die, this often before the caller is told to come again.
constexpr int kSignalTriesMax = 5;
constexpr int kGrantTriesMax = 5;
constexpr Milliseconds kSignalPatience = std::chrono::seconds(2);

}  // namespace

// Memory of one brick, inside of the gate.
class Signals::Part {
 public:
  explicit Part(LayoutCache& cache) : cache_(cache) {}
  ~Part() { leave(); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  LayoutCache::Entry enter(FileRange rest, uint64_t epoch) {
    const auto entry = cache_.enter(pin, rest.offset, rest.length, true, epoch);
    entered_ = entry == LayoutCache::Entry::kEntered;
    return entry;
  }
  void leave() {
    if (std::exchange(entered_, false)) cache_.leave(pin);
  }
  std::span<const LayoutSegment> pieces() const {
    size_t count = 1;
    while (count < pin.pieces().size() && pin.pieces()[count].device == pin.pieces().front().device) ++count;
    return pin.pieces().first(count);
  }
  FileRange range() const { return {pin.offset, pieces().back().end() - pin.offset}; }

  LayoutPin pin;

 private:
  LayoutCache& cache_;
  bool entered_ = false;
};

// Parts of several bricks are signalled only when all of them are durable: nobody hears of one too early.
Result<> Signals::signal(FileRange range, uint64_t value, ErrorCursor& cursor) {
  if (!file_.fabric.options.layouts) return fail(ENOTSUP, "this file's data does not go by RDMA");
  if (range.length == 0) return fail(EINVAL, "nothing to signal");
  if (range.offset > file_.size() || range.length > file_.size() - range.offset)
    return fail(EINVAL, "the file ends before the end of the range");
  bool synced = false;
  bool sync = cursor.news(file_.dirty.losses()) || !is_plain(range);
  FileRange rest = range;
  for (int tries = 0; tries < kSignalTriesMax;) {
    if (sync) {
      TRY(file_sync_.sync(true, cursor));
      synced = true;
    }
    TRY_ASSIGN(const std::optional<uint64_t> told, tell(rest, value, rest.offset == range.offset, synced));
    sync = !told;
    if (told && *told == rest.length) return {};
    if (told && *told > 0) tries = 0;
    if (!told || *told == 0) ++tries;
    if (told) rest = {rest.offset + *told, rest.length - *told};
    TRY(file_.patience.still_wanted("a signal"));
  }
  return fail(EAGAIN, "the memory was taken back, or the brick does not answer");
}

bool Signals::is_plain(FileRange range) const {
  return !file_.unstable_in_doubt() && !file_.growth_void() && !file_.dirty.grew_before(range.end());
}

Result<> Signals::enter(Part& part, FileRange rest) {
  const SteadyTime deadline = file_.fabric.now() + kSignalPatience;
  for (int granted = 0;;) {
    const auto entry = part.enter(rest, file_.layouts.epoch);
    if (entry == LayoutCache::Entry::kEntered) return {};
    if (entry == LayoutCache::Entry::kMissing && !file_.cache.paused(file_.fabric.now()) &&
        layouts_.acquire(Direction::kWrite, rest.offset, rest.length) && ++granted < kGrantTriesMax)
      continue;
    if (file_.patience.rest_of_brick(deadline)) continue;
    TRY(file_.patience.still_wanted("a signal"));
    return fail(EAGAIN, "the server grants no memory of the file just now");
  }
}

Result<std::optional<uint64_t>> Signals::tell(FileRange rest, uint64_t value, bool whole, bool synced) {
  Part part(file_.cache);
  TRY(enter(part, rest));
  const FileRange range = part.range();
  Device& device = *part.pieces().front().device;
  const auto connected = device.connect();
  if (!connected) {
    part.leave();
    (void)file_.patience.connect(device);
    return std::nullopt;
  }
  const std::shared_ptr<Connection>& connection = *connected;
  if ((connection->said.understands & brick::kUnderstandsEvents) == 0)
    return fail(ENOTSUP, "the brick is of a version that tells no events");
  const uint64_t noted = file_.dirty.noted();
  whole = whole && range.length == rest.length && part.pin.known_size >= range.end();
  if (!synced && (!whole || !file_.dirty.only_at(range, &device, connection->hello.verifier)))
    return std::nullopt;

  brick::SignalCall call{.verifier = connection->hello.verifier, .value = value};
  for (const LayoutSegment& piece : part.pieces()) {
    rdma::RemoteSlice memory;
    if (piece.incarnation != connection->incarnation ||
        connection->resolve(piece.generation, piece.write, piece.skip + piece.length, memory) ==
            Connection::Lookup::kDead) {
      file_.cache.drop_grant(piece.write.grant);
      return 0;
    }
    call.ranges.push_back({piece.write.grant, piece.skip, piece.length});
  }
  file_.fabric.statistics.rdma_round_trips.add();
  const auto reply =
      connection->queue_pair.ask<brick::SignalReply>(std::move(call), file_.fabric.io_deadline());
  if (!reply || reply->status == brick::SignalStatus::kVerifier) {
    device.lost(connection);
    return std::nullopt;
  }
  switch (reply->status) {
    case brick::SignalStatus::kOk:
      if (whole) file_.dirty.flushed(range, noted);
      return range.length;
    case brick::SignalStatus::kUnknownGrant:
      for (const LayoutSegment& piece : part.pieces()) file_.cache.drop_grant(piece.write.grant);
      return 0;
    case brick::SignalStatus::kBounds:
      return fail(EIO, "the brick says that the range is not inside of its grant");
    case brick::SignalStatus::kIo:
    case brick::SignalStatus::kVerifier:
      break;
  }
  return fail(EIO, "the brick could not make the data durable");
}

}  // namespace pnfsrdma::initiator
