// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/dead_memory.h"

#include <cerrno>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

std::string key_of(const DeadRun& run) {
  return number_key(kDeadTag, run.died, run.memory.end());
}

Result<DeadRun> read_run(std::string_view key, std::string_view value) {
  const KeyNumbers place = numbers_of_key(kDeadTag, key).value_or(KeyNumbers{});
  TRY_ASSIGN(const StoredDead stored, read_value<StoredDead>(value, "memory of a snapshot"));
  const bool sound = stored.length > 0 && stored.length <= place.second && place.first < kSnapshotsEnd &&
                     stored.born < place.first;
  if (!sound) return fail(EUCLEAN, "the metadata store has impossible memory of a snapshot");
  return DeadRun{
      {place.second - stored.length, stored.length}, stored.born, static_cast<SnapshotNumber>(place.first)};
}

}  // namespace

void DeadMemory::put(Batch& batch, const DeadRun& run) {
  put_value(batch, key_of(run), StoredDead{run.memory.length, run.born});
}

void DeadMemory::erase(Batch& batch, const DeadRun& run) {
  batch.erase(key_of(run));
}

Result<std::vector<DeadRun>> DeadMemory::page(const Place& from, size_t most) {
  std::vector<DeadRun> found;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto run = read_run(key, value);
    if (run) found.push_back(*run);
    if (!run) outcome = std::unexpected(run.error());
    return run && found.size() < most;
  };
  TRY(store_.scan(tag_prefix(kDeadTag), number_key(kDeadTag, from.died, from.end + 1), visit));
  TRY(outcome);
  return found;
}

Result<uint64_t> DeadMemory::bytes() {
  TRY_ASSIGN(const std::vector<DeadRun> all, page({}));
  uint64_t bytes = 0;
  for (const DeadRun& run : all) bytes += run.memory.length;
  return bytes;
}

}  // namespace pnfsrdma::mds
