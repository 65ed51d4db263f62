// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/grain_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

constexpr SteadyTime at(uint64_t ms) {
  return SteadyTime(Milliseconds(ms));
}

// A pool whose brick allocates at once.
class Grains : public ::testing::Test {
 protected:
  std::expected<Taken, Shortage> ask(const GrainRequest& request) {
    auto taken = pool_.take(request, next_block_);
    if (taken && taken->fresh) {
      EXPECT_LE(taken->fresh->count, request.hard + request.soft);
      next_block_ += taken->fresh->count;
      pool_.allocated(*taken->fresh);
    }
    return taken;
  }
  std::vector<Piece> take(uint64_t grains) { return ask({.hard = grains}).value().pieces; }
  // A block of `pool_` that is all used, but for every `step`th grain.
  uint64_t sieve(uint32_t step) {
    const uint64_t block = take(kGrainsPerBlock).front().logical;
    for (uint32_t grain = 0; grain < kGrainsPerBlock; grain += step)
      pool_.free(block + grain * kGrainSize, kGrainSize, at(0));
    pool_.wake(at(0));
    return block;
  }

  GrainPool pool_;
  uint64_t next_block_ = 1;
};

TEST_F(Grains, SmallFilesShareABlock) {
  pool_.set_capacity(2);
  const auto first = take(1);
  EXPECT_EQ(first, (std::vector<Piece>{{kBlockSize, kGrainSize, true}}));
  EXPECT_EQ(take(2), (std::vector<Piece>{{kBlockSize + kGrainSize, 2 * kGrainSize, true}}));
  EXPECT_EQ(pool_.ours().count(), 1u);
  EXPECT_EQ(pool_.unused_in_blocks(), kGrainsPerBlock - 3);
}

TEST_F(Grains, TheShortestRunThatIsLongEnoughIsTaken) {
  pool_.set_capacity(1);
  const uint64_t block = take(kGrainsPerBlock).front().logical;
  for (const auto& [first, count] : {std::pair{10, 9}, {50, 5}, {100, 7}})
    pool_.free(block + first * kGrainSize, count * kGrainSize, at(0));
  pool_.wake(at(0));
  EXPECT_EQ(take(6), (std::vector<Piece>{{block + 100 * kGrainSize, 6 * kGrainSize, false}}));
  EXPECT_EQ(take(5), (std::vector<Piece>{{block + 50 * kGrainSize, 5 * kGrainSize, false}}));
}

TEST_F(Grains, CleanGrainsAreTakenBeforeOthers) {
  pool_.set_capacity(1);
  const uint64_t block = take(4).front().logical;
  pool_.free(block, kGrainSize, at(0));
  pool_.wake(at(0));
  EXPECT_EQ(take(1), (std::vector<Piece>{{block + 4 * kGrainSize, kGrainSize, true}}));
}

TEST_F(Grains, ALargeFileIsOneRunOfBlocks) {
  pool_.set_capacity(64);
  take(1);
  const auto taken = ask({.hard = 10 * kGrainsPerBlock, .soft = 3 * kGrainsPerBlock + 100}).value();
  EXPECT_EQ(taken.fresh, (brick::Run{2 * kBlockSize, 13}));
  EXPECT_EQ(taken.pieces, (std::vector<Piece>{{2 * kBlockSize, 13 * kBlockSize, true}}));
}

TEST_F(Grains, AFileGrowsInPlace) {
  pool_.set_capacity(64);
  const Piece first = take(10).front();
  const uint64_t goal = first.logical + first.length;
  const auto more = ask({.hard = 20, .goal = goal}).value();
  EXPECT_EQ(more.pieces, (std::vector<Piece>{{goal, 20 * kGrainSize, true}}));
  const auto blocks = ask({.hard = 500, .soft = 3 * kGrainsPerBlock, .goal = goal + 20 * kGrainSize}).value();
  EXPECT_EQ(blocks.pieces.front().length, (kGrainsPerBlock - 30) * kGrainSize);
  EXPECT_EQ(blocks.pieces.back(), (Piece{2 * kBlockSize, 3 * kBlockSize, true}));
}

TEST_F(Grains, WhatIsSoftIsNotTakenInPieces) {
  pool_.set_capacity(1);
  sieve(2);
  EXPECT_EQ(ask({.hard = 1, .soft = 30}).value().pieces.size(), 1u);
  EXPECT_EQ(pool_.free_grains(), 255u);
}

