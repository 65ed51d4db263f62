// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/data_operations.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "server/brickd/limits.h"
#include "shared/base/log.h"

namespace pnfsrdma::brick {
namespace {

uint64_t bytes_of(const std::vector<Piece>& pieces) {
  uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.length;
  return sum;
}

Status status_of(const Result<>& result) {
  if (result) return Status::kOk;
  if (result.error().number() == ECANCELED) return Status::kStaleEpoch;
  log_error("brick", "data-operation-failed error=\"{}\"", result.error().to_string());
  return Status::kIo;
}

}  // namespace

DataOperations::DataOperations(EventLoop& loop, Pool& pool, FlushGate& gate)
    : pool_(pool), gate_(gate), epoch_(pool.superblock().epoch()), executor_(loop, "brick-work") {}

std::expected<DataOperations::Pieces, Status> DataOperations::resolve(
    const std::vector<Range>& ranges) const {
  Pieces all;
  for (const Range& range : ranges) {
    TRY_ASSIGN(const Pieces pieces, pool_.table().resolve(range.logical, range.length));
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  return all;
}

std::vector<ByteSpan> DataOperations::memory_of(const Pieces& pieces) const {
  std::vector<ByteSpan> ranges;
  for (const Piece& piece : pieces) ranges.push_back(pool_.memory(piece));
  return ranges;
}

void DataOperations::persist(const RangesArguments& arguments, Done done) {
  auto pieces = resolve(arguments.ranges);
  if (!pieces) return done(pieces.error());
  const uint64_t bytes = bytes_of(*pieces);
  if (!pool_.persistence().blocks()) {
    return run(
        arguments.epoch, *pieces, bytes,
        [this, pieces = *pieces] { return gate_.persist(memory_of(pieces)); }, std::move(done));
  }
  for (const Piece& piece : *pieces) pool_.table().pin(piece);
  ++waiting_;
  Persist persist{arguments.epoch, std::move(*pieces), std::move(done), {}};
  if (!join_batch(persist, bytes)) begin_batch(std::move(persist), bytes);
}

// Only the last of the thread's line, so that nothing is done before what was asked for earlier; and no longer
// than one turn at the gate, so that a small one does not wait for large ones that came later.
bool DataOperations::join_batch(Persist& persist, uint64_t bytes) {
  if (!last_batch_) return false;
  auto batch = last_batch_->lock();
  if (batch->begun || batch->bytes + bytes > kFlushTurnBytes) return false;
  batch->persists.push_back(std::move(persist));
  batch->bytes += bytes;
  return true;
}

void DataOperations::begin_batch(Persist persist, uint64_t bytes) {
  const auto batch = std::make_shared<Guarded<Batch>>();
  batch->lock()->persists.push_back(std::move(persist));
  batch->lock()->bytes = bytes;
  const auto flushed = std::make_shared<std::vector<Persist>>();
  executor_.run(
      [this, batch, flushed] {
        {
          auto begun = batch->lock();
          begun->begun = true;
          *flushed = std::move(begun->persists);
        }
        flush(*flushed);
      },
      [this, batch, flushed] { answer(*flushed); });
  last_batch_ = batch;
}

// In the thread.
void DataOperations::flush(std::vector<Persist>& persists) {
  std::vector<ByteSpan> ranges;
  for (Persist& persist : persists) {
    if (persist.epoch < epoch_.load()) {
      persist.result = fail(ECANCELED, "a newer MDS has claimed the brick");
    } else {
      std::ranges::copy(memory_of(persist.pieces), std::back_inserter(ranges));
    }
  }
  const Result<> flushed = gate_.persist(ranges);
  for (Persist& persist : persists) {
    if (persist.result) persist.result = flushed;
  }
}

void DataOperations::answer(const std::vector<Persist>& persists) {
  for (const Persist& persist : persists) {
    for (const Piece& piece : persist.pieces) pool_.table().unpin(piece);
    --waiting_;
    persist.done(status_of(persist.result));
  }
}

void DataOperations::zero(const RangesArguments& arguments, Done done) {
  auto pieces = resolve(arguments.ranges);
  if (!pieces) return done(pieces.error());
  run(
      arguments.epoch, *pieces, bytes_of(*pieces),
      [this, pieces = *pieces] {
        const Verifier verifier = gate_.verifier();
        for (const Piece& piece : pieces) pool_.persistence().zero(pool_.memory(piece));
        return gate_.persist_under(memory_of(pieces), verifier);
      },
      std::move(done));
}

void DataOperations::copy(const CopyArguments& arguments, Done done) {
  const uint64_t distance =
      std::max(arguments.source, arguments.target) - std::min(arguments.source, arguments.target);
  if (distance < arguments.length) return done(Status::kInvalid);
  auto source = pool_.table().resolve(arguments.source, arguments.length);
  auto target = pool_.table().resolve(arguments.target, arguments.length);
  if (!source || !target) return done(source ? target.error() : source.error());
  Pieces pinned = *source;
  pinned.insert(pinned.end(), target->begin(), target->end());
  run(
      arguments.epoch, std::move(pinned), arguments.length,
      [this, source = *source, target = *target] { return copy_pieces(source, target); }, std::move(done));
}

// Both lists cover the same number of bytes, cut at different places.
Result<> DataOperations::copy_pieces(const Pieces& source, const Pieces& target) const {
  const Verifier verifier = gate_.verifier();
  size_t from = 0, to = 0;
  uint64_t from_done = 0, to_done = 0;
  while (to < target.size()) {
    const uint64_t count = std::min(source[from].length - from_done, target[to].length - to_done);
    pool_.persistence().copy(pool_.memory(target[to]).data() + to_done,
                             ByteSpan(pool_.memory(source[from])).subspan(from_done, count));
    if ((from_done += count) == source[from].length) ++from, from_done = 0;
    if ((to_done += count) == target[to].length) ++to, to_done = 0;
  }
  return gate_.persist_under(memory_of(target), verifier);
}

void DataOperations::run(uint64_t epoch, Pieces pinned, uint64_t bytes, Work work, Done done) {
  const bool inline_is_quick = bytes <= kInlineBytesMax && !pool_.persistence().blocks();
  // Not past what waits in the thread: an MDS may count on the order of its calls.
  if (inline_is_quick && executor_.unfinished() == 0) return done(status_of(work()));

  for (const Piece& piece : pinned) pool_.table().pin(piece);
  ++waiting_;
  last_batch_ = nullptr;
  auto result = std::make_shared<Result<>>();
  executor_.run(
      [this, epoch, result, work = std::move(work)] {
        *result =
            epoch < epoch_.load() ? Result<>(fail(ECANCELED, "a newer MDS has claimed the brick")) : work();
      },
      [this, result, pinned = std::move(pinned), done = std::move(done)] {
        for (const Piece& piece : pinned) pool_.table().unpin(piece);
        --waiting_;
        done(status_of(*result));
      });
}

void DataOperations::fence_epoch(uint64_t epoch, std::function<void()> done) {
  epoch_.store(epoch);
  last_batch_ = nullptr;
  executor_.run([] {}, std::move(done));
}

}  // namespace pnfsrdma::brick
