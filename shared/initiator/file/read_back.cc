// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/read_back.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <vector>

#include "shared/base/crc32c.h"

namespace pnfsrdma::initiator {

namespace {

constexpr size_t kPiecesPerMessage = 64;
static_assert(kPiecesPerMessage <= brick::kVerifyRangesPerMessage);
// A grant may be taken back, or a connection die, this often.
constexpr int kReadTriesMax = 5;
constexpr Milliseconds kReadPatience = std::chrono::seconds(2);

uint32_t crc_of_zeros(uint64_t length) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  uint32_t sum = 0;
  for (; length > 0; length -= std::min<uint64_t>(length, kZeros.size()))
    sum = crc32c(ByteSpan(kZeros).first(std::min<uint64_t>(length, kZeros.size())), sum);
  return sum;
}

}  // namespace

// What one message asks for: memory of one brick, that of several ranges if it is short. Inside of the gate
// until it goes.
class ReadBack::Batch {
 public:
  struct Part {
    size_t range = 0;
    LayoutSegment piece;
  };

  Batch(LayoutCache& cache, std::span<const FileRange> ranges, size_t range, uint64_t done)
      : ranges(ranges), range(range), done(done), cache_(cache) {}
  ~Batch() {
    for (LayoutPin& pin : pins_) cache_.leave(pin);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  bool full() const {
    return parts.size() + kPiecesMax > kPiecesPerMessage || bytes == brick::kVerifyBytesPerMessage;
  }
  // False: no layout there, or another brick's turn.
  bool enter(uint64_t offset, uint64_t length, uint64_t epoch) {
    LayoutPin& pin = pins_.emplace_back();
    if (cache_.enter(pin, offset, length, false, epoch) != LayoutCache::Entry::kEntered) {
      pins_.pop_back();
      return false;
    }
    for (const LayoutSegment& piece : pin.pieces()) {
      if (!piece.hole() && device != nullptr && piece.device != device) return false;
      if (!piece.hole()) device = piece.device;
      parts.push_back({range, piece});
      bytes += piece.length;
      done += piece.length;
    }
    return true;
  }

  const std::span<const FileRange> ranges;
  size_t range;   // the next one, or the rest of it
  uint64_t done;  // of that
  Device* device = nullptr;
  std::vector<Part> parts;
  uint64_t bytes = 0;

 private:
  LayoutCache& cache_;
  std::deque<LayoutPin> pins_;
};

Result<ReadBackSums> ReadBack::read(std::span<const FileRange> ranges) {
  if (!file_.fabric.options.layouts) return fail(ENOTSUP, "this file's data does not go by RDMA");
  for (const FileRange& range : ranges) {
    if (range.offset > file_.size() || range.length > file_.size() - range.offset)
      return fail(EINVAL, "the file ends before the end of the range");
  }
  ReadBackSums sums;
  sums.checksums.assign(ranges.size(), 0);
  size_t range = 0;
  uint64_t done = 0;
  for (int tries = 0; range < ranges.size();) {
    // Holes ask nobody, and may be long.
    TRY(file_.patience.still_wanted("a verification"));
    Result<> asked;
    Device* device = nullptr;
    {
      Batch batch(file_.cache, ranges, range, done);
      TRY(gather(batch));
      asked = ask(batch, sums);
      device = batch.device;
      if (asked) range = batch.range, done = batch.done, tries = 0;
    }
    if (asked) continue;
    if (asked.error().number() != EAGAIN || ++tries == kReadTriesMax) return std::unexpected(asked.error());
    if (device != nullptr) (void)file_.patience.connect(*device);
  }
  return sums;
}

Result<> ReadBack::gather(Batch& batch) {
  const SteadyTime deadline = file_.fabric.now() + kReadPatience;
  int granted = 0;
  while (batch.range < batch.ranges.size() && !batch.full()) {
    const FileRange& range = batch.ranges[batch.range];
    if (batch.done == range.length) {
      ++batch.range;
      batch.done = 0;
      continue;
    }
    const uint64_t offset = range.offset + batch.done;
    const uint64_t length = std::min(range.length - batch.done, brick::kVerifyBytesPerMessage - batch.bytes);
    const size_t before = batch.parts.size();
    if (batch.enter(offset, length, file_.layouts.epoch)) continue;
    // What there is goes first: nobody waits for a layout inside of the gate.
    if (before > 0 || batch.parts.size() > before) return {};
    if (!file_.cache.paused(file_.fabric.now()) && layouts_.acquire(Direction::kRead, offset, length) &&
        ++granted < kReadTriesMax)
      continue;
    if (!file_.patience.rest_of_brick(deadline)) {
      TRY(file_.patience.still_wanted("a verification"));
      return fail(EAGAIN, "the server grants no memory of the file just now");
    }
  }
  return {};
}

// EAGAIN: once more.
Result<> ReadBack::ask(Batch& batch, ReadBackSums& sums) {
  brick::VerifyCall call;
  std::shared_ptr<Connection> connection;
  if (batch.device != nullptr) {
    const auto connected = batch.device->connect();
    if (!connected) return fail(EAGAIN, connected.error().what());
    connection = *connected;
    if ((connection->said.understands & brick::kUnderstandsVerify) == 0)
      return fail(ENOTSUP, "the brick is of a version that verifies nothing");
  }
  for (const Batch::Part& part : batch.parts) {
    const LayoutSegment& piece = part.piece;
    if (piece.hole()) continue;
    rdma::RemoteSlice memory;
    if (piece.incarnation != connection->incarnation ||
        connection->resolve(piece.generation, piece.read, piece.skip + piece.length, memory) ==
            Connection::Lookup::kDead) {
      file_.cache.drop_grant(piece.read.grant);
      return fail(EAGAIN, "the memory was taken back");
    }
    call.ranges.push_back({piece.read.grant, piece.skip, piece.length});
  }
  std::optional<brick::VerifyReply> reply = brick::VerifyReply{.medium = true};
  if (!call.ranges.empty()) {
    const size_t asked = call.ranges.size();
    file_.fabric.statistics.rdma_round_trips.add();
    reply = connection->queue_pair.ask<brick::VerifyReply>(std::move(call), file_.fabric.io_deadline());
    if (!reply || (reply->status == brick::PersistStatus::kOk && reply->checksums.size() != asked)) {
      batch.device->lost(connection);
      return fail(EAGAIN, "the connection to the brick was lost");
    }
  }
  if (reply->status == brick::PersistStatus::kUnknownGrant) {
    for (const Batch::Part& part : batch.parts) {
      if (!part.piece.hole()) file_.cache.drop_grant(part.piece.read.grant);
    }
    return fail(EAGAIN, "the memory was taken back");
  }
  if (reply->status != brick::PersistStatus::kOk)
    return fail(EIO, "the brick could not make the data durable");
  sums.medium = sums.medium && reply->medium;
  size_t answered = 0;
  for (const Batch::Part& part : batch.parts) {
    const uint64_t length = part.piece.length;
    const uint32_t sum = part.piece.hole() ? crc_of_zeros(length) : reply->checksums[answered++];
    uint32_t& whole = sums.checksums[part.range];
    whole = crc32c_joined(whole, sum, length);
  }
  return {};
}

}  // namespace pnfsrdma::initiator
