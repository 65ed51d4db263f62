// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/space.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/check.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

// Addresses are reserved in the store this many blocks (128 GiB) at a time; a restart skips what is left of
// them.
constexpr uint64_t kBlocksPerReservation = 65536;
// A look for room ends after this many blocks: a fresh block costs less than a long search (about 0.1 us
// each).
constexpr size_t kBlocksSearchedMax = 512;
// More pieces than this would be more grants than the file is worth.
constexpr size_t kPiecesMax = 8;

uint32_t grains_in(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kGrainSize - 1) / kGrainSize);
}

GrainRange grains_between(uint64_t from, uint64_t to, uint64_t block) {
  const uint64_t start = block * kBlockSize;
  const auto first = static_cast<uint32_t>((from - start) / kGrainSize);
  return {first, static_cast<uint32_t>((to - start) / kGrainSize) - first};
}

// Calls visit(block number, its grains in the range) for each block that the range touches.
template <typename Visit>
void for_each_block(uint64_t logical, uint64_t length, Visit visit) {
  for (uint64_t at = logical, end = logical + length; at < end;) {
    const uint64_t block = at / kBlockSize;
    const uint64_t to = std::min(end, (block + 1) * kBlockSize);
    visit(block, grains_between(at, to, block));
    at = to;
  }
}

Piece piece_of(uint64_t block, GrainRange grains, bool clean) {
  return {block * kBlockSize + grains.first * kGrainSize, grains.count * kGrainSize, clean};
}

}  // namespace

Space::Space(KeyValueStore& store, const Clock& clock, Addresses addresses)
    : store_(store),
      clock_(clock),
      addresses_(std::move(addresses)),
      next_block_(uint64_t{addresses_.zones.back()} * kBlocksPerZone + 1),
      reserved_block_(next_block_) {}

Result<> Space::begin() {
  TRY_ASSIGN(const std::optional<std::string> stored, store_.get(address_counter_key(addresses_.brick)));
  if (stored) {
    TRY_ASSIGN(const StoredNumber next, read_value<StoredNumber>(*stored, "an address counter"));
    reserved_block_ = std::max(reserved_block_, next.number);
  }
  reserved_block_ = std::max(reserved_block_, ours_.end());
  next_block_ = reserved_block_;
  return {};
}

void Space::use(uint64_t logical, uint64_t length) {
  for_each_block(logical, length, [&](uint64_t block, GrainRange grains) {
    ours_.insert(block, 1);
    if (grains.count == kGrainsPerBlock) return;
    // What was free before the restart is not known to be clean.
    const auto at = shared_.try_emplace(block, BlockGrains::Start::kAllDirty).first;
    take_from(at, grains);
  });
}

Result<> Space::reserve_addresses(uint64_t count) {
  if (next_block_ + count <= reserved_block_) return {};
  const uint64_t reserved = std::min(next_block_ + count + kBlocksPerReservation, zone_end());
  // Not waited for: durable in order, so before any extent that names such an address.
  Batch batch;
  put_value(batch, address_counter_key(addresses_.brick), StoredNumber{reserved});
  TRY(store_.commit(batch, CommitKind::kState));
  reserved_block_ = reserved;
  return {};
}

Result<> Space::enter_next_zone() {
  if (!addresses_.next_zone) return fail(ENOSPC, "the logical addresses are spent");
  TRY_ASSIGN(const uint32_t zone, addresses_.next_zone());
  addresses_.zones.push_back(zone);
  next_block_ = reserved_block_ = uint64_t{zone} * kBlocksPerZone + 1;
  return {};
}

Result<uint64_t> Space::take_blocks(uint64_t count) {
  if (count == 0) return fail(EINVAL, "no blocks are asked for");
  if (count >= kBlocksPerZone) return fail(ENOSPC, "more blocks at a time than a zone of addresses has");
  if (count > zone_end() - std::min(next_block_, zone_end())) TRY(enter_next_zone());
  TRY(reserve_addresses(count));
  const uint64_t first = next_block_;
  next_block_ += count;
  ours_.insert(first, count);
  return first * kBlockSize;
}

void Space::give_up_blocks(uint64_t logical, uint64_t count) {
  const uint64_t first = logical / kBlockSize;
  ours_.erase(first, count);
  shared_.erase(shared_.lower_bound(first), shared_.lower_bound(first + count));
}

Piece Space::share_block(uint64_t logical, uint64_t bytes) {
  const uint64_t block = logical / kBlockSize;
  CHECK(ours_.contains(block) && bytes > 0 && bytes <= kBlockSize);
  const auto [entry, fresh] = shared_.try_emplace(block, BlockGrains::Start::kAllClean);
  CHECK(fresh);
  // Taken here and not by take_grains(): that could find room elsewhere by now, and leave this block empty.
  return take_from(entry, {0, grains_in(bytes)});
}

