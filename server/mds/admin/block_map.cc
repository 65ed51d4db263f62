// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/block_map.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pnfsrdma::mds {

namespace {

constexpr uint64_t block_of(uint64_t logical) {
  return logical / brick::kBlockSize;
}

bool in_use(brick::BlockUse use) {
  return use == brick::BlockUse::kAllocated || use == brick::BlockUse::kParked;
}

uint64_t bytes_of(const RangeSet& ranges) {
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges.all()) bytes += range.length();
  return bytes;
}

// Sweeps over the logical blocks of one run, in which grants begin and end.
class Sweep {
 public:
  explicit Sweep(const std::deque<MappedGrant>& grants) : grants_(grants) {}

  void add(size_t grant) { active_.insert(grant); }
  void remove(size_t grant) { active_.erase(grant); }

  // `logical`: the first of the blocks, as files name it.
  void append(uint64_t block, uint64_t count, uint64_t logical, std::vector<console::BlockRun>& runs) const {
    if (count == 0) return;
    console::BlockRun run{.block = block, .count = count, .state = console::BlockState::kData};
    const ByteRange whole{logical * brick::kBlockSize, (logical + count) * brick::kBlockSize};
    RangeSet reachable;
    RangeSet writable;
    std::map<std::pair<uint64_t, uint64_t>, RangeSet> by_layout;
    for (const size_t number : active_) {
      const MappedGrant& grant = grants_[number];
      const ByteRange part = intersection(grant.memory, whole);
      reachable.add(part);
      if (grant.writable) writable.add(part);
      if (grant.writable) run.state = console::BlockState::kGrantedWrite;
      if (run.state == console::BlockState::kData) run.state = console::BlockState::kGrantedRead;
      if (run.grants.size() >= console::kBlockGrantsMax) continue;
      RangeSet& layout = by_layout[{grant.client, grant.inode}];
      const uint64_t before = bytes_of(layout);
      layout.add(part);
      run.grants.push_back({.client = grant.client,
                            .client_name = grant.client_name,
                            .inode = grant.inode,
                            .path = grant.path,
                            .writable = grant.writable,
                            .offset = grant.offset,
                            .length = grant.memory.length(),
                            .bytes = bytes_of(layout) - before});
    }
    run.reach = {bytes_of(reachable), bytes_of(writable)};
    runs.push_back(std::move(run));
  }

 private:
  const std::deque<MappedGrant>& grants_;
  std::set<size_t> active_;
};

// Where a run ends: at its block `grant` begins, or is no more, or a block that it covers in part is over.
struct Edge {
  enum class Kind { kBegins, kEnds, kCuts };
  uint64_t block = 0;
  Kind kind = Kind::kCuts;
  size_t grant = 0;
};

std::vector<Edge> edges_of(const std::deque<MappedGrant>& grants) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < grants.size(); ++i) {
    const auto [begin, end] = grants[i].memory;
    edges.push_back({block_of(begin), Edge::Kind::kBegins, i});
    edges.push_back({block_of(end - 1) + 1, Edge::Kind::kEnds, i});
    // A block in part is a run of its own: its bytes are not spread over others.
    if (begin % brick::kBlockSize != 0) edges.push_back({block_of(begin) + 1, Edge::Kind::kCuts, i});
    if (end % brick::kBlockSize != 0) edges.push_back({block_of(end), Edge::Kind::kCuts, i});
  }
  std::ranges::sort(edges, {}, &Edge::block);
  return edges;
}

}  // namespace

std::vector<console::BlockRun> map_blocks(const std::vector<brick::SurveyedRun>& surveyed,
                                          std::deque<MappedGrant> grants) {
  std::erase_if(grants, [](const MappedGrant& grant) { return grant.memory.empty(); });
  const std::vector<Edge> edges = edges_of(grants);
  // Of the blocks in use, by logical address; each edge is then passed once.
  std::vector<size_t> order;
  for (size_t i = 0; i < surveyed.size(); ++i) {
    if (in_use(surveyed[i].use)) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](size_t i) { return surveyed[i].logical; });
  std::vector<console::BlockRun> runs;
  Sweep sweep(grants);
  auto edge = edges.begin();
  const auto pass = [&] {
    if (edge->kind == Edge::Kind::kBegins) sweep.add(edge->grant);
    if (edge->kind == Edge::Kind::kEnds) sweep.remove(edge->grant);
    ++edge;
  };
  for (const size_t number : order) {
    const brick::SurveyedRun& run = surveyed[number];
    const uint64_t first = block_of(run.logical);
    uint64_t at = first;
    while (edge != edges.end() && edge->block <= first) pass();
    while (edge != edges.end() && edge->block < first + run.count) {
      sweep.append(run.first + (at - first), edge->block - at, at, runs);
      at = edge->block;
      while (edge != edges.end() && edge->block == at) pass();
    }
    sweep.append(run.first + (at - first), first + run.count - at, at, runs);
  }
  for (const brick::SurveyedRun& run : surveyed) {
    if (!in_use(run.use))
      runs.push_back({.block = run.first, .count = run.count, .state = console::BlockState::kFree});
  }
  std::ranges::sort(runs, {}, &console::BlockRun::block);
  // Dirty and clean look the same.
  std::vector<console::BlockRun> joined;
  for (console::BlockRun& run : runs) {
    const bool joins = !joined.empty() && run.grants.empty() && joined.back().grants.empty() &&
                       joined.back().state == run.state &&
                       joined.back().block + joined.back().count == run.block;
    joins ? static_cast<void>(joined.back().count += run.count) : joined.push_back(std::move(run));
  }
  return joined;
}

}  // namespace pnfsrdma::mds
