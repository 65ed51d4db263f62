// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/block_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>

#include "shared/base/check.h"

namespace pnfsrdma::brick {
namespace {

constexpr Milliseconds kRest{kQuarantineMs};

bool is_empty(const format::Record& record) {
  return record == format::Record{};
}

bool is_whole(const format::Record& record, uint64_t block, const std::array<std::byte, 16>& uuid) {
  return format::is_known(record.state) && record.checksum == format::record_checksum(record, block, uuid);
}

format::Entry load_entry(ByteSpan table, uint64_t block) {
  format::Entry entry;
  std::memcpy(&entry, table.data() + block * sizeof entry, sizeof entry);
  return entry;
}

bool is_in_use(std::optional<format::State> state) {
  return state == format::State::kAllocated || state == format::State::kParked;
}

}  // namespace

EntryReading read_entry(const format::Entry& entry, uint64_t block, const std::array<std::byte, 16>& uuid) {
  EntryReading reading;
  for (unsigned half = 0; half < entry.halves.size(); ++half) {
    const format::Record& record = entry.halves[half];
    if (!is_whole(record, block, uuid)) {
      reading.torn |= !is_empty(record);
    } else if (!reading.half || record.generation > reading.record.generation) {
      reading.half = half;
      reading.record = record;
    }
  }
  return reading;
}

Result<> BlockTable::write_new(MutableByteSpan table, pmem::Persistence& persistence,
                               const Geometry& geometry, format::State state) {
  CHECK(table.size() == geometry.block_count * sizeof(format::Entry));
  for (uint64_t block = 0; block < geometry.block_count; ++block) {
    format::Entry entry{};
    format::Record& record = entry.halves[0];
    record.generation = 1;
    record.state = static_cast<uint32_t>(state);
    record.checksum = format::record_checksum(record, block, geometry.uuid);
    persistence.copy(table.data() + block * sizeof entry, std::as_bytes(std::span(&entry, 1)));
  }
  return persistence.persist(table);
}

BlockTable::BlockTable(MutableByteSpan table, pmem::Persistence& persistence, const Geometry& geometry,
                       SteadyTime now)
    : table_(table), persistence_(persistence), geometry_(geometry), blocks_(geometry.block_count) {
  CHECK(table.size() == geometry.block_count * sizeof(format::Entry));
  scan(now);
}

void BlockTable::scan(SteadyTime now) {
  std::set<uint64_t> contested;
  for (uint64_t number = 0; number < blocks_.size(); ++number) {
    const EntryReading reading = read_entry(load_entry(table_, number), number, geometry_.uuid);
    if (!reading.half) continue;
    Block& block = blocks_[number];
    block = {reading.record.logical,
             reading.record.generation,
             reading.record.owner,
             0,
             static_cast<uint8_t>(*reading.half),
             static_cast<format::State>(reading.record.state)};
    if (is_in_use(block.state) && !index_.emplace(block.logical, number).second)
      contested.insert(block.logical);
  }
  // Two blocks for one address: nobody can say which is right, so neither is used.
  for (Block& block : blocks_) {
    if (is_in_use(block.state) && contested.contains(block.logical)) block.state.reset();
  }
  for (const uint64_t logical : contested) index_.erase(logical);
  for (uint64_t number = 0; number < blocks_.size(); ++number) adopt(number, now);
}

void BlockTable::adopt(uint64_t block, SteadyTime now) {
  ++*count_of(blocks_[block].state);
  if (blocks_[block].state == format::State::kFreeClean) clean_.insert(block);
  if (blocks_[block].state == format::State::kFreeDirty) resting_.push_back({block, now + kRest});
}

uint64_t* BlockTable::count_of(std::optional<format::State> state) {
  if (!state) return &counts_.damaged;
  switch (*state) {
    case format::State::kFreeDirty:
      return &counts_.dirty;
    case format::State::kFreeClean:
      return &counts_.clean;
    case format::State::kAllocated:
      return &counts_.allocated;
    case format::State::kParked:
      return &counts_.parked;
  }
  return &counts_.damaged;
}

// The older half gets the new record; the other one stays whole until the next update, which waits for our
// flush.
void BlockTable::store(uint64_t number, format::State state, uint64_t logical, uint64_t owner) {
  Block& block = blocks_[number];
  --*count_of(block.state);
  block = {logical, block.generation + 1, owner, block.pins, static_cast<uint8_t>(block.half ^ 1), state};
  ++*count_of(block.state);

  format::Record record{logical, owner, block.generation, static_cast<uint32_t>(state), 0};
  record.checksum = format::record_checksum(record, number, geometry_.uuid);
  std::byte* place = table_.data() + number * sizeof(format::Entry) + block.half * sizeof record;
  persistence_.copy(place, std::as_bytes(std::span(&record, 1)));

  // Neighbouring lines become one range: one flush for a contiguous allocation.
  std::byte* line = table_.data() + number * sizeof(format::Entry);
  if (!touched_.empty() && touched_.back().data() + touched_.back().size() == line) {
    touched_.back() = {touched_.back().data(), touched_.back().size() + sizeof(format::Entry)};
  } else {
    touched_.push_back({line, sizeof(format::Entry)});
  }
}

std::vector<ByteSpan> BlockTable::take_touched() {
  return std::exchange(touched_, {});
}

bool BlockTable::valid(const Run& run) const {
  const uint64_t size = geometry_.block_size;
  return run.count > 0 && run.logical % size == 0 && run.count <= blocks_.size() &&
         run.logical <= std::numeric_limits<uint64_t>::max() - run.count * size;
}

bool BlockTable::any_taken(uint64_t logical, uint64_t count) const {
  const auto first = index_.lower_bound(logical);
  return first != index_.end() && first->first - logical < count * geometry_.block_size;
}

Status BlockTable::availability(uint64_t count) const {
  if (count <= clean_.size()) return Status::kOk;
  return count <= counts_.free() ? Status::kTryLater : Status::kNoSpace;
}

std::expected<std::vector<Run>, Status> BlockTable::alloc(const AllocArguments& arguments) {
  if (arguments.count > blocks_.size()) return std::unexpected(Status::kNoSpace);
  if (!valid({arguments.logical, arguments.count})) return std::unexpected(Status::kInvalid);
  if (any_taken(arguments.logical, arguments.count)) return std::unexpected(Status::kExists);
  if (const Status status = availability(arguments.count); status != Status::kOk)
    return std::unexpected(status);

  std::vector<PhysicalRun> taken = clean_.take(arguments.count, arguments.contiguous);
  if (taken.size() > kRunsMax) {
    // More pieces than one answer can name: the caller asks for less at a time.
    for (const PhysicalRun& run : taken) {
      for (uint64_t i = 0; i < run.count; ++i) clean_.insert(run.first + i);
    }
    return std::unexpected(Status::kLimit);
  }
  std::vector<Run> runs;
  uint64_t logical = arguments.logical;
  for (const PhysicalRun& run : taken) {
    runs.push_back({logical, run.count});
    for (uint64_t i = 0; i < run.count; ++i, logical += geometry_.block_size) {
      index_.emplace(logical, run.first + i);
      store(run.first + i, format::State::kAllocated, logical, arguments.epoch);
    }
  }
  return runs;
}

std::vector<uint64_t> BlockTable::blocks_of(const Run& run) const {
  std::vector<uint64_t> blocks;
  auto at = index_.find(run.logical);
  for (uint64_t i = 0; i < run.count; ++i, ++at) blocks.push_back(at->second);
  return blocks;
}

Status BlockTable::check_runs(const std::vector<Run>& runs, bool parked_too) const {
  if (runs.empty()) return Status::kInvalid;
  if (!std::ranges::all_of(runs, [this](const Run& run) { return valid(run); })) return Status::kInvalid;
  // Named twice in one call would be freed twice.
  std::vector<Run> sorted = runs;
  std::ranges::sort(sorted, {}, &Run::logical);
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].logical - sorted[i - 1].logical < sorted[i - 1].count * geometry_.block_size)
      return Status::kInvalid;
  }
  for (const Run& run : runs) {
    auto at = index_.find(run.logical);
    for (uint64_t i = 0; i < run.count; ++i, ++at) {
      if (at == index_.end() || at->first != run.logical + i * geometry_.block_size) return Status::kNotFound;
      const Block& block = blocks_[at->second];
      if (!parked_too && block.state != format::State::kAllocated) return Status::kNotFound;
      if (block.pins > 0) return Status::kBusy;
    }
  }
  return Status::kOk;
}

