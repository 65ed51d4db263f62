// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/layout_records.h"
#include "server/mds/layout/layouts.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// What a start of the daemon does with the layouts of the run before. All on record are in the table before
// anybody is served, so that they conflict; each brick then says which grants it has. Those that match a record in
// every respect stay, others are withdrawn, and a layout of which one grant is missing is revoked. A brick is not
// ready before that, so none of its memory moves. Control loop only.
class LayoutAdoption {
 public:
  // Whether a client of the last run is still one.
  using Knows = std::function<bool(uint64_t client)>;
  using Orphans = std::vector<uint64_t>;  // numbers of grants

  LayoutAdoption(EventLoop& loop, const Clock& clock, Namespace& names, const BrickList& list,
                 BrickSet& bricks, LayoutTable& table, Layouts& layouts, LayoutRecords& records);
  LayoutAdoption(const LayoutAdoption&) = delete;
  LayoutAdoption& operator=(const LayoutAdoption&) = delete;

  // Before the loop runs. `run`: BootRecord::boot_count. Blocks.
  Result<> begin(uint64_t run, const Knows& knows);
  // What a brick has for a client on its connection of this number, by the numbers of the grants. `done` with
  // those that are to be withdrawn.
  void adopt(BrickNumber brick, const brick::SessionEntry& session, std::vector<brick::Grant> listed,
             std::function<void(Orphans)> done);
  // It has told of all clients. `done` when what is void now has ended.
  void end(BrickNumber brick, std::function<void()> done);

 private:
  struct Matching;
  struct Sweep;
  struct Counts {
    size_t sessions = 0, adopted = 0, withdrawn = 0, layouts_void = 0;
  };

  bool enter(const RecordedLayout& recorded);
  bool holes_are_there(const RecordedLayout& recorded);
  void match_slice(const std::shared_ptr<Matching>& work);
  void match(HeldLayout& layout, Matching& work);
  void sweep_slice(const std::shared_ptr<Sweep>& work);
  // As one of kLayoutsPerSlice.
  static size_t cost_of(const HeldLayout* layout);
  bool misses_grant(const HeldLayout& layout, BrickNumber brick) const;

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  const BrickList& list_;
  BrickSet& bricks_;
  LayoutTable& table_;
  Layouts& layouts_;
  LayoutRecords& records_;
  std::map<BrickNumber, Counts> counts_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
