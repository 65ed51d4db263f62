// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/grain_pool.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

GrainRange grains_between(uint64_t from, uint64_t to, uint64_t block) {
  const uint64_t start = block * kBlockSize;
  const auto first = static_cast<uint32_t>((from - start) / kGrainSize);
  return {first, static_cast<uint32_t>((to - start) / kGrainSize) - first};
}

// Calls visit(block number, its grains in the range) for each block that the range touches.
template <typename Visit>
void for_each_block(uint64_t logical, uint64_t length, Visit visit) {
  CHECK(logical % kGrainSize == 0 && length % kGrainSize == 0);
  for (uint64_t at = logical, end = logical + length; at < end;) {
    const uint64_t block = at / kBlockSize;
    const uint64_t to = std::min(end, (block + 1) * kBlockSize);
    visit(block, grains_between(at, to, block));
    at = to;
  }
}

}  // namespace

template <typename Change>
void GrainPool::change(uint64_t block, GrainRange range, Change change) {
  const auto at = shared_.try_emplace(block, BlockGrains::Start::kAllUsed).first;
  BlockGrains& grains = at->second;
  const GrainRange around = grains.with_neighbours(range);
  index(block, grains, around, false);
  free_in_blocks_ -= grains.free_count();
  resting_ -= grains.resting_count();
  change(grains);
  free_in_blocks_ += grains.free_count();
  resting_ += grains.resting_count();
  index(block, grains, around, true);
  if (grains.used_count() == kGrainsPerBlock) shared_.erase(at);
}

void GrainPool::index(uint64_t block, const BlockGrains& grains, GrainRange range, bool enter) {
  for (uint32_t at = range.first; at < range.end();) {
    const GrainRange run = grains.run_at(at);
    at += std::max(run.count, 1U);
    if (run.count == 0) continue;
    Runs& runs = grains.is_clean(run.first) ? clean_ : dirty_;
    const Run entry{run.count, block, run.first};
    CHECK(enter ? runs.insert(entry).second : runs.erase(entry) == 1);
  }
}

void GrainPool::use(std::span<const LogicalRange> extents) {
  uint64_t block = 0;
  std::vector<GrainRange> used;  // of it, where it is not wholly used
  for (const LogicalRange& extent : extents) {
    const uint64_t first = extent.logical / kBlockSize;
    const uint64_t last = (extent.end() - 1) / kBlockSize;
    ours_.insert(first, last - first + 1);
    const auto use_part = [&](uint64_t part, GrainRange range) {
      if (range.count == kGrainsPerBlock) return;
      if (part != block) {
        use_in(block, used);
        used.clear();
        block = part;
      }
      used.push_back(range);
    };
    const uint64_t first_end = std::min(extent.end(), (first + 1) * kBlockSize);
    use_part(first, grains_between(extent.logical, first_end, first));
    if (last != first) use_part(last, grains_between(last * kBlockSize, extent.end(), last));
  }
  use_in(block, used);
}

void GrainPool::use_in(uint64_t block, std::span<const GrainRange> used) {
  if (used.empty()) return;
  CHECK(!shared_.contains(block));
  change(block, {0, kGrainsPerBlock}, [&](BlockGrains& grains) {
    uint32_t at = 0;
    const auto free_up_to = [&](uint32_t end) {
      if (at < end) grains.give_back({at, end - at}, false);
    };
    for (const GrainRange& range : used) {
      free_up_to(range.first);
      at = range.end();
    }
    free_up_to(kGrainsPerBlock);
  });
}

// --- taking

uint64_t GrainPool::blocks_needed(const GrainRequest& request) const {
  return std::min((request.hard + request.soft) / kGrainsPerBlock + 1, fresh_blocks());
}