Status BlockTable::free(const std::vector<Run>& runs, SteadyTime now) {
  if (const Status status = check_runs(runs, true); status != Status::kOk) return status;
  for (const Run& run : runs) {
    for (const uint64_t block : blocks_of(run)) {
      index_.erase(blocks_[block].logical);
      store(block, format::State::kFreeDirty, 0, 0);
      resting_.push_back({block, now + kRest});
    }
  }
  return Status::kOk;
}

Status BlockTable::unmap(const std::vector<Run>& runs) {
  if (const Status status = check_runs(runs, false); status != Status::kOk) return status;
  for (const Run& run : runs) {
    for (const uint64_t block : blocks_of(run)) {
      store(block, format::State::kParked, blocks_[block].logical, blocks_[block].owner);
    }
  }
  return Status::kOk;
}

Status BlockTable::map(const MapArguments& arguments) {
  const Run from{arguments.from, arguments.count};
  if (!valid(from) || !valid({arguments.to, arguments.count})) return Status::kInvalid;
  if (const Status status = check_runs({from}, true); status != Status::kOk) return status;
  const std::vector<uint64_t> blocks = blocks_of(from);
  for (const uint64_t block : blocks) {
    if (blocks_[block].state != format::State::kParked) return Status::kNotFound;
  }
  // A move onto part of itself is refused like any taken address: half done, it would leave one address
  // twice.
  if (arguments.from != arguments.to && any_taken(arguments.to, arguments.count)) return Status::kExists;
  for (uint64_t i = 0; i < blocks.size(); ++i) {
    const uint64_t logical = arguments.to + i * geometry_.block_size;
    index_.erase(blocks_[blocks[i]].logical);
    index_.emplace(logical, blocks[i]);
    store(blocks[i], format::State::kAllocated, logical, arguments.epoch);
  }
  return Status::kOk;
}

