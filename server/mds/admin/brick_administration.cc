// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/brick_administration.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "server/console/inventory_names.h"
#include "server/mds/admin/layout_walk.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::mds {

namespace {

constexpr Milliseconds kLookAgain{50};
constexpr uint32_t kSurveyedRunsPerCall = 16384;
// A brick answers the keepalives of a second ago, or something is wrong with it.
constexpr Milliseconds kSilence{2000};

console::BrickState state_of(const BrickDevice& brick) {
  switch (brick.state()) {
    case BrickDevice::State::kOffline:
      return brick.identified() || brick.record().claimed_before() ? console::BrickState::kAway
                                                                   : console::BrickState::kConnecting;
    case BrickDevice::State::kForeign:
      return console::BrickState::kForeign;
    case BrickDevice::State::kReconciling:
      return console::BrickState::kReconciling;
    case BrickDevice::State::kReady:
      return brick.record().leaving ? console::BrickState::kDraining : console::BrickState::kReady;
    case BrickDevice::State::kFenced:
      return console::BrickState::kFenced;
  }
  return console::BrickState::kAway;
}

std::vector<console::FlushMethod> flush_methods_of(uint32_t methods) {
  std::vector<console::FlushMethod> shown;
  if (methods & nfs4::kFlushNative) shown.push_back(console::FlushMethod::kNative);
  if (methods & nfs4::kFlushCommitMessage) shown.push_back(console::FlushMethod::kCommit);
  shown.push_back(console::FlushMethod::kLayoutCommit);
  return shown;
}

std::string first_id_of(const BrickRecord& record) {
  return "new-" + std::to_string(record.number);
}

std::string id_of(const BrickRecord& record) {
  return record.claimed_before() ? uuid_text(record.uuid) : first_id_of(record);
}

bool is_address(const std::string& text) {
  if (text.size() > BrickRecords::kAddressBytesMax) return false;
  if (text.starts_with("unix:/")) return text.size() > 6;
  return text.starts_with("tcp:") && text.size() > 4;
}

constexpr Milliseconds kLimitRemembered{600'000};

// Empty: nothing is on it.
std::string why_not_removed(const Space& space) {
  if (!space.known()) return "What files have on it is still being read.";
  if (space.used_blocks() == 0) return {};
  return "Files have data on it, or space reserved: " + std::to_string(space.used_blocks()) + " blocks.";
}

console::LoopTurns turns_of(const brick::LoopTurnsResult& told) {
  console::LoopTurns shown{
      .times = {}, .slow = told.slow, .longest_ms = told.longest_ms, .stalled = told.stalled};
  std::copy_n(told.counts.begin(), std::min(told.counts.size(), shown.times.counts.size()),
              shown.times.counts.begin());
  shown.times.sum_us = told.sum_us;
  return shown;
}

}  // namespace

BrickAdministration::BrickAdministration(const Parts& parts)
    : parts_(parts), observer_(parts.loop, parts.bricks) {}

// --- what is ---

Result<BrickNumber> BrickAdministration::find(const std::string& id) const {
  for (const BrickNumber number : parts_.list.numbers()) {
    const BrickRecord& record = *parts_.list.find(number);
    if (id_of(record) == id || first_id_of(record) == id) return number;
  }
  return fail(ENOENT, "no brick " + id);
}

std::vector<console::Brick> BrickAdministration::bricks() {
  std::vector<console::Brick> found;
  for (const BrickNumber number : parts_.list.numbers()) {
    if (!being_added_.contains(number)) found.push_back(describe(number));
  }
  return found;
}

std::vector<std::pair<std::string, const BrickObservation&>> BrickAdministration::observations() {
  std::vector<std::pair<std::string, const BrickObservation&>> found;
  for (const BrickNumber number : parts_.list.numbers()) {
    const BrickDevice* const brick = parts_.bricks.find(number);
    if (brick != nullptr && brick->ready())
      found.emplace_back(id_of(brick->record()), observer_.latest(number));
  }
  return found;
}

std::string BrickAdministration::addresses_text() const {
  nlohmann::json addresses = nlohmann::json::array();
  for (const BrickNumber number : parts_.list.numbers()) {
    if (!being_added_.contains(number)) addresses.push_back(parts_.list.find(number)->address);
  }
  return addresses.dump();
}

console::Brick BrickAdministration::describe(BrickNumber number) {
  BrickDevice& brick = *parts_.bricks.find(number);
  const BrickRecord& record = brick.record();
  const brick::ClaimResult& identity = brick.identity();
  const brick::StatisticsResult& now = observer_.latest(number).statistics;
  const Space& space = brick.space();
  console::Brick shown{.id = id_of(record),
                       .first_id = first_id_of(record),
                       .name = record.name,
                       .address = record.address,
                       .tls = record.tls,
                       .state = state_of(brick)};
  shown.detail = brick.detail();
  // Long before it is given up, whoever looks is told why I/O stands still.
  if (const auto silence = parts_.bricks.silence(number); brick.ready() && silence >= kSilence) {
    shown.state = console::BrickState::kAway;
    shown.detail = "connected, but silent for " + std::to_string(silence / std::chrono::seconds(1)) + " s";
  }
  shown.since = parts_.clock.wall_now();
  shown.since.seconds -=
      std::chrono::duration_cast<std::chrono::seconds>(parts_.loop.now() - brick.since()).count();
  shown.kind = console::pool_kind_of(identity.kind);
  if (const auto told = static_cast<Durability>(record.durability);
      record.claimed_before() && xdr_known(told))
    shown.durability = told;
  if (brick.identified()) shown.flush_methods = flush_methods_of(identity.flush_methods);
  for (const brick::Path& path : identity.paths) shown.paths.push_back({path.netid, path.address});
  shown.block_bytes = brick::kBlockSize;
  shown.blocks = record.block_count;
  shown.free_blocks = record.block_count - std::min(record.block_count, space.used_blocks());
  shown.used_bytes = space.used_blocks() * brick::kBlockSize - space.free_grain_bytes();
  shown.remove_refusal = why_not_removed(space);
  shown.format_refusal = shown.remove_refusal;
  if (shown.format_refusal.empty() && !brick.ready())
    shown.format_refusal =
        std::string("It is ") + to_string(shown.state) + ": only a connected brick can be formatted.";
  shown.sessions = now.sessions;
  for (const auto& [transport, count] : observer_.latest(number).connections)
    shown.connections[console::data_transport_of(transport)] += count;
  shown.grants = now.grants;
  shown.grants_max = identity.grants_max;
  shown.counted = observer_.latest(number).counted;
  shown.counters = {.rdma_read_bytes = now.rdma_read_bytes,
                    .rdma_write_bytes = now.rdma_write_bytes,
                    .rdma_reads = now.rdma_reads,
                    .rdma_writes = now.rdma_writes,
                    .rdma_flushes = now.rdma_flushes,
                    .commit_messages = now.commit_messages,
                    .mds_flushes = now.control_persists};
  shown.turns = turns_of(observer_.latest(number).turns);
  return shown;
}

struct BrickAdministration::Survey {
  BrickNumber number = kNoBrick;
  uint64_t next = 0;
  console::BlockMap map;
  std::vector<brick::SurveyedRun> runs;
  std::deque<MappedGrant> grants;
  uint64_t dying = 0;       // up to this piece they have been looked at
  uint64_t last_dying = 0;  // later ones were still held when those that are held were looked at
  std::function<void(MappedGrant&)> name;
  Done<Later<console::BlockMap>> done;
};

void BrickAdministration::block_map(const std::string& id, std::function<void(MappedGrant&)> name,
                                    Done<Later<console::BlockMap>> done) {
  const auto number = find(id);
  if (!number) return done(std::unexpected(number.error()));
  survey_next(
      std::make_shared<Survey>(Survey{.number = *number, .name = std::move(name), .done = std::move(done)}));
}

void BrickAdministration::survey_next(const std::shared_ptr<Survey>& work) {
  BrickDevice* const brick = parts_.bricks.find(work->number);
  if (brick == nullptr) return work->done(fail(ENOENT, "the brick was removed"));
  brick->survey({work->next, kSurveyedRunsPerCall},
                lifetime_.guard([this, work, brick](BrickDevice::Answer<brick::SurveyResult> page) {
                  if (!page) return work->done(fail(EAGAIN, "the brick is not ready: " + brick->detail()));
                  work->runs.insert(work->runs.end(), page->runs.begin(), page->runs.end());
                  if (!page->end && !page->runs.empty()) {
                    work->next = page->runs.back().first + page->runs.back().count;
                    return survey_next(work);
                  }
                  work->map = {.brick = id_of(brick->record()),
                               .block_bytes = brick::kBlockSize,
                               .blocks = brick->identity().block_count};
                  add_grants(work);
                }));
}

void BrickAdministration::add_grant(Survey& work, uint64_t client, uint64_t inode, const HeldGrant& grant) {
  if (parts_.list.brick_of(grant.logical) != work.number) return;
  work.grants.push_back({client, inode, grant.memory(), grant.file.begin, grant.writable});
  work.name(work.grants.back());
}

void BrickAdministration::add_grants(const std::shared_ptr<Survey>& work) {
  walk_layouts(
      parts_.loop, parts_.table, 0, lifetime_.token(),
      [this, work](const HeldLayout& held) {
        for (const HeldGrant& grant : held.grants()) add_grant(*work, held.client(), held.inode(), grant);
      },
      [this, work] {
        work->last_dying = parts_.table.newest_dying();
        add_dying(work);
      });
}

// Behind those that are held: the other way round, one that begins to die in between would be in neither.
void BrickAdministration::add_dying(const std::shared_ptr<Survey>& work) {
  const EventLoop::Step step(parts_.loop, "dying-walk");
  size_t left = kLayoutsPerTurn;
  for (const DyingPointer& piece : parts_.table.dying(work->dying, left)) {
    if (left == 0 || piece->number > work->last_dying) break;
    work->dying = piece->number;
    left -= std::min(left, 1 + piece->grants.size() / kGrantsAsOneLayout);
    if (piece->brick != work->number) continue;
    for (const HeldGrant& grant : piece->grants) add_grant(*work, piece->client, piece->inode, grant);
  }
  if (left == 0) {
    parts_.loop.at_next_turn(lifetime_.guard([this, work] { add_dying(work); }));
    return;
  }
  work->done([work] {
    work->map.runs = map_blocks(work->runs, std::move(work->grants));
    return std::move(work->map);
  });
}

Result<std::string> BrickAdministration::why_in_use(const std::string& id) const {
  TRY_ASSIGN(const BrickNumber number, find(id));
  return why_not_removed(parts_.bricks.find(number)->space());
}

struct BrickAdministration::Count {
  BrickNumber number = kNoBrick;
  Extents::Place next;
  InodeId last = kNoInode;
  Holders found;
  Done<Holders> done;