std::expected<Taken, Shortage> GrainPool::take(const GrainRequest& request, uint64_t next_block) {
  if (request.hard > free_grains()) {
    const bool soon = request.hard <= free_grains() + waiting_grains();
    return std::unexpected(soon ? Shortage::kWait : Shortage::kFull);
  }
  const size_t pieces_max = request.scattered || nearly_full() ? SIZE_MAX : kPiecesMax;
  Taken taken;
  uint64_t hard = request.hard;
  uint64_t soft = request.soft;
  const auto got = [&](const Piece& piece) {
    uint64_t count = piece.length / kGrainSize;
    const uint64_t needed = std::min(hard, count);
    hard -= needed;
    soft -= std::min(soft, count - needed);
    taken.pieces.push_back(piece);
  };
  uint64_t goal = request.goal;
  while (hard + soft > 0) {
    const auto piece = take_at(goal, hard + soft);
    if (!piece) break;
    got(*piece);
    goal = piece->logical + piece->length;
  }
  // Whole blocks, and nothing else if that will do: they join on to those before and behind.
  const uint64_t whole = (hard + soft) / kGrainsPerBlock;
  if (whole > 0 && whole * kGrainsPerBlock >= hard) soft = whole * kGrainsPerBlock - hard;
  // Grown in place up to the next thing: a rest that is only soft would be a piece of its own.
  if (whole == 0 && hard == 0 && !taken.pieces.empty()) soft = 0;
  uint64_t blocks = std::min(whole, fresh_blocks());
  const uint64_t base = next_block * kBlockSize;
  if (blocks > 0) got({base, blocks * kBlockSize, true});
  const auto rest = hard + soft > 0 ? take_best(hard + soft) : std::nullopt;
  if (rest) {
    got(*rest);
  } else if (hard + soft > 0 && blocks < fresh_blocks()) {
    // Less than a block: what is left of it will be free.
    const Piece piece{base + blocks * kBlockSize, (hard + soft) * kGrainSize, true};
    promises_[next_block + blocks] = {static_cast<uint32_t>(hard + soft),
                                      kGrainsPerBlock - static_cast<uint32_t>(hard + soft)};
    promised_ += kGrainsPerBlock - (hard + soft);
    ++blocks;
    got(piece);
  } else if (hard > 0 && !split(hard, pieces_max, taken.pieces)) {
    // The fresh ones among them were never entered.
    std::erase_if(taken.pieces, [&](const Piece& piece) { return blocks > 0 && piece.logical == base; });
    CHECK(put_back(taken.pieces).empty());
    return std::unexpected(Shortage::kScattered);
  }
  if (blocks > 0) {
    ours_.insert(next_block, blocks);
    taken.fresh = brick::Run{base, blocks};
  }
  return taken;
}

Piece GrainPool::take_run(uint64_t block, GrainRange range) {
  Piece piece{block * kBlockSize + range.first * kGrainSize, range.count * kGrainSize, false};
  change(block, range, [&](BlockGrains& grains) {
    piece.clean = grains.is_clean(range.first);
    grains.take(range);
  });
  return piece;
}

std::optional<Piece> GrainPool::take_at(uint64_t logical, uint64_t count) {
  const uint64_t block = logical / kBlockSize;
  const auto at = shared_.find(block);
  if (at == shared_.end()) return std::nullopt;
  const auto first = static_cast<uint32_t>(logical % kBlockSize / kGrainSize);
  const GrainRange run =
      at->second.run_at(first, static_cast<uint32_t>(std::min<uint64_t>(count, kGrainsPerBlock)));
  if (run.count == 0) return std::nullopt;
  return take_run(block, run);
}

// The shortest run that is long enough; a clean one needs no wait for the brick.
std::optional<Piece> GrainPool::take_best(uint64_t count) {
  if (count > kGrainsPerBlock) return std::nullopt;
  const auto wanted = static_cast<uint32_t>(count);
  for (const Runs* runs : {&clean_, &dirty_}) {
    const auto best = runs->lower_bound({.count = wanted});
    if (best != runs->end()) return take_run(best->block, {best->first, wanted});
  }
  return std::nullopt;
}

Piece GrainPool::take_longest() {
  const bool from_dirty =
      clean_.empty() || (!dirty_.empty() && dirty_.rbegin()->count > clean_.rbegin()->count);
  const Run run = *(from_dirty ? dirty_ : clean_).rbegin();
  return take_run(run.block, {run.first, run.count});
}

