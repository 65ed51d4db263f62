// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/space.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

using brick::kBlockSize;

// Addresses are reserved in the store this many blocks (128 GiB) at a time; a restart skips what is left of
// them.
constexpr uint64_t kBlocksPerReservation = 65536;

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
  next_block_ = reserved_block_;
  return {};
}

void Space::used(GrainPool pool) {
  pool.set_capacity(pool_.capacity());
  pool_ = std::move(pool);
  reserved_block_ = std::max(reserved_block_, pool_.ours().end());
  next_block_ = reserved_block_;
}

bool Space::give_back(size_t most) {
  for (; most > 0 && !given_back_.empty(); --most) {
    const LogicalRange range = given_back_.front();
    given_back_.pop_front();
    pool_.free(range.logical, range.length, clock_.now() + Milliseconds(brick::kQuarantineMs));
  }
  known_ = given_back_.empty();
  return known_;
}

Result<> Space::check_unused() const {
  if (!known_) return fail(EBUSY, "what files have on the brick is still being read");
  if (used_blocks() > 0) return fail(EBUSY, "files or snapshots have data on the brick");
  return {};
}

uint64_t Space::used_blocks() const {
  return known_ ? pool_.ours().count() : pool_.capacity() - std::min(pool_.capacity(), presumed_free_);
}

uint64_t Space::unused_bytes() const {
  if (!known_) return std::min(pool_.capacity(), presumed_free_) * kBlockSize;
  return free_bytes() + pool_.waiting_grains() * kGrainSize;
}

Result<> Space::reserve_addresses(uint64_t count) {
  if (count >= kBlocksPerZone) return fail(ENOSPC, "more blocks at a time than a zone of addresses has");
  if (count > zone_end() - std::min(next_block_, zone_end())) TRY(enter_next_zone());
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

Result<Taken> Space::take(const GrainRequest& request) {
  if (!known_) return fail(EAGAIN, "what is in use is being read");
  pool_.wake(clock_.now());
  TRY(reserve_addresses(pool_.blocks_needed(request)));
  auto taken = pool_.take(request, next_block_);
  if (taken) {
    if (taken->fresh) next_block_ += taken->fresh->count;
    return std::move(*taken);
  }
  switch (taken.error()) {
    case Shortage::kWait:
      return fail(EAGAIN, "free memory rests, or is being zeroed");
    case Shortage::kScattered:
      return fail(EMLINK, "free memory is in too many pieces");
    case Shortage::kFull:
      break;
  }
  return fail(ENOSPC, "the brick is full");
}

void Space::lacks(const brick::Run& fresh) {
  pool_.refused(fresh);
  pool_.set_capacity(std::min(pool_.capacity(), pool_.ours().count() + fresh.count - 1));
}

std::vector<brick::Run> Space::free(uint64_t logical, uint64_t length) {
  if (!known_) {
    given_back_.push_back({logical, length});
    return {};
  }
  return pool_.free(logical, length, clock_.now() + Milliseconds(brick::kQuarantineMs));
}

std::optional<Piece> Space::take_dirty(uint64_t bytes) {
  if (!known_) return std::nullopt;
  pool_.wake(clock_.now());
  return pool_.take_dirty(bytes / kGrainSize);
}

SpaceDifference Space::compare(const std::vector<brick::Run>& listed, uint64_t from, uint64_t to,
                               size_t most) const {
  BlockRuns on_brick;
  for (const brick::Run& run : listed) on_brick.insert(run.logical / kBlockSize, run.count);
  const uint64_t first = from / kBlockSize;
  uint64_t end = to / kBlockSize;
  SpaceDifference difference{.leaked = {}, .missing = pool_.ours().without(on_brick, first, end, most)};
  if (difference.missing.size() == most) {
    const brick::Run& last = difference.missing.back();
    end = last.logical / kBlockSize + last.count;
  }
  difference.leaked = on_brick.without(pool_.ours(), first, end);
  return difference;
}

}  // namespace pnfsrdma::mds
