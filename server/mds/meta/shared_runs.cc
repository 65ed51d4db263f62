// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/shared_runs.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

// That one change of a range may touch, and all of a SharedChange together: they are made in one turn of the loop.
constexpr size_t kRecordsMax = 32'768;
constexpr size_t kRecordsOfAChange = 8 * kRecordsMax;

Result<SharedRun> read_run(uint64_t end, std::string_view value) {
  TRY_ASSIGN(const StoredShare stored, read_value<StoredShare>(value, "a shared run"));
  if (stored.length == 0 || stored.length > end || stored.names < 2)
    return fail(EUCLEAN, "the metadata store has an impossible shared run");
  return SharedRun{end - stored.length, stored.length, stored.names};
}

// The memory, cut where its number of names changes; what has no record has one.
std::vector<SharedRun> counted(const std::vector<SharedRun>& runs, const LogicalRange& memory) {
  std::vector<SharedRun> parts;
  uint64_t at = memory.logical;
  const auto append = [&](uint64_t end, uint64_t names) {
    if (end > at) parts.push_back({at, end - at, names});
    at = std::max(at, end);
  };
  for (const SharedRun& run : runs) {
    if (run.end() <= memory.logical || run.logical >= memory.end()) continue;
    append(run.logical, 1);
    append(std::min(run.end(), memory.end()), run.names);
  }
  append(memory.end(), 1);
  return parts;
}

// The parts of the run that are not in the memory.
std::vector<SharedRun> outside_of(const SharedRun& run, const LogicalRange& memory) {
  std::vector<SharedRun> parts;
  if (run.logical < memory.logical)
    parts.push_back({run.logical, std::min(run.end(), memory.logical) - run.logical, run.names});
  if (run.end() > memory.end()) {
    const uint64_t begin = std::max(run.logical, memory.end());
    parts.push_back({begin, run.end() - begin, run.names});
  }
  return parts;
}

}  // namespace

Result<std::vector<SharedRun>> SharedRuns::overlapping(const LogicalRange& memory, size_t most) {
  std::vector<SharedRun> found;
  if (memory.length == 0) return found;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto run = read_run(number_of_key(kShareTag, key).value_or(0), value);
    if (!run) outcome = std::unexpected(run.error());
    if (!run || run->logical >= memory.end()) return false;
    found.push_back(*run);
    return found.size() < most;
  };
  TRY(store_.scan(tag_prefix(kShareTag), number_key(kShareTag, memory.logical + 1), visit));
  TRY(outcome);
  return found;
}

Result<std::vector<LogicalRange>> SharedRuns::within(const LogicalRange& memory) {
  TRY_ASSIGN(std::vector<SharedRun> runs, overlapping(memory, kRecordsAtOnce));
  if (runs.size() == kRecordsAtOnce)
    runs.push_back({runs.back().end(), memory.end() - std::min(memory.end(), runs.back().end()), 2});
  std::vector<LogicalRange> parts;
  for (const SharedRun& run : runs) {
    const uint64_t begin = std::max(run.logical, memory.logical);
    const uint64_t end = std::min(run.end(), memory.end());
    if (end <= begin) continue;
    // Neighbours with different counts are one part.
    if (!parts.empty() && parts.back().end() == begin) {
      parts.back().length += end - begin;
    } else {
      parts.push_back({begin, end - begin});
    }
  }
  return parts;
}

// What overlaps the memory, and what touches it at its ends: that may be joined with it.
Result<std::vector<SharedRun>> SharedChange::touching(const LogicalRange& memory) {
  const uint64_t begin = memory.logical - std::min(memory.logical, kGrainSize);
  const uint64_t end = memory.end() + kGrainSize;
  const LogicalRange around{begin, end - begin};
  const bool known = begin >= known_.logical && end <= known_.end();
  TRY_ASSIGN(std::vector<SharedRun> found, known ? at_hand(around) : runs_.overlapping(around, kRecordsMax));
  looked_at_ += found.size();
  if (found.size() == kRecordsMax || looked_at_ > kRecordsOfAChange)
    return fail(EFBIG, "memory that is shared in too many pieces");
  std::erase_if(found, [&](const SharedRun& run) { return pending_.contains(run.end()); });
  for (auto at = pending_.upper_bound(begin); at != pending_.end(); ++at) {
    if (at->second && at->second->logical >= end) break;
    if (at->second) found.push_back(*at->second);
  }
  std::ranges::sort(found, {}, &SharedRun::logical);
  return found;
}

// Joined where the number of names is the same; what is named once needs no record.
void SharedChange::replace(const std::vector<SharedRun>& before, std::vector<SharedRun> after) {
  std::ranges::sort(after, {}, &SharedRun::logical);
  std::vector<SharedRun> joined;
  for (const SharedRun& run : after) {
    if (run.names < 2) continue;
    if (!joined.empty() && joined.back().end() == run.logical && joined.back().names == run.names) {
      joined.back().length += run.length;
    } else {
      joined.push_back(run);
    }
  }
  for (const SharedRun& run : before) pending_[run.end()] = std::nullopt;
  for (const SharedRun& run : joined) pending_[run.end()] = run;
}

// By one more or one less.
Result<std::vector<SharedRun>> SharedChange::change(const LogicalRange& memory, int64_t by) {
  TRY_ASSIGN(const std::vector<SharedRun> near, touching(memory));
  std::vector<SharedRun> parts = counted(near, memory);
  for (SharedRun& part : parts) part.names += static_cast<uint64_t>(by);
  std::vector<SharedRun> after = parts;
  for (const SharedRun& run : near) {
    for (const SharedRun& outside : outside_of(run, memory)) after.push_back(outside);
  }
  replace(near, std::move(after));
  return parts;
}

std::vector<SharedRun> SharedChange::at_hand(const LogicalRange& memory) const {
  std::vector<SharedRun> found;
  auto at = std::ranges::upper_bound(at_hand_, memory.logical, {}, &SharedRun::end);
  for (; at != at_hand_.end() && at->logical < memory.end(); ++at) found.push_back(*at);
  return found;
}

Result<> SharedChange::prepare(std::vector<LogicalRange> memory) {
  if (memory.empty()) return {};
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const LogicalRange& part : memory) {
    begin = std::min(begin, part.logical - std::min(part.logical, kGrainSize));
    end = std::max(end, part.end() + kGrainSize);
  }
  const size_t most = 4 * memory.size() + 16;
  TRY_ASSIGN(std::vector<SharedRun> runs, runs_.overlapping({begin, end - begin}, most));
  if (runs.size() == most) return {};
  at_hand_ = std::move(runs);
  known_ = {begin, end - begin};
  return {};
}

Result<> SharedChange::add_all(const std::vector<LogicalRange>& memory) {
  for (const LogicalRange& part : memory) TRY(add(part));
  return {};
}

Result<> SharedChange::add(const LogicalRange& memory) {
  TRY(change(memory, 1));
  return {};
}

Result<std::vector<LogicalRange>> SharedChange::drop(const LogicalRange& memory) {
  TRY_ASSIGN(const std::vector<SharedRun> parts, change(memory, -1));
  std::vector<LogicalRange> unnamed;
  for (const SharedRun& part : parts) {
    if (part.names == 0) unnamed.push_back({part.logical, part.length});
  }
  return unnamed;
}

void SharedChange::write_to(Batch& batch) const {
  for (const auto& [end, run] : pending_) {
    const std::string key = number_key(kShareTag, end);
    if (run) {
      put_value(batch, key, StoredShare{run->length, run->names});
    } else {
      batch.erase(key);
    }
  }
}

}  // namespace pnfsrdma::mds