  void add(InodeId inode, uint64_t bytes) {
    found.bytes += bytes;
    if (std::exchange(last, inode) == inode) return;  // extents come by inode
    ++found.files;
    if (found.inodes.size() < kInodesNamed) found.inodes.push_back(inode);
  }
};

void BrickAdministration::holders(const std::string& id, Done<Holders> done) {
  const auto number = find(id);
  if (!number) return done(std::unexpected(number.error()));
  count_next(std::make_shared<Count>(Count{.number = *number, .found = {}, .done = std::move(done)}));
}

void BrickAdministration::count_next(const std::shared_ptr<Count>& work) {
  using Page = std::vector<std::pair<InodeId, Extent>>;
  const auto read = [this, work]() -> Result<Page> {
    Page page;
    TRY(Extents(parts_.store).scan(work->next, [&](InodeId inode, const Extent& extent) {
      page.emplace_back(inode, extent);
      return page.size() < kExtentsPerTurn;
    }));
    return page;
  };
  read_then(parts_.store, lifetime_.token(), read, [this, work](const Result<Page>& page) {
    const EventLoop::Step step(parts_.loop, "brick-holders");
    if (!page) return work->done(std::unexpected(page.error()));
    for (const auto& [inode, extent] : *page) {
      if (parts_.list.brick_of(extent.logical) == work->number) work->add(inode, extent.length);
    }
    if (page->size() < kExtentsPerTurn) return work->done(std::move(work->found));
    work->next = {page->back().first, page->back().second.end() + 1};
    parts_.loop.at_next_turn(lifetime_.guard([this, work] { count_next(work); }));
  });
}

// --- changes ---

void BrickAdministration::add(const std::string& address, Done<console::Brick> done) {
  if (!is_address(address)) {
    return done(
        fail(EINVAL, "\"" + address + "\" is not the address of a brick: unix:/path or tcp:host:port"));
  }
  const auto added = parts_.list.add(address, false);
  if (!added) return done(std::unexpected(added.error()));
  being_added_.insert(*added);
  parts_.bricks.connect(*added);
  await(*added, parts_.loop.now() + kAddPatience, std::move(done));
}

// Until it is ready, refused, or has had its time.
void BrickAdministration::await(BrickNumber number, SteadyTime deadline, Done<console::Brick> done) {
  BrickDevice* const brick = parts_.bricks.find(number);
  if (brick == nullptr) return done(fail(ENOENT, "the brick was removed meanwhile"));
  if (brick->ready()) {
    being_added_.erase(number);
    log_info("bricks", "brick-added brick={} address={}", number, brick->record().address);
    return parts_.store.when_synced(parts_.store.last_namespace_sequence(),
                                    lifetime_.guard([this, number, done] {
                                      if (parts_.bricks.find(number) != nullptr)
                                        return done(describe(number));
                                      done(fail(ENOENT, "the brick was removed meanwhile"));
                                    }));
  }
  const bool refused =
      brick->state() == BrickDevice::State::kForeign || brick->state() == BrickDevice::State::kFenced;
  if (refused || brick->unreachable_why() || parts_.loop.now() >= deadline) {
    const int number_of_error = !refused                                                      ? EHOSTUNREACH
                                : brick->detail().find("in use already") != std::string::npos ? EEXIST
                                                                                              : EBUSY;
    const bool told = refused || brick->unreachable_why();
    const Error why(number_of_error, told ? brick->detail()
                                          : "the brick at " + brick->record().address +
                                                " does not answer: " + brick->detail());
    return forget(number, [done, why](const Result<>&) { done(std::unexpected(why)); });
  }
  parts_.loop.after(kLookAgain, lifetime_.guard([this, number, deadline, done = std::move(done)] {
    await(number, deadline, done);
  }));
}

void BrickAdministration::forget(BrickNumber number, std::function<void(Result<>)> done) {
  const bool never_shown = being_added_.erase(number) > 0;
  parts_.bricks.disconnect(number);
  observer_.forget(number);
  const auto removed = parts_.list.remove(number);
  if (!removed) {
    parts_.bricks.connect(number);  // as it was
    return done(std::unexpected(removed.error()));
  }
  if (!never_shown) log_info("bricks", "brick-removed brick={}", number);
  parts_.store.when_synced(*removed, lifetime_.guard([done = std::move(done)] { done({}); }));
}

bool BrickAdministration::met_limit_lately(BrickNumber number) const {
  const BrickDevice* const brick = parts_.bricks.find(number);
  return brick != nullptr && brick->met_limit() && parts_.loop.now() - *brick->met_limit() < kLimitRemembered;
}

void BrickAdministration::remove(const std::string& id, Done<void> done) {
  const auto number = find(id);
  if (!number) return done(std::unexpected(number.error()));
  BrickDevice& brick = *parts_.bricks.find(*number);
  if (const Result<> unused = brick.space().check_unused(); !unused)
    return done(std::unexpected(unused.error()));
  // What is on its way to the brick finds it closed, or has taken its blocks already.
  parts_.bricks.set_closed(*number, true);
  brick.release(lifetime_.guard([this, number = *number, done = std::move(done)](bool released) {
    if (!released)
      log_warning("bricks", "brick-not-released brick={} what=\"it stays claimed by this server\"", number);
    // Not from inside its own callback.
    parts_.loop.post(lifetime_.guard([this, number, done] {
      if (parts_.bricks.find(number) == nullptr) return done(fail(ENOENT, "the brick was removed meanwhile"));
      forget(number, done);
    }));
  }));
}

void BrickAdministration::set_draining(const std::string& id, bool draining, Done<void> done) {
  const auto number = find(id);
  if (!number) return done(std::unexpected(number.error()));
  BrickRecord record = *parts_.list.find(*number);
  record.leaving = draining;
  update(record, std::move(done));
}

void BrickAdministration::set_name(const std::string& id, const std::string& name, Done<void> done) {
  const auto number = find(id);
  if (!number) return done(std::unexpected(number.error()));
  BrickRecord record = *parts_.list.find(*number);
  record.name = name;
  update(record, std::move(done));
}

void BrickAdministration::update(const BrickRecord& record, Done<void> done) {
  const auto stored = parts_.list.update(record);
  if (!stored) return done(std::unexpected(stored.error()));
  parts_.store.when_synced(*stored, lifetime_.guard([done = std::move(done)] { done({}); }));
}

// --- jobs ---

CancelJob BrickAdministration::format(const std::string& id, BrickJobEvents events) {
  const auto number = find(id);
  if (number) return format_brick(parts_.loop, parts_.bricks, *number, std::move(events));
  events.on_end(std::unexpected(number.error()));
  return [] {};
}

CancelJob BrickAdministration::check(const std::string& id, BrickJobEvents events) {
  const auto number = find(id);
  if (number) return check_brick(parts_.loop, parts_.bricks, *number, std::move(events));
  events.on_end(std::unexpected(number.error()));
  return [] {};
}

}  // namespace pnfsrdma::mds