std::vector<Piece> Space::take_grains(uint64_t bytes) {
  wake_rested();
  if (bytes == 0 || bytes > kBlockSize) return {};
  const uint32_t count = grains_in(bytes);
  if (const auto clean = take_row(count, true)) return {*clean};
  if (const auto any = take_row(count, false)) return {*any};
  return take_several(count);
}

std::optional<Piece> Space::take_row(uint32_t count, bool clean) {
  size_t searched = 0;
  for (auto at = shared_.begin(); at != shared_.end() && searched < kBlocksSearchedMax; ++at, ++searched) {
    if (const auto grains = at->second.find(count, clean)) return take_from(at, *grains);
  }
  return std::nullopt;
}

std::vector<Piece> Space::take_several(uint32_t count) {
  std::vector<Piece> pieces;
  size_t searched = 0;
  for (auto at = shared_.begin(); at != shared_.end() && searched < kBlocksSearchedMax; ++searched) {
    const auto next = std::next(at);  // take_from() may end the block's entry
    const uint64_t block = at->first;
    while (count > 0 && pieces.size() < kPiecesMax) {
      const auto entry = shared_.find(block);
      if (entry == shared_.end()) break;
      const auto grains = entry->second.find_some(count);
      if (!grains) break;
      pieces.push_back(take_from(entry, *grains));
      count -= grains->count;
    }
    if (count == 0) return pieces;
    at = next;
  }
  for (const Piece& piece : pieces) {
    const auto emptied = put_back(piece);
    CHECK(emptied.empty());  // nobody else came between, and none was empty before
  }
  return {};
}

Piece Space::take_from(Shared::iterator block, GrainRange grains) {
  const Piece piece = piece_of(block->first, grains, block->second.is_clean(grains));
  block->second.take(grains);
  if (block->second.used_count() == kGrainsPerBlock) shared_.erase(block);
  return piece;
}

std::vector<brick::Run> Space::put_back(const Piece& piece) {
  BlockRuns emptied;
  for_each_block(piece.logical, piece.length, [&](uint64_t block, GrainRange grains) {
    CHECK(ours_.contains(block));
    BlockGrains& state = shared_.try_emplace(block, BlockGrains::Start::kAllUsed).first->second;
    state.give_back(grains, piece.clean);
    // What else was in the block may have gone while the piece was out, being zeroed.
    if (state.used_count() == 0) emptied.insert(block, 1);
  });
  return give_up_emptied(emptied);
}

std::vector<brick::Run> Space::free(uint64_t logical, uint64_t length) {
  CHECK(logical % kGrainSize == 0 && length % kGrainSize == 0);
  BlockRuns emptied;
  for_each_block(logical, length, [&](uint64_t block, GrainRange grains) {
    CHECK(ours_.contains(block));
    if (free_grains(block, grains)) emptied.insert(block, 1);
  });
  return give_up_emptied(emptied);
}

std::vector<brick::Run> Space::give_up_emptied(const BlockRuns& emptied) {
  std::vector<brick::Run> runs = emptied.without({});
  for (const brick::Run& run : runs) give_up_blocks(run.logical, run.count);
  return runs;
}

bool Space::free_grains(uint64_t block, GrainRange grains) {
  const auto at = shared_.find(block);
  if (grains.count == kGrainsPerBlock) {
    CHECK(at == shared_.end());
    return true;
  }
  BlockGrains& state = at != shared_.end()
                           ? at->second
                           : shared_.try_emplace(block, BlockGrains::Start::kAllUsed).first->second;
  state.rest(grains);
  resting_.push_back({clock_.now() + Milliseconds(brick::kQuarantineMs), block, grains});
  return state.used_count() == 0;
}

void Space::wake_rested() {
  const SteadyTime now = clock_.now();
  for (; !resting_.empty() && resting_.front().until <= now; resting_.pop_front()) {
    // A block that became empty is gone, and its number never comes back.
    const auto block = shared_.find(resting_.front().block);
    if (block != shared_.end()) block->second.wake(resting_.front().grains);
  }
}

std::optional<Piece> Space::take_dirty(uint64_t bytes) {
  wake_rested();
  const auto count = static_cast<uint32_t>(std::min(bytes, kBlockSize) / kGrainSize);
  size_t searched = 0;
  for (auto at = shared_.begin(); at != shared_.end() && searched < kBlocksSearchedMax; ++at, ++searched) {
    if (const auto grains = at->second.find_dirty(count)) return take_from(at, *grains);
  }
  return std::nullopt;
}

SpaceDifference Space::compare(const std::vector<brick::Run>& listed) const {
  BlockRuns on_brick;
  for (const brick::Run& run : listed) on_brick.insert(run.logical / kBlockSize, run.count);
  return {.leaked = on_brick.without(ours_), .missing = ours_.without(on_brick)};
}

uint64_t Space::free_grain_bytes() const {
  uint64_t grains = 0;
  for (const auto& [block, state] : shared_) grains += kGrainsPerBlock - state.used_count();
  return grains * kGrainSize;
}

}  // namespace pnfsrdma::mds