TEST_F(Grains, FilesOf203KibFillTheBrick) {
  pool_.set_capacity(1023);
  uint64_t files = 0;
  while (ask({.hard = 51})) ++files;
  EXPECT_EQ(files, 1023 * kGrainsPerBlock / 51);
  EXPECT_LT(pool_.free_grains(), 51u);
}

TEST_F(Grains, ARequestIsSplitWhenNothingElseIsLeft) {
  pool_.set_capacity(1);
  sieve(16);  // 32 grains, each alone
  EXPECT_EQ(take(30).size(), 30u);
  EXPECT_EQ(ask({.hard = 3}).error(), Shortage::kFull);
  EXPECT_EQ(take(2).size(), 2u);
}

TEST_F(Grains, TooManyPiecesAreOnlyForWhoDoesNotRegisterThem) {
  pool_.set_capacity(1);
  sieve(4);
  EXPECT_EQ(ask({.hard = 65}).error(), Shortage::kScattered);
  EXPECT_EQ(pool_.free_grains(), 128u);
  EXPECT_EQ(take(64).size(), 64u);
  EXPECT_EQ(ask({.hard = 64, .scattered = true}).value().pieces.size(), 64u);
}

TEST_F(Grains, WhereLittleIsLeftAnyNumberOfPiecesWillDo) {
  pool_.set_capacity(20);
  take(19 * kGrainsPerBlock);
  sieve(4);
  EXPECT_EQ(take(100).size(), 100u);
}

TEST_F(Grains, WhatTheBrickHasNotAllocatedYetIsWaitedFor) {
  pool_.set_capacity(1);
  const Taken first = pool_.take({.hard = 1}, 1).value();
  EXPECT_EQ(ask({.hard = 1}).error(), Shortage::kWait);
  EXPECT_EQ(ask({.hard = kGrainsPerBlock}).error(), Shortage::kFull);
  pool_.allocated(*first.fresh);
  EXPECT_TRUE(ask({.hard = kGrainsPerBlock - 1}));
}

TEST_F(Grains, RefusedBlocksAreFreeAgain) {
  pool_.set_capacity(1);
  const Taken first = pool_.take({.hard = 1}, 1).value();
  pool_.refused(*first.fresh);
  EXPECT_EQ(pool_.free_grains(), kGrainsPerBlock);
  EXPECT_EQ(pool_.waiting_grains(), 0u);
}

TEST_F(Grains, AnEmptyBlockGoesBackToTheBrick) {
  pool_.set_capacity(1);
  const Piece first = take(1).front();
  const Piece second = take(1).front();
  EXPECT_TRUE(pool_.free(first.logical, first.length, at(100)).empty());
  EXPECT_EQ(pool_.free(second.logical, second.length, at(100)), (std::vector<brick::Run>{{kBlockSize, 1}}));
  pool_.wake(at(100));
  EXPECT_EQ(pool_.free_grains(), kGrainsPerBlock);
}

TEST_F(Grains, ALargeFileGivesWholeBlocksBackAndSharesTheRest) {
  pool_.set_capacity(4);
  const uint64_t base = take(4 * kGrainsPerBlock).front().logical;
  const auto runs =
      pool_.free(base + kBlockSize + 10 * kGrainSize, 3 * kBlockSize - 10 * kGrainSize, at(100));
  EXPECT_EQ(runs, (std::vector<brick::Run>{{base + 2 * kBlockSize, 2}}));
  EXPECT_EQ(pool_.ours().count(), 2u);
  EXPECT_EQ(pool_.waiting_grains(), kGrainsPerBlock - 10);
}