// Adds to `pieces` until it has `count` more grains. False: it has as many pieces as it may.
bool GrainPool::split(uint64_t count, size_t pieces_max, std::vector<Piece>& pieces) {
  while (count > 0) {
    if (pieces.size() >= pieces_max) return false;
    const auto last = take_best(count);
    pieces.push_back(last ? *last : take_longest());
    count -= pieces.back().length / kGrainSize;
  }
  return true;
}

void GrainPool::allocated(const brick::Run& fresh) {
  const uint64_t last = fresh.logical / kBlockSize + fresh.count - 1;
  const auto promise = promises_.find(last);
  if (promise == promises_.end()) return;
  const GrainRange range = promise->second;
  promises_.erase(promise);
  promised_ -= range.count;
  change(last, range, [&](BlockGrains& grains) { grains.give_back(range, true); });
}

void GrainPool::refused(const brick::Run& fresh) {
  const uint64_t first = fresh.logical / kBlockSize;
  const auto promise = promises_.find(first + fresh.count - 1);
  if (promise != promises_.end()) {
    promised_ -= promise->second.count;
    promises_.erase(promise);
  }
  ours_.erase(first, fresh.count);
}

// --- giving back

std::vector<brick::Run> GrainPool::put_back(const std::vector<Piece>& pieces) {
  BlockRuns emptied;
  for (const Piece& piece : pieces) {
    for_each_block(piece.logical, piece.length, [&](uint64_t block, GrainRange range) {
      CHECK(ours_.contains(block));
      change(block, range, [&](BlockGrains& grains) { grains.give_back(range, piece.clean); });
      if (shared_.at(block).used_count() == 0) emptied.insert(block, 1);
    });
  }
  return drop_emptied(emptied);
}

std::vector<brick::Run> GrainPool::free(uint64_t logical, uint64_t length, SteadyTime rested) {
  BlockRuns emptied;
  for_each_block(logical, length, [&](uint64_t block, GrainRange range) {
    CHECK(ours_.contains(block));
    if (range.count == kGrainsPerBlock) {
      CHECK(!shared_.contains(block));
      emptied.insert(block, 1);
      return;
    }
    change(block, range, [&](BlockGrains& grains) { grains.rest(range); });
    rest_.push_back({rested, block, range});
    if (shared_.at(block).used_count() == 0) emptied.insert(block, 1);
  });
  return drop_emptied(emptied);
}

void GrainPool::wake(SteadyTime now) {
  for (; !rest_.empty() && rest_.front().until <= now; rest_.pop_front()) {
    const auto& [until, block, range] = rest_.front();
    // A block that became empty is gone, and its number never comes back.
    if (!shared_.contains(block)) continue;
    change(block, range, [&range = range](BlockGrains& grains) { grains.wake(range); });
  }
}

std::optional<Piece> GrainPool::take_dirty(uint64_t grains) {
  if (dirty_.empty() || grains == 0) return std::nullopt;
  const Run run = *dirty_.rbegin();
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(run.count, grains));
  zeroing_ += count;
  return take_run(run.block, {run.first, count});
}

std::vector<brick::Run> GrainPool::zeroed(const Piece& piece) {
  zeroing_ -= piece.length / kGrainSize;
  return put_back({piece});
}

std::vector<brick::Run> GrainPool::drop_emptied(const BlockRuns& emptied) {
  std::vector<brick::Run> runs = emptied.without({});
  for (const brick::Run& run : runs) {
    const uint64_t first = run.logical / kBlockSize;
    for (uint64_t block = first; block < first + run.count; ++block) drop(block);
    ours_.erase(first, run.count);
  }
  return runs;
}

void GrainPool::drop(uint64_t block) {
  const auto at = shared_.find(block);
  if (at == shared_.end()) return;
  index(block, at->second, {0, kGrainsPerBlock}, false);
  free_in_blocks_ -= at->second.free_count();
  resting_ -= at->second.resting_count();
  shared_.erase(at);
}

}  // namespace pnfsrdma::mds
