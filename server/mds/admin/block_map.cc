// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/block_map.h"

#include <algorithm>
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

// Sweeps over the logical blocks of one run, in which grants begin and end.
class Sweep {
 public:
  explicit Sweep(const std::vector<MappedGrant>& grants) : grants_(grants) {}

  void add(size_t grant) { active_.insert(grant); }
  void remove(size_t grant) { active_.erase(grant); }

  void append(uint64_t block, uint64_t count, std::vector<console::BlockRun>& runs) const {
    if (count == 0) return;
    console::BlockRun run{.block = block, .count = count, .state = console::BlockState::kData};
    for (const size_t number : active_) {
      const MappedGrant& grant = grants_[number];
      if (grant.writable) run.state = console::BlockState::kGrantedWrite;
      if (run.state == console::BlockState::kData) run.state = console::BlockState::kGrantedRead;
      if (run.grants.size() < console::kBlockGrantsMax) {
        run.grants.push_back({.client = grant.client,
                              .inode = grant.inode,
                              .writable = grant.writable,
                              .offset = grant.offset,
                              .length = grant.memory.length()});
      }
    }
    runs.push_back(std::move(run));
  }

 private:
  const std::vector<MappedGrant>& grants_;
  std::set<size_t> active_;
};

// Where the set of grants changes: at its block `grant` begins, or is no more.
struct Edge {
  uint64_t block = 0;
  bool begins = false;
  size_t grant = 0;
};

std::vector<Edge> edges_of(const std::vector<MappedGrant>& grants) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < grants.size(); ++i) {
    edges.push_back({block_of(grants[i].memory.begin), true, i});
    edges.push_back({block_of(grants[i].memory.end - 1) + 1, false, i});
  }
  std::ranges::sort(edges, {}, &Edge::block);
  return edges;
}

}  // namespace

std::vector<console::BlockRun> map_blocks(const std::vector<brick::SurveyedRun>& surveyed,
                                          std::vector<MappedGrant> grants) {
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
    edge->begins ? sweep.add(edge->grant) : sweep.remove(edge->grant);
    ++edge;
  };
  for (const size_t number : order) {
    const brick::SurveyedRun& run = surveyed[number];
    const uint64_t first = block_of(run.logical);
    uint64_t at = first;
    while (edge != edges.end() && edge->block <= first) pass();
    while (edge != edges.end() && edge->block < first + run.count) {
      sweep.append(run.first + (at - first), edge->block - at, runs);
      at = edge->block;
      while (edge != edges.end() && edge->block == at) pass();
    }
    sweep.append(run.first + (at - first), first + run.count - at, runs);
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