// Any extents: what they use is used, all else in their blocks is free and not clean, and nothing is given twice.
TEST(GrainPool, IsBuiltFromAnyExtents) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    const auto below = [&](uint64_t most) { return random.next_u64() % most; };
    constexpr uint64_t kFirst = 5 * kGrainsPerBlock;
    const uint64_t end = kFirst + (1 + below(40)) * kGrainsPerBlock;
    std::vector<LogicalRange> extents;
    std::set<uint64_t> blocks;
    std::vector<bool> used(end);
    const uint64_t longest = below(3) == 0 ? 4 * kGrainsPerBlock : 1 + below(40);
    for (uint64_t grain = kFirst + below(kGrainsPerBlock); grain < end;) {
      const uint64_t count = std::min(1 + below(longest), end - grain);
      extents.push_back({grain * kGrainSize, count * kGrainSize});
      for (uint64_t one = grain; one < grain + count; ++one) {
        used[one] = true;
        blocks.insert(one / kGrainsPerBlock);
      }
      grain += count + (below(2) == 0 ? 0 : below(2 * longest));
    }
    GrainPool pool;
    pool.set_capacity(blocks.size());
    pool.use(extents);
    const auto in_use = static_cast<uint64_t>(std::ranges::count(used, true));
    const uint64_t free = blocks.size() * kGrainsPerBlock - in_use;
    ASSERT_EQ(pool.ours().count(), blocks.size()) << "seed " << seed;
    ASSERT_EQ(pool.free_grains(), free) << "seed " << seed;
    if (free == 0) continue;
    const auto taken = pool.take({.hard = free, .scattered = true}, 0);
    ASSERT_TRUE(taken) << "seed " << seed;
    for (const Piece& piece : taken->pieces) {
      ASSERT_FALSE(piece.clean) << "seed " << seed;
      for (uint64_t one = piece.logical / kGrainSize; one < (piece.logical + piece.length) / kGrainSize;
           ++one) {
        ASSERT_TRUE(blocks.contains(one / kGrainsPerBlock)) << "seed " << seed;
        if (one >= used.size()) continue;
        ASSERT_FALSE(used[one]) << "seed " << seed << " grain " << one;
        used[one] = true;
      }
    }
    EXPECT_EQ(pool.free_grains(), 0U) << "seed " << seed;
  }
}

TEST_F(Grains, TheZeroerReachesEveryBlock) {
  pool_.set_capacity(2000);
  for (int block = 0; block < 2000; ++block) sieve(64);
  std::vector<Piece> dirty;
  while (const auto piece = pool_.take_dirty(512)) dirty.push_back(*piece);
  EXPECT_EQ(dirty.size(), 2000u * 8);
  EXPECT_EQ(ask({.hard = 1}).error(), Shortage::kWait);
  for (Piece& piece : dirty) {
    piece.clean = true;
    EXPECT_TRUE(pool_.zeroed(piece).empty());
  }
  EXPECT_FALSE(pool_.take_dirty(512));
  EXPECT_TRUE(take(1).front().clean);
}

TEST_F(Grains, ABlockThatEmptiedWhileItWasZeroedGoesBackToTheBrick) {
  pool_.set_capacity(1);
  const uint64_t block = take(kGrainsPerBlock).front().logical;
  pool_.free(block, kGrainSize, at(0));
  pool_.wake(at(0));
  const Piece dirty = pool_.take_dirty(1).value();
  EXPECT_TRUE(pool_.free(block + kGrainSize, kBlockSize - kGrainSize, at(0)).empty());
  EXPECT_EQ(pool_.zeroed(dirty), (std::vector<brick::Run>{{block, 1}}));
}

// Everything at random against one byte for each grain.
class GrainModel {
 public:
  static constexpr uint64_t kBlocks = 24;
  enum class State : uint8_t { kUsed, kClean, kDirty, kResting, kZeroing, kPromised };

  GrainModel() { pool_.set_capacity(kBlocks); }

  // By turns it fills up and is emptied to a half.
  void step() {
    const bool filling = steps_++ / 500 % 2 == 0;
    switch (some(10)) {
      case 0:
      case 1:
      case 2:
        return filling || pool_.free_grains() > kBlocks * kGrainsPerBlock / 2 ? take() : free();
      case 3:
        return take();
      case 4:
      case 5:
        return free();
      case 6:
        return answer_brick();
      case 7:
        return put_back();
      case 8:
        return zero();
      default:
        pool_.wake(at(now_ += 3));
        wake();
    }
  }

  void check() {
    uint64_t free = (kBlocks - blocks_.size()) * kGrainsPerBlock;
    uint64_t waiting = 0;
    uint64_t used = 0;
    for (const auto& [number, block] : blocks_) {
      used += block.count(State::kUsed);
      free += block.count(State::kClean) + block.count(State::kDirty);
      waiting += block.count(State::kResting) + block.count(State::kZeroing) + block.count(State::kPromised);
      ASSERT_GT(block.count(State::kUsed) + block.count(State::kZeroing) + block.count(State::kPromised), 0u)
          << "block " << number << " stayed empty";
    }
    ASSERT_EQ(pool_.free_grains(), free);
    ASSERT_EQ(pool_.waiting_grains(), waiting);
    ASSERT_EQ(pool_.ours().count(), blocks_.size());
    ASSERT_EQ(used + free + waiting, kBlocks * kGrainsPerBlock);
  }
  int taken = 0, full = 0, waited = 0, scattered = 0;

