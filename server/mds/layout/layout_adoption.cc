// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_adoption.h"

#include <algorithm>
#include <utility>

#include "shared/base/join.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

LayoutAdoption::LayoutAdoption(EventLoop& loop, const Clock& clock, Namespace& names, const BrickList& list,
                               BrickSet& bricks, LayoutTable& table, Layouts& layouts, LayoutRecords& records)
    : loop_(loop),
      clock_(clock),
      names_(names),
      list_(list),
      bricks_(bricks),
      table_(table),
      layouts_(layouts),
      records_(records) {}

Result<> LayoutAdoption::begin(uint64_t run, const Knows& knows) {
  TRY_ASSIGN(LayoutRecords::Loaded loaded, records_.load(run));
  size_t kept = 0;
  size_t ended = 0;
  for (RecordedLayout& layout : loaded.layouts) {
    // Its session at each brick is closed like that of any stranger. Or only a recall has put it on record, and no
    // answer has told of anything in it.
    const bool told = !layout.complete || !layout.grants.empty() || !layout.holes.empty();
    if (!told || !knows(layout.client)) {
      records_.forget(layout);
      continue;
    }
    // On record they lie by their numbers, which are random. A layout has them by offset: each comes behind the last.
    std::ranges::sort(layout.grants, {}, [](const HeldGrant& grant) { return grant.file.begin; });
    if (enter(layout)) {
      ++kept;
      continue;
    }
    ++ended;
    layouts_.revoke_layout(layout.client, layout.inode, [](std::optional<size_t>) {});
  }
  if (kept + ended > 0) log_info("layouts", "layouts-kept layouts={} void={}", kept, ended);
  // An older program has closed all sessions, and may have opened new ones with other tickets.
  return bricks_.keep_sessions([&](uint64_t client) { return loaded.believed && knows(client); });
}

// False: what is on record is not all that the client holds.
bool LayoutAdoption::enter(const RecordedLayout& recorded) {
  HeldLayout& layout = table_.add(recorded.inode, recorded.client, recorded.other);
  layout.set_granted(clock_.now());
  layout.set_handle(recorded.export_id, recorded.generation, recorded.old_handle);
  layout.resume(recorded.seqid, recorded.newest_recall, recorded.end_token);
  bool complete = recorded.complete && holes_are_there(recorded);
  for (const ByteRange& hole : recorded.holes) layout.add_hole(hole);
  for (const HeldGrant& grant : recorded.grants) {
    if (list_.brick_of(grant.logical) == kNoBrick) {
      complete = false;
      continue;
    }
    table_.add_grant(layout, grant);
  }
  return complete;
}

// Nobody who reads zeros there is asked any more: memory may have come while its record could not be erased, or
// his recall was under way.
bool LayoutAdoption::holes_are_there(const RecordedLayout& recorded) {
  Extents extents(names_.store());
  return std::ranges::all_of(recorded.holes, [&](const ByteRange& hole) {
    const auto memory = extents.overlapping(recorded.inode, hole.begin, hole.length(), 1);
    return memory && memory->empty();
  });
}

// One client's grants at one brick.
struct LayoutAdoption::Matching {
  BrickNumber brick = kNoBrick;
  brick::SessionEntry session;
  std::vector<brick::Grant> listed;  // by their numbers
  std::vector<bool> named;           // a record is about this one
  uint64_t file = 0;                 // up to this one they have been looked at
  std::function<void(Orphans)> done;
};

void LayoutAdoption::adopt(BrickNumber brick, const brick::SessionEntry& session,
                           std::vector<brick::Grant> listed, std::function<void(Orphans)> done) {
  auto work = std::make_shared<Matching>();
  work->brick = brick;
  work->session = session;
  work->listed = std::move(listed);
  work->named.resize(work->listed.size());
  work->done = std::move(done);
  ++counts_[brick].sessions;
  match_slice(work);
}

