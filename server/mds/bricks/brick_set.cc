// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/brick_set.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/bricks/placement.h"
#include "server/mds/bricks/rdma_block_memory.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/meta/records.h"
#include "shared/base/check.h"
#include "shared/base/join.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

namespace {

constexpr std::string_view kEpochKey = "epoch";
// What the store cannot take now, as while it is copied for a snapshot.
constexpr Milliseconds kCommitAgain{50};
// Of a copy between bricks.
constexpr uint64_t kCarriedAtOnce = uint64_t{1} << 20;

// Of two answers the one that says more: an error that stays, one that passes, none.
nfs4::Status graver(nfs4::Status a, nfs4::Status b) {
  if (a == nfs4::Status::kOk || (a == nfs4::Status::kDelay && b != nfs4::Status::kOk)) return b;
  return a;
}

template <typename Result>
nfs4::Status told(const BrickDevice& brick, const BrickDevice::Answer<Result>& answer) {
  if (answer) return nfs4::Status::kOk;
  // Lost on the way, or away: for how long says which error.
  if (answer.error() == brick::Status::kTryLater && !brick.usable()) return brick.absence();
  return status_of(answer.error());
}

}  // namespace

// A brick with what leads to it, in creation order.
struct BrickSet::Member {
  std::unique_ptr<BrickConnection> connection;
  std::unique_ptr<BrickDevice> device;
  std::unique_ptr<RdmaBlockMemory> own_memory;
  BlockMemory* memory = nullptr;
  bool closed = false;
  size_t frees = 0;  // calls under way

  bool leaves() const { return device->record().leaving || closed; }
};

BrickSet::BrickSet(Parts parts, Options options) : parts_(std::move(parts)), options_(std::move(options)) {}
BrickSet::~BrickSet() {
  members_.clear();
  for (Thread& thread : leaving_) thread.join();
}

void BrickSet::start(Hooks hooks) {
  hooks_ = std::move(hooks);
  for (const BrickNumber number : parts_.list.numbers()) connect(number);
}

Result<> BrickSet::keep_sessions(const std::function<bool(uint64_t client)>& knows) {
  TRY_ASSIGN(const auto tickets,
             BrickDevice::tickets_on_record(parts_.store, [&](BrickNumber number, uint64_t client) {
               return members_.contains(number) && knows(client);
             }));
  for (const auto& [number, member] : members_) {
    const auto found = tickets.find(number);
    member->device->keep_sessions(found == tickets.end() ? BrickDevice::Tickets() : found->second);
  }
  return {};
}

void BrickSet::connect(BrickNumber number) {
  auto& member = members_[number];
  member = std::make_unique<Member>();
  // The events come from the loop, when all is in its place.
  member->connection = parts_.connect(
      parts_.list.find(number)->address,
      {.on_connected = [made = member.get()] { made->device->connected(); },
       .on_lost = [made = member.get()](const Error&) { made->device->lost(); },
       .on_unreachable = [made = member.get()](const Error& why) { made->device->unreachable(why); }});
  member->device = std::make_unique<BrickDevice>(
      BrickDevice::Parts{parts_.loop, parts_.store, member->connection->control(), parts_.list,
                         parts_.random},
      number,
      [this](uint64_t above, std::function<void(uint64_t)> done) { next_epoch(above, std::move(done)); },
      options_.device);
  if (options_.memory == nullptr)
    member->own_memory = std::make_unique<RdmaBlockMemory>(parts_.loop, *member->device, options_.transports);
  member->memory = options_.memory != nullptr ? options_.memory : member->own_memory.get();
  member->device->set_hooks(
      {.on_lost =
           [this, number, memory = member->memory] {
             hooks_.on_lost(number);
             memory->reset();
           },
       .adopt =
           [this, number](const brick::SessionEntry& session, std::vector<brick::Grant> grants,
                          std::function<void(std::vector<uint64_t>)> done) {
             hooks_.adopt(number, session, std::move(grants), std::move(done));
           },
       .adopted = [this, number](std::function<void()> done) { hooks_.adopted(number, std::move(done)); },
       .zero_tails = [this,
                      number](std::function<void(bool)> done) { hooks_.zero_tails(number, std::move(done)); },
       .on_ready = [this, number] { hooks_.on_ready(number); },
       .on_fenced = hooks_.on_fenced});
}

void BrickSet::disconnect(BrickNumber number) {
  const auto found = members_.find(number);
  if (found == members_.end()) return;
  if (found->second->own_memory) {
    // The loop does not wait for a connection that is being made.
    Thread connecting = found->second->own_memory->give_up_connecting();
    if (connecting.joinable()) leaving_.push_back(std::move(connecting));
  }
  members_.erase(found);
}