 private:
  struct Block {
    std::array<State, kGrainsPerBlock> states;
    std::array<uint32_t, 6> counts{};

    explicit Block(State state) {
      states.fill(state);
      counts[static_cast<size_t>(state)] = kGrainsPerBlock;
    }
    uint32_t count(State state) const { return counts[static_cast<size_t>(state)]; }
  };

  static uint64_t grains(const Piece& piece) { return piece.length / kGrainSize; }
  void set(const Piece& piece, State from, State to) {
    for (uint64_t at = piece.logical; at < piece.logical + piece.length; at += kGrainSize) {
      Block& block = blocks_.at(at / kBlockSize);
      State& state = block.states[at % kBlockSize / kGrainSize];
      ASSERT_EQ(state, from);
      state = to;
      --block.counts[static_cast<size_t>(from)];
      ++block.counts[static_cast<size_t>(to)];
    }
  }
  uint64_t some(uint64_t below) { return random_.next_u64() % below; }

  void take() {
    constexpr uint64_t kSizes[] = {1, 4, 51, 300, 2000};
    GrainRequest request{.hard = 1 + some(kSizes[some(5)]), .scattered = some(2) == 0};
    if (some(3) == 0) request.soft = some(3000);
    if (!owned_.empty() && some(2) == 0) {
      const Piece& neighbour = owned_[some(owned_.size())];
      request.goal = neighbour.logical + neighbour.length;
    }
    const uint64_t free = pool_.free_grains();
    const uint64_t soon = pool_.waiting_grains();
    const uint64_t blocks_needed = pool_.blocks_needed(request);
    const auto got = pool_.take(request, next_block_);
    if (!got) {
      ++(got.error() == Shortage::kFull ? full : got.error() == Shortage::kWait ? waited : scattered);
      ASSERT_EQ(request.hard > free, got.error() != Shortage::kScattered);
      ASSERT_EQ(request.hard > free + soon, got.error() == Shortage::kFull);
      // Only who registers what he gets, and only where there is more than a little.
      ASSERT_TRUE(got.error() != Shortage::kScattered ||
                  (!request.scattered && free * 20 >= kBlocks * kGrainsPerBlock &&
                   request.hard > GrainPool::kPiecesMax));
      return;
    }
    ++taken;
    ASSERT_LE(request.hard, free);
    if (got->fresh) {
      ASSERT_EQ(got->fresh->logical, next_block_ * kBlockSize);
      ASSERT_LE(got->fresh->count, blocks_needed);
      for (uint64_t i = 0; i < got->fresh->count; ++i) {
        blocks_.emplace(next_block_++, State::kPromised);
      }
    }
    uint64_t sum = 0;
    for (const Piece& piece : got->pieces) {
      sum += grains(piece);
      const bool fresh = got->fresh && piece.logical >= got->fresh->logical &&
                         piece.logical < got->fresh->logical + got->fresh->count * kBlockSize;
      set(piece, fresh ? State::kPromised : piece.clean ? State::kClean : State::kDirty, State::kUsed);
    }
    ASSERT_GE(sum, request.hard);
    ASSERT_LE(sum, request.hard + request.soft);
    if (got->fresh) {
      pending_.push_back(*got);
    } else {
      owned_.insert(owned_.end(), got->pieces.begin(), got->pieces.end());
    }
    if (got->fresh && some(2) == 0) answer_brick();
  }

  void answer_brick() {
    if (pending_.empty()) return;
    const Taken taken = pending_.back();
    pending_.pop_back();
    const uint64_t first = taken.fresh->logical / kBlockSize;
    if (some(4) > 0) {
      pool_.allocated(*taken.fresh);
      const Piece& last = taken.pieces.back();
      const uint64_t end = (first + taken.fresh->count) * kBlockSize;
      if (last.logical / kBlockSize == first + taken.fresh->count - 1) {
        const uint64_t rest = last.logical + last.length;
        set({rest, end - rest, true}, State::kPromised, State::kClean);
      }
      owned_.insert(owned_.end(), taken.pieces.begin(), taken.pieces.end());
      return;
    }
    pool_.refused(*taken.fresh);
    for (uint64_t block = first; block < first + taken.fresh->count; ++block) blocks_.erase(block);
    for (const Piece& piece : taken.pieces) {
      if (blocks_.contains(piece.logical / kBlockSize)) owned_.push_back(piece);
    }
  }

