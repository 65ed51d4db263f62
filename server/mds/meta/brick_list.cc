// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/brick_list.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

// A lookup or two each.
constexpr size_t kGivenBackPerTurn = 1000;

bool never() {
  return false;
}

}  // namespace

Result<std::unique_ptr<BrickList>> BrickList::open(KeyValueStore& store, const Clock& clock) {
  std::unique_ptr<BrickList> list(new BrickList(store, clock));
  TRY(list->read());
  TRY_ASSIGN(UsedSpace used, read_used_space(store, list->by_zone_, never));
  list->use(std::move(used));
  return list;
}

Result<std::unique_ptr<BrickList>> BrickList::open(KeyValueStore& store, const Clock& clock, EventLoop& loop,
                                                   std::function<void(const Error&)> failed) {
  std::unique_ptr<BrickList> list(new BrickList(store, clock));
  TRY(list->read());
  list->loop_ = &loop;
  const SteadyTime begun = loop.now();
  list->reader_ = std::make_unique<UsedSpaceReader>(
      loop, store.still(), list->by_zone_,
      [&list = *list, &loop, begun, failed = std::move(failed)](Result<UsedSpace> used) {
        if (!used) return failed(used.error().in("reading what is in use of the bricks"));
        log_info("bricks", "space-known ms={}",
                 std::chrono::duration_cast<Milliseconds>(loop.now() - begun).count());
        list.use(std::move(*used));
      });
  return list;
}

Result<> BrickList::read() {
  TRY_ASSIGN(const std::vector<BrickRecord> records, records_.all());
  for (const BrickRecord& record : records) {
    enter(record);
    Member& member = members_.at(record.number);
    TRY_ASSIGN(member.verifier, records_.verifier(record.number));
    TRY(member.space->begin());
  }
  TRY_ASSIGN(verifier_changes_, records_.verifier_changes());
  return {};
}

void BrickList::use(UsedSpace used) {
  for (auto& [number, member] : members_) {
    if (!member.space->known()) member.space->used(std::move(used[number]));
  }
  give_back();
}

// Until all is known: each turn some of what was given back meanwhile.
void BrickList::give_back() {
  const bool all = std::ranges::all_of(members_, [](const auto& member) {
    Space& space = *member.second.space;
    return space.known() || space.give_back(kGivenBackPerTurn);
  });
  if (!all) {
    return loop_->at_next_turn(lifetime_.guard([this] {
      const EventLoop::Step step(*loop_, "space-given-back");
      give_back();
    }));
  }
  for (const auto& done : std::exchange(waiting_, {})) done();
}

void BrickList::when_known(std::function<void()> done) {
  const bool known =
      std::ranges::all_of(members_, [](const auto& member) { return member.second.space->known(); });
  if (known) return done();
  waiting_.push_back(std::move(done));
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
  Space& space = *members_.at(record.number).space;
  TRY(space.begin());
  space.give_back(0);  // nothing can be on it
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

const BrickRecord* BrickList::find_at(const std::string& address) const {
  for (const auto& [number, member] : members_)
    if (member.record.address == address) return &member.record;
  return nullptr;
}

bool BrickList::tls_noted(const std::string& address) const {
  const BrickRecord* const known = find_at(address);
  return known != nullptr && known->tls;
}

Result<> BrickList::note_tls(const std::string& address, bool tls) {
  const BrickRecord* const known = find_at(address);
  if (known == nullptr || known->tls == tls) return {};
  BrickRecord changed = *known;
  changed.tls = tls;
  TRY(update(changed));
  return {};
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
  TRY(member.space->check_unused());
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