// What leaves a layout between two slices is withdrawn by whoever takes it out (BrickDevice::withdraw).
void LayoutAdoption::match_slice(const std::shared_ptr<Matching>& work) {
  const EventLoop::Step step(loop_, "adopt-grants", work->session.client);
  size_t left = kLayoutsPerSlice;
  for (const uint64_t inode : table_.files_of_client(work->session.client, left, work->file)) {
    if (left == 0) break;
    work->file = inode;
    HeldLayout* const layout = table_.find(inode, work->session.client);
    left -= std::min(left, cost_of(layout));
    match(*layout, *work);
  }
  if (left == 0) return loop_.post(lifetime_.guard([this, work] { match_slice(work); }));
  Orphans orphans;
  for (size_t i = 0; i < work->listed.size(); ++i) {
    if (!work->named[i]) orphans.push_back(work->listed[i].grant);
  }
  counts_[work->brick].withdrawn += orphans.size();
  std::exchange(work->done, nullptr)(std::move(orphans));
}

void LayoutAdoption::match(HeldLayout& layout, Matching& work) {
  layout.for_each_unconfirmed([&](HeldGrant& grant) {
    const auto found = std::ranges::lower_bound(work.listed, grant.grant, {}, &brick::Grant::grant);
    if (found == work.listed.end() || bricks_.at(grant.logical).number() != work.brick) return;
    const auto at = static_cast<size_t>(found - work.listed.begin());
    const brick::Grant& there = *found;
    if (work.named[at] || there.grant != grant.grant || there.logical != grant.logical ||
        there.length != grant.file.length() || there.writable != grant.writable)
      return;
    grant.confirmed = true;
    // A later connection than this, and the client looks the handle up in its hello.
    grant.connection = work.session.connection;
    grant.handle = there.handle;
    grant.address = there.address;
    ++counts_[work.brick].adopted;
    work.named[at] = true;
  });
}

size_t LayoutAdoption::cost_of(const HeldLayout* layout) {
  return 1 + (layout == nullptr ? 0 : layout->grants().size() / kGrantsAsALayout);
}

struct LayoutAdoption::Sweep {
  BrickNumber brick = kNoBrick;
  std::vector<uint64_t> clients;  // the last one's files are being looked at
  uint64_t file = 0;
  Join ended;
};

void LayoutAdoption::end(BrickNumber brick, std::function<void()> done) {
  const auto tell = [this, brick, done = std::move(done)] {
    const Counts counts = counts_[brick];
    if (counts.sessions + counts.layouts_void > 0) {
      log_info("layouts", "grants-adopted brick={} sessions={} grants={} withdrawn={} layouts-void={}", brick,
               counts.sessions, counts.adopted, counts.withdrawn, counts.layouts_void);
    }
    counts_.erase(brick);
    done();
  };
  sweep_slice(std::make_shared<Sweep>(Sweep{brick, table_.clients(), 0, Join(tell)}));
}

void LayoutAdoption::sweep_slice(const std::shared_ptr<Sweep>& work) {
  const EventLoop::Step step(loop_, "end-void-layouts");
  for (size_t left = kLayoutsPerSlice; !work->clients.empty();) {
    const uint64_t client = work->clients.back();
    const std::vector<uint64_t> files = table_.files_of_client(client, left, work->file);
    for (const uint64_t inode : files) {
      if (left == 0) break;
      work->file = inode;
      const HeldLayout* layout = table_.find(inode, client);
      left -= std::min(left, cost_of(layout));
      if (layout == nullptr || !misses_grant(*layout, work->brick)) continue;
      ++counts_[work->brick].layouts_void;
      layouts_.revoke_layout(client, inode, [end = work->ended.part()](std::optional<size_t>) { end(); });
    }
    if (left == 0) return loop_.post(lifetime_.guard([this, work] { sweep_slice(work); }));
    work->clients.pop_back();
    work->file = 0;
  }
  work->ended.end();
}

bool LayoutAdoption::misses_grant(const HeldLayout& layout, BrickNumber brick) const {
  return std::ranges::any_of(layout.grants(), [&](const HeldGrant& grant) {
    return !grant.confirmed && bricks_.at(grant.logical).number() == brick;
  });
}

}  // namespace pnfsrdma::mds