// Epochs for claims: each higher than any before it, of this run or an earlier one, of any brick, and durable
// before it is used.
void BrickSet::next_epoch(uint64_t above, std::function<void(uint64_t)> done) {
  const auto read = [this] { return Records(parts_.store).get(RecordKind::kBrick, kEpochKey); };
  read_then(parts_.store, lifetime_.token(), read,
            [this, above, done = std::move(done)](const Result<std::optional<std::string>>& stored) {
              if (!stored)
                return log_error("layouts", "epoch-unreadable error=\"{}\"", stored.error().to_string());
              uint64_t last = 0;
              if (*stored && (*stored)->size() == sizeof(last))
                last = load_big_endian<uint64_t>(as_bytes(**stored).data());
              begin_epoch(last, above, done);
            });
}

void BrickSet::begin_epoch(uint64_t last, uint64_t above, const std::function<void(uint64_t)>& done) {
  const uint64_t epoch = std::max(options_.first_epoch, std::max(last, above) + 1);
  std::byte value[sizeof(epoch)];
  store_big_endian(value, epoch);
  Batch batch;
  Records::put(batch, RecordKind::kBrick, kEpochKey, as_text(value));
  const auto committed = parts_.store.commit(batch, CommitKind::kNamespace);
  // Another one may be the last by then.
  if (!committed && committed.error().number() == EAGAIN) {
    parts_.loop.after(kCommitAgain, lifetime_.guard([this, above, done] { next_epoch(above, done); }));
    return;
  }
  if (!committed) return log_error("layouts", "epoch-not-stored error=\"{}\"", committed.error().to_string());
  parts_.store.when_synced(*committed, [epoch, done] { done(epoch); });
}

// --- which brick ---

std::vector<BrickDevice*> BrickSet::all() {
  std::vector<BrickDevice*> found;
  for (const auto& [number, member] : members_) found.push_back(member->device.get());
  return found;
}

BrickDevice* BrickSet::find(BrickNumber number) {
  const auto found = members_.find(number);
  return found == members_.end() ? nullptr : found->second->device.get();
}

Milliseconds BrickSet::silence(BrickNumber number) const {
  return members_.at(number)->connection->silence();
}

void BrickSet::set_closed(BrickNumber number, bool closed) {
  members_.at(number)->closed = closed;
}

BrickDevice* BrickSet::find(const BrickUuid& uuid) {
  for (const auto& [number, member] : members_) {
    const BrickRecord& record = member->device->record();
    if (record.claimed_before() && record.uuid == uuid) return member->device.get();
  }
  return nullptr;
}

BrickSet::Member& BrickSet::member_at(uint64_t logical) {
  const auto found = members_.find(parts_.list.brick_of(logical));
  CHECK(found != members_.end());
  return *found->second;
}

BrickDevice& BrickSet::at(uint64_t logical) {
  return *member_at(logical).device;
}

BlockMemory& BrickSet::memory_at(uint64_t logical) {
  return *member_at(logical).memory;
}

BrickUuid BrickSet::uuid_at(uint64_t logical) const {
  return parts_.list.find(parts_.list.brick_of(logical))->uuid;
}

std::expected<std::vector<BrickNumber>, nfs4::Status> BrickSet::places(InodeId inode, BrickNumber home) {
  if (BrickDevice* const brick = find(home); brick != nullptr && !brick->ready())
    return std::unexpected(brick->absence());
  std::vector<Candidate> candidates;
  nfs4::Status absent = nfs4::Status::kNoSpc;
  for (const auto& [number, member] : members_) {
    if (member->leaves()) continue;
    if (member->device->ready()) {
      candidates.push_back({number, member->device->space().free_bytes()});
    } else if (absent != nfs4::Status::kDelay) {
      absent = member->device->absence();
    }
  }
  if (candidates.empty()) return std::unexpected(absent);
  return order_of(candidates, inode, home);
}

// --- all of them ---

bool BrickSet::ready() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member.second->device->ready(); });
}

bool BrickSet::identified() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member.second->device->identified(); });
}

std::map<BrickNumber, BrickVerifier> BrickSet::verifiers(const std::vector<brick::Range>& ranges) {
  std::map<BrickNumber, BrickVerifier> verifiers;
  for (const brick::Range& range : ranges) {
    const BrickDevice& device = at(range.logical);
    verifiers.emplace(device.number(), device.verifier());
  }
  return verifiers;
}

std::optional<BrickVerifier> BrickSet::verifier_of(BrickNumber number) {
  const BrickDevice* const device = find(number);
  if (device == nullptr) return std::nullopt;
  return device->verifier();
}

// --- several at once ---

BrickSet::Split BrickSet::split(const std::vector<brick::Range>& ranges) const {
  Split parts;
  for (const brick::Range& range : ranges) parts[parts_.list.brick_of(range.logical)].push_back(range);
  return parts;
}

bool BrickSet::leaving_at(uint64_t logical) {
  return member_at(logical).leaves();
}

nfs4::Status BrickSet::absence(const std::vector<brick::Range>& ranges) {
  nfs4::Status status = nfs4::Status::kOk;
  for (const auto& [number, part] : split(ranges)) status = graver(status, at(part[0].logical).absence());
  return status;
}

nfs4::Status BrickSet::absence(const std::set<BrickNumber>& numbers) {
  nfs4::Status status = nfs4::Status::kOk;
  for (const BrickNumber number : numbers) {
    if (const BrickDevice* const brick = find(number)) status = graver(status, brick->absence());
  }
  return status;
}

