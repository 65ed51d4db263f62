// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/brick_list.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/shared_runs.h"
#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

bool is_whole_grains(const LogicalRange& range) {
  return range.logical % kGrainSize == 0 && range.length % kGrainSize == 0 && range.end() > range.logical;
}

}  // namespace

Result<std::unique_ptr<BrickList>> BrickList::open(KeyValueStore& store, const Clock& clock) {
  std::unique_ptr<BrickList> list(new BrickList(store, clock));
  TRY(list->read());
  return list;
}

Result<> BrickList::read() {
  TRY_ASSIGN(const std::vector<BrickRecord> records, records_.all());
  for (const BrickRecord& record : records) {
    enter(record);
    TRY_ASSIGN(members_.at(record.number).verifier, records_.verifier(record.number));
  }
  TRY_ASSIGN(verifier_changes_, records_.verifier_changes());
  TRY(read_extents());
  for (auto& [number, member] : members_) TRY(member.space->begin());
  return {};
}

// Before anything is served, so it must be quick: with a million extents 0.2 s, four fifths of it the scan.
Result<> BrickList::read_extents() {
  std::vector<LogicalRange> ranges;
  TRY(Extents(store_).scan([&](InodeId, const Extent& extent) {
    ranges.push_back({extent.logical, extent.length});
    return true;
  }));
  TRY_ASSIGN(const std::vector<DeadRun> dead, DeadMemory(store_).page(0));
  for (const DeadRun& run : dead) ranges.push_back(run.memory);
  std::ranges::sort(ranges);
  TRY(name_once(ranges));
  for (auto from = ranges.begin(); from != ranges.end();) {
    const BrickNumber brick = brick_of(from->logical);
    auto to = from;
    for (; to != ranges.end() && brick_of(to->logical) == brick; ++to) {
      if (brick == kNoBrick) {
        return fail(EUCLEAN,
                    "no brick is known for the extent at logical address " + std::to_string(to->logical));
      }
    }
    members_.at(brick).space->use({from, to});
    from = to;
  }
  return {};
}

// Sorted ranges without what an earlier one has. EUCLEAN where several have it and it is not on record as shared.
Result<> BrickList::name_once(std::vector<LogicalRange>& ranges) {
  SharedRuns shared(store_);
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

void BrickList::enter(const BrickRecord& record) {
  Space::Addresses addresses{.brick = record.number, .zones = record.zones};
  addresses.next_zone = [this, number = record.number] { return next_zone(number); };
  Member& member = members_[record.number];
  member = {record, std::make_unique<Space>(store_, clock_, std::move(addresses))};
  member.space->set_capacity(record.block_count);
  for (const uint32_t zone : record.zones) {
    if (zone >= by_zone_.size()) by_zone_.resize(zone + 1, kNoBrick);
    by_zone_[zone] = record.number;
  }
}

Result<uint32_t> BrickList::next_zone(BrickNumber number) {
  Member& member = members_.at(number);
  BrickRecord record = member.record;
  Batch batch;
  TRY(records_.extend(batch, record));
  TRY(store_.commit(batch, CommitKind::kState));
  member.record = record;
  const uint32_t zone = record.zones.back();
  if (zone >= by_zone_.size()) by_zone_.resize(zone + 1, kNoBrick);
  by_zone_[zone] = number;
  return zone;
}

Result<std::vector<std::string>> BrickList::configure(const std::vector<std::string>& addresses) {
  if (members_.empty()) {
    for (const std::string& address : addresses) TRY(add(address, true));
    return std::vector<std::string>();
  }
  std::vector<std::string> unused;
  for (const std::string& address : addresses) {
    const bool used = std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
      return member.second.record.address == address;
    });
    if (!used) unused.push_back(address);
  }
  std::vector<BrickRecord> unnamed;
  for (const auto& [number, member] : members_) {
    const bool named = std::ranges::find(addresses, member.record.address) != addresses.end();
    if (!named && member.record.configured) unnamed.push_back(member.record);
  }
  // A store of format 1 does not say how its brick is reached.
  const bool untold = members_.size() == 1 && members_.begin()->second.record.address.empty();
  if (unnamed.size() != 1 || unused.empty() || (unused.size() > 1 && !untold)) return unused;
  log_info("bricks", "brick-address brick={} was=\"{}\" is=\"{}\"", unnamed.front().number,
           unnamed.front().address, unused.front());
  unnamed.front().address = unused.front();
  TRY(update(unnamed.front()));
  unused.erase(unused.begin());
  if (!untold) return unused;
  for (const std::string& address : unused) TRY(add(address, true));
  return std::vector<std::string>();
}

