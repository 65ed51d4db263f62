// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/dead_memory.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

Result<DeadRun> read_run(std::string_view key, std::string_view value) {
  const uint64_t end = number_of_key(kDeadTag, key).value_or(0);
  TRY_ASSIGN(const StoredDead stored, read_value<StoredDead>(value, "memory of a snapshot"));
  const bool sound =
      stored.length > 0 && stored.length <= end && stored.died < kSnapshotsEnd && stored.born < stored.died;
  if (!sound) return fail(EUCLEAN, "the metadata store has impossible memory of a snapshot");
  return DeadRun{{end - stored.length, stored.length}, stored.born, stored.died};
}

}  // namespace

void DeadMemory::put(Batch& batch, const DeadRun& run) {
  put_value(batch, number_key(kDeadTag, run.memory.end()), StoredDead{run.memory.length, run.born, run.died});
}

void DeadMemory::erase(Batch& batch, const DeadRun& run) {
  batch.erase(number_key(kDeadTag, run.memory.end()));
}

Result<std::vector<DeadRun>> DeadMemory::page(uint64_t from, size_t most) {
  return overlapping({from, UINT64_MAX - from}, most);
}

Result<std::vector<DeadRun>> DeadMemory::overlapping(const LogicalRange& memory, size_t most) {
  std::vector<DeadRun> found;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto run = read_run(key, value);
    if (!run) outcome = std::unexpected(run.error());
    if (!run || run->memory.logical >= memory.end()) return false;
    found.push_back(*run);
    return found.size() < most;
  };
  TRY(store_.scan(tag_prefix(kDeadTag), number_key(kDeadTag, memory.logical + 1), visit));
  TRY(outcome);
  return found;
}

Result<uint64_t> DeadMemory::bytes() {
  TRY_ASSIGN(const std::vector<DeadRun> all, page(0));
  uint64_t bytes = 0;
  for (const DeadRun& run : all) bytes += run.memory.length;
  return bytes;
}

Result<> Revival::prepare(const std::vector<LogicalRange>& memory) {
  if (memory.empty()) return {};
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const LogicalRange& part : memory) {
    begin = std::min(begin, part.logical);
    end = std::max(end, part.end());
  }
  const size_t most = 4 * memory.size() + 16;
  TRY_ASSIGN(std::vector<DeadRun> runs, dead_.overlapping({begin, end - begin}, most));
  if (runs.size() == most) return {};
  at_hand_ = std::move(runs);
  known_ = {begin, end - begin};
  return {};
}

Result<std::vector<DeadRun>> Revival::overlapping(const LogicalRange& memory) {
  std::vector<DeadRun> found;
  if (memory.logical >= known_.logical && memory.end() <= known_.end()) {
    auto at = std::ranges::upper_bound(at_hand_, memory.logical, {},
                                       [](const DeadRun& run) { return run.memory.end(); });
    for (; at != at_hand_.end() && at->memory.logical < memory.end(); ++at) found.push_back(*at);
  } else {
    TRY_ASSIGN(found, dead_.overlapping(memory, kRecordsMax));
  }
  looked_at_ += found.size();
  if (looked_at_ >= kRecordsMax) return fail(EFBIG, "memory of a snapshot in too many pieces");
  std::erase_if(found, [&](const DeadRun& run) { return pending_.contains(run.memory.end()); });
  for (auto at = pending_.upper_bound(memory.logical); at != pending_.end(); ++at) {
    if (at->second && at->second->memory.logical >= memory.end()) break;
    if (at->second) found.push_back(*at->second);
  }
  std::ranges::sort(found, {}, [](const DeadRun& run) { return run.memory.logical; });
  return found;
}

Result<std::vector<LogicalRange>> Revival::take(const LogicalRange& memory) {
  TRY_ASSIGN(const std::vector<DeadRun> runs, overlapping(memory));
  std::vector<LogicalRange> alive;
  uint64_t at = memory.logical;
  for (const DeadRun& run : runs) {
    const uint64_t begin = std::max(run.memory.logical, memory.logical);
    const uint64_t end = std::min(run.memory.end(), memory.end());
    if (begin > at) alive.push_back({at, begin - at});
    cut_out(run, {begin, end - begin});
    at = end;
  }
  if (memory.end() > at) alive.push_back({at, memory.end() - at});
  return alive;
}

// What is left at its ends stays on record.
void Revival::cut_out(const DeadRun& run, const LogicalRange& part) {
  bytes_ += part.length;
  pending_[run.memory.end()] = std::nullopt;
  const LogicalRange front{run.memory.logical, part.logical - run.memory.logical};
  const LogicalRange back{part.end(), run.memory.end() - part.end()};
  for (const LogicalRange& rest : {front, back}) {
    if (rest.length > 0) pending_[rest.end()] = DeadRun{rest, run.born, run.died};
  }
}

void Revival::write_to(Batch& batch) const {
  for (const auto& [end, run] : pending_) {
    if (run) {
      DeadMemory::put(batch, *run);
    } else {
      batch.erase(number_key(kDeadTag, end));
    }
  }
}

}  // namespace pnfsrdma::mds
