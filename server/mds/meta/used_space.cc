// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/used_space.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/shared_runs.h"

namespace pnfsrdma::mds {
namespace {

bool is_whole_grains(const LogicalRange& range) {
  return range.logical % kGrainSize == 0 && range.length % kGrainSize == 0 && range.end() > range.logical;
}

std::unexpected<Error> stopped_reading() {
  return fail(ECANCELED, "reading the extents was stopped");
}

Result<std::vector<LogicalRange>> read_ranges(KeyValueStore& store, const std::function<bool()>& stopped) {
  std::vector<LogicalRange> ranges;
  bool whole = true;
  TRY(Extents(store).scan([&](InodeId, const Extent& extent) {
    ranges.push_back({extent.logical, extent.length});
    whole = !stopped();
    return whole;
  }));
  if (!whole) return stopped_reading();
  TRY_ASSIGN(const std::vector<DeadRun> dead, DeadMemory(store).page(0));
  for (const DeadRun& run : dead) ranges.push_back(run.memory);
  std::ranges::sort(ranges);
  return ranges;
}

// Sorted ranges without what an earlier one has. EUCLEAN where several have it and it is not on record as shared.
Result<> name_once(KeyValueStore& store, std::vector<LogicalRange>& ranges) {
  SharedRuns shared(store);
  uint64_t end = 0;
  for (LogicalRange& range : ranges) {
    const auto place = [&] { return " at logical address " + std::to_string(range.logical); };
    if (!is_whole_grains(range)) return fail(EUCLEAN, "an extent is not whole grains" + place());
    const uint64_t known = std::clamp(end, range.logical, range.end());
    const LogicalRange again{range.logical, known - range.logical};
    if (again.length > 0) {
      TRY_ASSIGN(const std::vector<LogicalRange> parts, shared.within(again));
      if (parts != std::vector{again}) return fail(EUCLEAN, "two extents have the same place" + place());
    }
    end = std::max(end, range.end());
    range = {known, range.end() - known};
  }
  std::erase_if(ranges, [](const LogicalRange& range) { return range.length == 0; });
  return {};
}

}  // namespace

Result<UsedSpace> read_used_space(KeyValueStore& store, const std::vector<BrickNumber>& by_zone,
                                  const std::function<bool()>& stopped) {
  TRY_ASSIGN(std::vector<LogicalRange> ranges, read_ranges(store, stopped));
  TRY(name_once(store, ranges));
  const auto brick_of = [&](const LogicalRange& range) {
    const uint64_t zone = zone_of(range.logical);
    return zone < by_zone.size() ? by_zone[zone] : kNoBrick;
  };
  UsedSpace used;
  for (auto from = ranges.begin(); from != ranges.end();) {
    const BrickNumber brick = brick_of(*from);
    if (brick == kNoBrick) {
      return fail(EUCLEAN,
                  "no brick is known for the extent at logical address " + std::to_string(from->logical));
    }
    const auto to =
        std::find_if(from, ranges.end(), [&](const LogicalRange& range) { return brick_of(range) != brick; });
    if (stopped()) return stopped_reading();
    used[brick].use({from, to});
    from = to;
  }
  return used;
}

}  // namespace pnfsrdma::mds