  std::optional<Piece> any_owned() {
    if (owned_.empty()) return std::nullopt;
    std::swap(owned_[some(owned_.size())], owned_.back());
    const Piece piece = owned_.back();
    owned_.pop_back();
    return piece;
  }
  void emptied(const std::vector<brick::Run>& runs) {
    for (const brick::Run& run : runs) {
      const uint64_t first = run.logical / kBlockSize;
      for (uint64_t number = first; number < first + run.count; ++number) {
        const Block& block = blocks_.at(number);
        ASSERT_EQ(block.count(State::kUsed) + block.count(State::kZeroing), 0u);
        blocks_.erase(number);
      }
    }
  }
  void free() {
    auto piece = any_owned();
    if (!piece) return;
    if (some(2) == 0 && grains(*piece) > 100) return punch(*piece);
    // Often only the end of it.
    const uint64_t keep = some(2) == 0 ? some(grains(*piece)) * kGrainSize : 0;
    if (keep > 0) owned_.push_back({piece->logical, keep, piece->clean});
    *piece = {piece->logical + keep, piece->length - keep, false};
    set(*piece, State::kUsed, State::kResting);
    resting_.push_back({now_ + 5, *piece});
    emptied(pool_.free(piece->logical, piece->length, at(now_ + 5)));
  }
  // Of a large piece, every second grain.
  void punch(const Piece& piece) {
    for (uint64_t at = piece.logical; at < piece.logical + piece.length; at += 2 * kGrainSize) {
      const Piece hole{at, kGrainSize, false};
      set(hole, State::kUsed, State::kResting);
      resting_.push_back({now_ + 5, hole});
      emptied(pool_.free(at, kGrainSize, SteadyTime(Milliseconds(now_ + 5))));
      if (at + kGrainSize < piece.logical + piece.length)
        owned_.push_back({at + kGrainSize, kGrainSize, false});
    }
  }
  void put_back() {
    auto piece = any_owned();
    if (!piece) return;
    piece->clean = some(2) == 0;
    set(*piece, State::kUsed, piece->clean ? State::kClean : State::kDirty);
    emptied(pool_.put_back({*piece}));
  }
  void wake() {
    std::erase_if(resting_, [&](const auto& entry) {
      if (entry.first > now_) return false;
      const Piece& piece = entry.second;
      for (uint64_t at = piece.logical; at < piece.logical + piece.length; at += kGrainSize) {
        if (blocks_.contains(at / kBlockSize)) set({at, kGrainSize, false}, State::kResting, State::kDirty);
      }
      return true;
    });
  }
  void zero() {
    if (!zeroing_.empty() && some(2) == 0) {
      Piece piece = zeroing_.back();
      zeroing_.pop_back();
      piece.clean = some(8) > 0;
      set(piece, State::kZeroing, piece.clean ? State::kClean : State::kDirty);
      return emptied(pool_.zeroed(piece));
    }
    if (const auto piece = pool_.take_dirty(1 + some(600))) {
      ASSERT_FALSE(piece->clean);
      set(*piece, State::kDirty, State::kZeroing);
      zeroing_.push_back(*piece);
    }
  }

  GrainPool pool_;
  SeededRandom random_{7};
  uint64_t steps_ = 0;
  uint64_t now_ = 0;
  uint64_t next_block_ = 1;
  std::map<uint64_t, Block> blocks_;
  std::vector<Piece> owned_;
  std::vector<Taken> pending_;
  std::vector<std::pair<uint64_t, Piece>> resting_;
  std::vector<Piece> zeroing_;
};

TEST(GrainPool, GivesWhatIsFreeAndNothingTwice) {
  GrainModel model;
  for (int step = 0; step < 100'000 && !::testing::Test::HasFatalFailure(); ++step) {
    model.step();
    model.check();
  }
  // All of it was tried.
  EXPECT_GT(model.taken, 10'000);
  EXPECT_GT(model.full, 1000);
  EXPECT_GT(model.waited, 1000);
  EXPECT_GT(model.scattered, 0);
}

}  // namespace
}  // namespace pnfsrdma::mds