Status BlockTable::erase(uint64_t first, uint64_t count, SteadyTime now) {
  if (count == 0 || first >= blocks_.size() || count > blocks_.size() - first) return Status::kInvalid;
  for (uint64_t number = first; number < first + count; ++number) {
    if (is_in_use(blocks_[number].state) || blocks_[number].pins > 0) return Status::kBusy;
  }
  for (uint64_t number = first; number < first + count; ++number) {
    if (blocks_[number].state == format::State::kFreeDirty) continue;  // rests, or is being zeroed
    if (blocks_[number].state == format::State::kFreeClean) clean_.remove(number);
    store(number, format::State::kFreeDirty, 0, 0);
    resting_.push_back({number, now + kRest});
  }
  return Status::kOk;
}

std::vector<Run> BlockTable::allocated_by(uint64_t epoch) const {
  std::vector<Run> runs;
  for (const auto& [logical, number] : index_) {
    if (blocks_[number].owner != epoch) continue;
    const bool joins =
        !runs.empty() && runs.back().logical + runs.back().count * geometry_.block_size == logical;
    joins ? static_cast<void>(++runs.back().count) : runs.push_back({logical, 1});
  }
  return runs;
}

uint64_t BlockTable::free_address(uint64_t count) const {
  const uint64_t size = geometry_.block_size;
  uint64_t at = 0;
  for (const auto& [logical, number] : index_) {
    if ((logical - at) / size >= count) break;
    at = logical + size;
  }
  return at;
}