template <typename Result>
void BrickSet::on_each(const std::vector<brick::Range>& ranges, Done done,
                       void (BrickDevice::*call)(const std::vector<brick::Range>&,
                                                 BrickDevice::Done<Result>)) {
  const auto gravest = std::make_shared<nfs4::Status>(nfs4::Status::kOk);
  const Join join([gravest, done = std::move(done)] { done(*gravest); });
  for (const auto& [number, part] : split(ranges)) {
    BrickDevice& brick = at(part[0].logical);
    (brick.*call)(part, [&brick, gravest, end = join.part()](const BrickDevice::Answer<Result>& answer) {
      *gravest = graver(*gravest, told(brick, answer));
      end();
    });
  }
  join.end();
}

void BrickSet::persist(const std::vector<brick::Range>& ranges, Done done) {
  on_each<brick::PersistResult>(ranges, std::move(done), &BrickDevice::persist);
}

void BrickSet::zero(const std::vector<brick::Range>& ranges, Done done) {
  on_each<brick::StatusResult>(ranges, std::move(done), &BrickDevice::zero);
}

struct BrickSet::Carrying {
  brick::Range source;
  uint64_t target = 0;
  uint64_t moved = 0;
  std::shared_ptr<Bytes> piece;
  std::optional<BrickVerifier> verifier;  // of the target's brick, from the first piece to the flush
  Done done;
};

void BrickSet::copy(const brick::Range& source, uint64_t target, Done done) {
  BrickDevice& brick = at(source.logical);
  if (&brick != &at(target)) {
    return carry(std::make_shared<Carrying>(Carrying{.source = source,
                                                     .target = target,
                                                     .piece = nullptr,
                                                     .verifier = at(target).verifier(),
                                                     .done = std::move(done)}));
  }
  brick.copy(source.logical, target, source.length,
             [&brick, done = std::move(done)](const BrickDevice::Answer<brick::StatusResult>& answer) {
               done(told(brick, answer));
             });
}

// One piece after the other through our own memory.
void BrickSet::carry(const std::shared_ptr<Carrying>& work) {
  const uint64_t left = work->source.length - work->moved;
  const nfs4::Status absent =
      absence(std::vector<brick::Range>{work->source, {work->target, work->source.length}});
  if (absent != nfs4::Status::kOk) return work->done(absent);
  if (left == 0) {
    return persist({{work->target, work->source.length}}, lifetime_.guard([this, work](nfs4::Status flushed) {
      // Lost on the way.
      const bool lost = at(work->target).verifier() != *work->verifier;
      work->done(flushed == nfs4::Status::kOk && lost ? nfs4::Status::kDelay : flushed);
    }));
  }
  work->piece = std::make_shared<Bytes>(std::min<uint64_t>(left, kCarriedAtOnce));
  const auto written = lifetime_.guard([this, work](bool moved) {
    if (!moved) return work->done(nfs4::Status::kDelay);
    work->moved += work->piece->size();
    carry(work);
  });
  const auto read = lifetime_.guard([this, work, written](bool moved) {
    if (!moved) return work->done(nfs4::Status::kDelay);
    memory_at(work->target).write(work->target + work->moved, *work->piece, work->piece, written);
  });
  memory_at(work->source.logical).read(work->source.logical + work->moved, *work->piece, work->piece, read);
}

void BrickSet::free(const std::vector<brick::Run>& runs) {
  std::map<BrickNumber, std::vector<brick::Run>> parts;
  for (const brick::Run& run : runs) parts[parts_.list.brick_of(run.logical)].push_back(run);
  for (const auto& [number, part] : parts) {
    std::vector<brick::Range> ranges;
    for (const brick::Run& run : part) ranges.push_back({run.logical, run.count * brick::kBlockSize});
    Member& member = member_at(part[0].logical);
    ++member.frees;
    const auto freed = lifetime_.guard([this, number] {
      if (const auto found = members_.find(number); found != members_.end()) --found->second->frees;
    });
    member.memory->forget(ranges, lifetime_.guard([this, number, part, freed] {
      if (BrickDevice* const brick = find(number)) brick->free(part, freed);
    }));
  }
}

bool BrickSet::freeing(BrickNumber number) const {
  const auto found = members_.find(number);
  return found != members_.end() && found->second->frees > 0;
}

void BrickSet::withdraw(uint64_t client, const std::vector<HeldGrant>& grants, std::function<void()> done) {
  std::map<BrickNumber, std::vector<uint64_t>> parts;
  for (const HeldGrant& grant : grants) parts[parts_.list.brick_of(grant.logical)].push_back(grant.grant);
  const Join join(std::move(done));
  for (const auto& [number, numbers] : parts) find(number)->withdraw(client, numbers, join.part());
  join.end();
}

void BrickSet::close_session(uint64_t client, std::function<void()> done) {
  const Join join(std::move(done));
  for (const auto& [number, member] : members_) member->device->close_session(client, join.part());
  join.end();
}

}  // namespace pnfsrdma::mds