Result<> BrickList::check_unique(const BrickRecord& record) const {
  for (const auto& [number, member] : members_) {
    if (number == record.number) continue;
    const std::string other = "brick " + std::to_string(number);
    if (member.record.address == record.address)
      return fail(EEXIST, record.address + " is the address of " + other + " already");
    if (!record.name.empty() && member.record.name == record.name)
      return fail(EEXIST, "the brick at " + member.record.address + " is called " + record.name + " already");
    if (record.claimed_before() && member.record.uuid == record.uuid)
      return fail(EEXIST, "the brick at " + record.address + " is in use already: it is " + other + " at " +
                              member.record.address);
  }
  return {};
}

Result<BrickNumber> BrickList::add(const std::string& address, bool configured) {
  BrickRecord record{.address = address, .configured = configured};
  TRY(check_unique(record));
  Batch batch;
  TRY(records_.add(batch, record));
  TRY(store_.commit(batch, CommitKind::kNamespace));
  enter(record);
  TRY(members_.at(record.number).space->begin());
  return record.number;
}

Result<Sequence> BrickList::update(const BrickRecord& record) {
  Member& member = members_.at(record.number);
  TRY(check_unique(record));
  BrickRecord changed = record;
  changed.zones = member.record.zones;
  Batch batch;
  TRY(records_.put(batch, changed));
  TRY_ASSIGN(const Sequence sequence, store_.commit(batch, CommitKind::kNamespace));
  member.record = changed;
  return sequence;
}

Result<std::optional<Sequence>> BrickList::heard_verifier(BrickNumber number, const BrickVerifier& verifier) {
  Member& member = members_.at(number);
  if (member.verifier == verifier) return std::nullopt;
  const uint64_t changes = verifier_changes_ + (member.verifier ? 1 : 0);
  Batch batch;
  BrickRecords::put_verifier(batch, number, verifier, changes);
  TRY_ASSIGN(const Sequence sequence, store_.commit(batch, CommitKind::kNamespace));
  member.verifier = verifier;
  verifier_changes_ = changes;
  return sequence;
}

Result<Sequence> BrickList::remove(BrickNumber number) {
  const Member& member = members_.at(number);
  if (member.space->used_blocks() > 0) return fail(EBUSY, "files or snapshots have data on the brick");
  Batch batch;
  BrickRecords::erase(batch, number);
  TRY_ASSIGN(const Sequence sequence, store_.commit(batch, CommitKind::kNamespace));
  for (const uint32_t zone : member.record.zones) by_zone_[zone] = kNoBrick;
  members_.erase(number);
  return sequence;
}

std::vector<BrickNumber> BrickList::numbers() const {
  std::vector<BrickNumber> found;
  for (const auto& [number, member] : members_) found.push_back(number);
  return found;
}

const BrickRecord* BrickList::find(BrickNumber number) const {
  const auto found = members_.find(number);
  return found == members_.end() ? nullptr : &found->second.record;
}

Space& BrickList::space(BrickNumber number) {
  return *members_.at(number).space;
}

const Space& BrickList::space(BrickNumber number) const {
  return *members_.at(number).space;
}

BrickNumber BrickList::brick_of(uint64_t logical) const {
  const uint32_t zone = zone_of(logical);
  return zone < by_zone_.size() ? by_zone_[zone] : kNoBrick;
}

}  // namespace pnfsrdma::mds