std::expected<std::vector<Piece>, Status> BlockTable::resolve(uint64_t logical, uint64_t length) const {
  if (length == 0 || logical > std::numeric_limits<uint64_t>::max() - length)
    return std::unexpected(Status::kInvalid);
  const uint64_t size = geometry_.block_size;
  std::vector<Piece> pieces;
  for (uint64_t at = logical; at < logical + length;) {
    const auto found = index_.find(at - at % size);
    if (found == index_.end() || blocks_[found->second].state != format::State::kAllocated) {
      return std::unexpected(Status::kNotFound);
    }
    const uint64_t count = std::min(size - at % size, logical + length - at);
    const uint64_t physical = found->second * size + at % size;
    if (!pieces.empty() && pieces.back().physical + pieces.back().length == physical) {
      pieces.back().length += count;
    } else {
      pieces.push_back({at, physical, count});
    }
    at += count;
  }
  return pieces;
}

ListResult BlockTable::list(uint64_t from, uint32_t limit) const {
  ListResult result;
  const uint64_t size = geometry_.block_size;
  const size_t most = std::min<size_t>(limit, kRunsMax);
  uint64_t previous = 0;
  auto at = index_.lower_bound(from);
  for (; at != index_.end(); previous = at->second, ++at) {
    const bool parked = blocks_[at->second].state == format::State::kParked;
    if (!result.runs.empty()) {
      ListedRun& last = result.runs.back();
      const bool joins = last.run.logical + last.run.count * size == at->first && previous + 1 == at->second;
      if (joins && last.parked == parked) {
        ++last.run.count;
        continue;
      }
    }
    if (result.runs.size() == most) break;
    result.runs.push_back({{at->first, 1}, parked});
  }
  result.end = at == index_.end();
  return result;
}

SurveyResult BlockTable::survey(uint64_t from, uint32_t limit) const {
  SurveyResult result;
  const size_t most = std::min<size_t>(limit, kRunsMax);
  uint64_t at = from;
  for (; at < blocks_.size(); ++at) {
    const Block& block = blocks_[at];
    // The states of the medium are those of the protocol.
    const BlockUse use = block.state ? static_cast<BlockUse>(*block.state) : BlockUse::kDamaged;
    const uint64_t logical = is_in_use(block.state) ? block.logical : 0;
    if (!result.runs.empty()) {
      SurveyedRun& last = result.runs.back();
      const uint64_t next = last.logical + last.count * geometry_.block_size;
      if (last.use == use && (!is_in_use(block.state) || next == logical)) {
        ++last.count;
        continue;
      }
    }
    if (result.runs.size() == most) break;
    result.runs.push_back({at, 1, use, logical});
  }
  result.end = at >= blocks_.size();
  return result;
}

void BlockTable::pin(const Piece& piece) {
  const uint64_t last = (piece.physical + piece.length - 1) / geometry_.block_size;
  for (uint64_t block = piece.physical / geometry_.block_size; block <= last; ++block) ++blocks_[block].pins;
}

void BlockTable::unpin(const Piece& piece) {
  const uint64_t last = (piece.physical + piece.length - 1) / geometry_.block_size;
  for (uint64_t block = piece.physical / geometry_.block_size; block <= last; ++block) {
    CHECK(blocks_[block].pins > 0);
    --blocks_[block].pins;
  }
}

std::optional<uint64_t> BlockTable::next_to_zero(SteadyTime now) {
  if (resting_.empty() || resting_.front().ripe > now) return std::nullopt;
  const uint64_t block = resting_.front().block;
  resting_.pop_front();
  return block;
}

std::optional<SteadyTime> BlockTable::next_ripe() const {
  if (resting_.empty()) return std::nullopt;
  return resting_.front().ripe;
}

void BlockTable::mark_clean(uint64_t block) {
  CHECK(blocks_[block].state == format::State::kFreeDirty);
  store(block, format::State::kFreeClean, 0, 0);
  clean_.insert(block);
}

void BlockTable::give_up(uint64_t block, SteadyTime now) {
  resting_.push_back({block, now + kRest});
}

}  // namespace pnfsrdma::brick
