// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/real_mds.h"

#include <fmt/core.h>

#include <algorithm>

#include "server/mds/admin/data_plane.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/layout/snapshot_keeper.h"
#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/checkpoint_view.h"
#include "server/mds/meta/commit_thread.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/sync_waiters.h"
#include "server/mds/meta/values.h"
#include "server/mds/ops/handle_keys.h"
#include "server/mds/ops/layout_callbacks.h"
#include "server/mds/ops/nfs_program.h"
#include "server/mds/ops/user_groups.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/idle_connections.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/lock_waiters.h"
#include "server/mds/state/recovery.h"
#include "server/mds/state/server_limits.h"
#include "shared/base/check.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/message.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/doubles/seeded_random.h"
#include "tests/sim/brick_control.h"
#include "tests/sim/wire_stream.h"

namespace pnfsrdma::sim {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

ServedFile served(size_t file, nfs4::FileHandle handle) {
  const std::string number = std::to_string(file);
  return {std::move(handle), "file" + number, "moved" + number, "second" + number};
}

template <typename T>
T must(Result<T> result) {
  if (!result) std::fprintf(stderr, "the MDS does not start: %s\n", result.error().to_string().c_str());
  CHECK(result.has_value());
  return *std::move(result);
}

}  // namespace

// The day begins with the run.
class VirtualClock final : public Clock {
 public:
  SteadyTime now() const override { return steady_now(); }
  WallTime wall_now() const override {
    const auto passed = std::chrono::nanoseconds(steady_now().time_since_epoch()).count();
    return {1'700'000'000 + passed / 1'000'000'000, static_cast<uint32_t>(passed % 1'000'000'000)};
  }
};

// Its syncs are the server's own commit thread's, and take a while; so do the making and the removal of a copy. A
// copy is durable, whatever of its rows the live store may still lose, when it is complete.
class SyncedStore final : public mds::MemoryStore {
 public:
  SyncedStore(EventLoop& loop, const Rows& rows, Checkpoints copies, uint64_t seed)
      : MemoryStore(loop, Syncing::kManual),
        loop_(loop),
        dice_(seed),
        commits_(loop,
                 {.sync =
                      [this] {
                        sleep_for(dice_.one_in(20) ? dice_.microseconds(1000, 30000)
                                                   : dice_.microseconds(20, 300));
                        return Result<>();
                      },
                  .progress = [this](mds::Sequence) { (void)MemoryStore::sync(); },
                  .failed = [](const Error&) { CHECK(false); }},
                 Milliseconds(mds::kStateSyncMsMax)) {
    mds::Batch all;
    for (const auto& [key, value] : rows) all.put(key, value);
    if (!all.empty()) CHECK(MemoryStore::write(all, mds::CommitKind::kState));
    (void)MemoryStore::sync();
    set_checkpoints(std::move(copies));
  }

  // Now, as the next start finds them.
  Checkpoints copies() const {
    Checkpoints all = checkpoints();
    for (const auto& [number, part] : parts_) all.emplace(number, part);
    return all;
  }
  bool copies_metadata() const { return copying_; }
  void prepare_checkpoint(std::function<void()> done) override {
    loop_.after(Milliseconds(dice_.below(dice_.one_in(10) ? 200 : 10)), std::move(done));
  }
  void drop_checkpoint(mds::SnapshotNumber number, std::function<void(Result<>)> done) override {
    const auto found = checkpoints().find(number);
    if (found != checkpoints().end()) parts_[number] = part_of(found->second);
    MemoryStore::drop_checkpoint(number, [](const Result<>&) {});
    loop_.after(Milliseconds(dice_.below(50)), [this, number, done = std::move(done)] {
      parts_.erase(number);
      done({});
    });
  }

  Rows dump() {
    Rows all;
    CHECK(scan("", "", [&](std::string_view key, std::string_view value) {
      all.emplace_back(key, value);
      return true;
    }));
    return all;
  }

 protected:
  Result<mds::Sequence> write(const mds::Batch& batch, mds::CommitKind kind) override {
    auto sequence = MemoryStore::write(batch, kind);
    if (sequence) commits_.committed(*sequence, kind);
    return sequence;
  }

  // Now and then it fails, for want of room.
  void make_checkpoint(mds::SnapshotNumber number, std::function<void(Result<>)> done) override {
    CHECK(!copying_ && !checkpoints().contains(number));
    copying_ = true;
    const Rows now = dump();
    const Content whole(now.begin(), now.end());
    parts_[number] = part_of(whole);
    loop_.after(Milliseconds(dice_.below(dice_.one_in(6) ? 300 : 20)),
                [this, number, whole, done = std::move(done)] {
                  copying_ = false;
                  parts_.erase(number);
                  if (dice_.one_in(12)) return done(fail(ENOSPC, "no room for a copy of the metadata"));
                  Checkpoints all = checkpoints();
                  all[number] = whole;
                  set_checkpoints(std::move(all));
                  done({});
                });
  }

 private:
  Content part_of(const Content& whole) {
    Content part;
    for (const auto& row : whole) {
      if (dice_.one_in(2)) part.insert(row);
    }
    return part;
  }

  EventLoop& loop_;
  Dice dice_;
  bool copying_ = false;
  Checkpoints parts_;  // of copies that are being made or removed
  mds::CommitThread commits_;
};

class NoNames final : public mds::NameService {
 public:
  Result<mds::GroupList> groups_of(uint32_t) override { return mds::GroupList(); }
};

namespace {

constexpr uint32_t kOwnerOfClones = 7;

mds::Export everything() {
  mds::Export one;
  one.squash = mds::Squash::kNone;
  return one;
}

std::vector<std::string> addresses_of(const std::vector<ServedBrick*>& bricks) {
  std::vector<std::string> all;
  for (const ServedBrick* brick : bricks) all.push_back(brick->address());
  return all;
}

mds::ServerLimits limits_of(Milliseconds lease, bool delegates, Dice& dice) {
  mds::ServerLimits limits;
  limits.lease = lease;
  limits.session_slots_max = static_cast<uint32_t>(dice.between(2, 8));
  limits.back_slots_max = static_cast<uint32_t>(dice.between(1, 4));
  // So few that clients are asked to return some.
  limits.delegations = delegates;
  if (delegates) limits.delegations_per_client_max = static_cast<uint32_t>(dice.between(2, 6));
  return limits;
}

}  // namespace

// What main() builds.
struct RealMds::Process {
  Process(const std::vector<ServedBrick*>& bricks, const Rows& rows, mds::MemoryStore::Checkpoints copies,
          const std::string& host_boot, Milliseconds lease, Milliseconds contended, size_t slice, Dice& dice)
      : random(dice.next()),
        loop(clock),
        limits(limits_of(lease, contended > Milliseconds(0), dice)),
        store(loop, rows, std::move(copies), dice.next()),
        boot(must(mds::open_boot(store, random, host_boot, limits.lease))),
        names(must(mds::Namespace::open(store, clock, boot.boot_count))),
        list(must(mds::BrickList::open(store, clock, loop,
                                       [](const Error& error) { must(Result<>(std::unexpected(error))); }))),
        exports(*names, {everything()}),
        handles(must(mds::HandleKeys::open(store, random, clock, exports, false))),
        clients(clock, random, limits.lease),
        sessions(random),
        state_store(store),
        grace(clock),
        callbacks(loop, clients, sessions, limits.lease),
        lock_waiters(clock, locks, callbacks, limits.lease),
        delegations(loop, delegation_table, callbacks, state_store, counters, limits.lease, contended),
        layout_callbacks(callbacks, clients, opens, delegation_table, *names, *handles),
        controls(loop, bricks, dice.next()),
        identity{boot.instance},
        clone_slice(slice) {
    (void)must(list->configure(addresses_of(bricks)));
    if (dice.one_in(3)) store.go_cold(Milliseconds(dice.below(3)));
  }

  // Behind the events of the bricks, which need all of it.
  void begin(std::function<void(const std::string&)> violated) {
    layouts = std::make_unique<mds::DataPlane>(
        mds::DataPlane::Parts{loop, clock, random, *names, *list, controls.connector(), layout_callbacks,
                              counters},
        mds::DataPlane::Options{
            .first_epoch = boot.epoch,
            .owner = "sim",
            .lease = limits.lease,
            .metadata_era = boot.era,
            .memory = &controls,
            .clone_slice = clone_slice,
            .on_fenced = [violated](const std::string& why) { violated("the MDS was fenced: " + why); }});
    names->set_in_use([this](mds::InodeId inode) {
      return layout_callbacks.is_open(inode) || layouts->conflicts().file_in_use(inode);
    });
    delegations.set_unused([this](mds::InodeId inode) {
      if (!opens.is_open(inode)) layouts->conflicts().on_last_close({inode}, [] {});
    });
    delegations.set_fence([this](mds::ClientId client, mds::InodeId inode,
                                 std::function<void(mds::LayoutConflicts::Fence)> done) {
      layouts->conflicts().before_delegation_revoked(client, inode, std::move(done));
    });
    leases = std::make_unique<mds::LeaseKeeper>(clients, sessions, opens, locks, delegations, state_store,
                                                layouts->conflicts(), counters);
    user_groups = std::make_unique<mds::UserGroups>(loop, name_service);
    services.reset(
        new mds::Services{clock,           random,       limits,      identity, exports,
                          *handles,        store,        *names,      clients,  sessions,
                          opens,           grace,        state_store, *leases,  layouts->conflicts(),
                          layouts->data(), callbacks,    counters,    locks,    lock_waiters,
                          loop.turns(),    *user_groups, delegations});
    compounds = std::make_unique<mds::Compounds>(*services);
    const auto expiring =
        must(mds::recover_state(boot, state_store, clients, opens, locks, delegation_table, grace,
                                std::max<Milliseconds>(limits.lease, boot.lease_before), [this] {
                                  static_cast<void>(mds::forget_earlier_leases(store, limits.lease));
                                }));
    CHECK(layouts->recover(boot.boot_count,
                           [this](uint64_t client) { return clients.find(client) != nullptr; }));
    leases->start(loop, std::clamp<Milliseconds>(limits.lease / 10, Milliseconds(100), Milliseconds(1000)));
    leases->resume(expiring);
    idle = std::make_unique<mds::IdleConnections>(loop, sessions, limits.lease);
    idle->start();
    service = mds::nfs_service(*compounds, *idle);
  }

  // What was there before is counted a part at each start. With a limit from the first one on: it holds when all is
  // counted.
  void count_quotas(uint64_t limit) {
    constexpr size_t kInodes = 2;
    mds::Quotas& quotas = names->quotas();
    if (boot.boot_count > 1 || limit != 0) (void)must(quotas.begin());
    if (quotas.on() && !quotas.counted())
      (void)must(quotas.count(must(quotas.next_slice(kInodes)), clock.wall_now()));
    const mds::QuotaId owner{mds::QuotaKind::kUser, kOwnerOfClones};
    if (limit != 0 && boot.boot_count == 1)
      (void)must(
          quotas.set_limits(owner, {.space = {.soft = 0, .hard = limit}, .inodes = {}}, clock.wall_now()));
  }

  // By either of its names; none: it has not been made yet.
  mds::Outcome<mds::InodePointer> find(size_t file) const {
    const ServedFile known = served(file, {});
    const auto found = names->lookup(mds::kRootInode, known.name);
    return found ? found : names->lookup(mds::kRootInode, known.other_name);
  }

  std::shared_ptr<WireStream> accept(const std::shared_ptr<Wire>& wire) {
    auto stream = std::make_shared<WireStream>(loop, wire);
    const auto connection = rpc::Connection::start(loop, stream, service.options, service.on_call);
    service.on_accept(connection);
    return stream;
  }

  VirtualClock clock;
  SeededRandom random;
  EventLoop loop;
  mds::Counters counters;
  mds::ServerLimits limits;
  SyncedStore store;
  mds::BootRecord boot;
  std::unique_ptr<mds::Namespace> names;
  std::unique_ptr<mds::BrickList> list;
  mds::Exports exports;
  std::unique_ptr<mds::HandleKeys> handles;
  mds::ClientTable clients;
  mds::SessionTable sessions;
  mds::OpenTable opens;
  mds::LockTable locks;
  mds::StateStore state_store;
  mds::GracePeriod grace;
  mds::CallbackChannel callbacks;
  mds::LockWaiters lock_waiters;
  mds::DelegationTable delegation_table;
  mds::Delegations delegations;
  mds::LayoutCallbacks layout_callbacks;
  BrickControls controls;
  mds::ServerIdentity identity;
  const size_t clone_slice;
  NoNames name_service;
  std::unique_ptr<mds::DataPlane> layouts;
  std::unique_ptr<mds::LeaseKeeper> leases;
  std::unique_ptr<mds::UserGroups> user_groups;
  std::unique_ptr<mds::Services> services;
  std::unique_ptr<mds::Compounds> compounds;
  std::unique_ptr<mds::IdleConnections> idle;
  rpc::Service service;
  std::map<const Wire*, std::shared_ptr<WireStream>> streams;
};

RealMds::RealMds(MdsNetwork& network, std::vector<ServedBrick*> bricks, size_t files, size_t clones,
                 Milliseconds lease, Milliseconds contended, bool quotas, uint64_t seed)
    : network_(network),
      bricks_(std::move(bricks)),
      files_(files),
      clones_(clones),
      lease_(lease),
      contended_(contended),
      quotas_(quotas),
      seed_(seed),
      dice_(seed) {
  network_.serve(*this);
  start();
  while (!up_) (void)changed.wait(SteadyTime::max(), "the start of the MDS");
}

RealMds::~RealMds() {
  if (up_) stop(false);
}

void RealMds::make_files() {
  const auto handle_of = [&](const mds::InodePointer& inode) {
    return process_->handles->encode({.export_id = process_->exports.find_path("/")->id,
                                      .inode = inode->id,
                                      .generation = inode->generation});
  };
  root_ = handle_of(process_->names->get(mds::kRootInode).value());
  for (size_t file = 0; file < files_; ++file) {
    const auto found = process_->find(file);
    if (!found) {
      CHECK(served_.size() == file);
      const uint32_t owner = file + clones_ < files_ ? 0 : kOwnerOfClones;
      auto made = process_->names->create(mds::kRootInode, served(file, {}).name,
                                          mds::NewInode{.mode = 0644, .uid = owner});
      CHECK(made.has_value());
      served_.push_back(served(file, handle_of(made->inode)));
      inodes_.push_back(made->inode->id);
    } else if (!(served_[file].handle == handle_of(*found))) {
      on_violation("a filehandle has changed");
    }
  }
  (void)process_->store.sync();
}

void RealMds::start() {
  host_ = simulated::Scheduler::current().make_host();
  const simulated::Scheduler::OnHost on_host(host_);
  simulated::Thread([this] { serve(); });
}

void RealMds::serve() {
  process_ = new Process(bricks_, rows_, copies_, "boot " + std::to_string(host_boots_), lease_, contended_,
                         1 + seed_ % 3, dice_);
  if (quotas_) process_->count_quotas(clones_ == 0 || seed_ % 2 == 0 ? 0 : (1 + seed_ / 2 % 3) << 20);
  make_files();
  process_->begin([this](const std::string& what) { on_violation(what); });
  up_ = true;
  changed.ring();
  process_->loop.run();
}

void RealMds::stop(bool host) {
  up_ = false;
  simulated::Scheduler::current().kill(host_);
  Process& process = *std::exchange(process_, nullptr);
  network_.close_all();
  add_counts(process);
  const size_t unsynced = process.store.unsynced();
  // What they hold belongs to fibers that are no more: never taken apart.
  (void)new mds::SyncWaiters(process.store.take_waiters());
  process.store.crash(host ? dice_.below(unsynced + 1) : unsynced);
  process.store.go_warm();
  rows_ = process.store.dump();
  copies_ = process.store.copies();
  check_store(process);
  if (host) ++host_boots_;
}

// It has to be sound wherever it died.
void RealMds::check_store(Process& process) const {
  const auto report = mds::check_namespace(process.store);
  if (!report) return on_violation("what it leaves cannot be read: " + report.error().to_string());
  for (const std::string& problem : report->problems) on_violation("what it leaves is not sound: " + problem);
}

void RealMds::message(const std::shared_ptr<Wire>& wire, Bytes record) {
  if (!up_) return;
  process_->loop.post([this, process = process_, wire, record = std::move(record)]() mutable {
    if (!wire->server_open) return;
    auto& stream = process->streams[wire.get()];
    if (!stream) {
      stream = process->accept(wire);
      if (on_event) stream->on_send = [this, wire](ByteSpan sent) { tell(*wire, "is sent", sent); };
    }
    if (on_event) tell(*wire, "sends", record);
    stream->arrived(std::move(record));
  });
}

// Operations with their statuses, where they have some.
void RealMds::tell(const Wire& wire, const char* what, ByteSpan record) const {
  std::string text = "client " + std::to_string(wire.client) + " " + what;
  const auto start = rpc::peek_message(record);
  xdr::Decoder decoder(record);
  rpc::ReplyHeader reply;
  if (start && start->type == rpc::MessageType::kReply && xdr::decode(decoder, reply)) {
    if (const auto results = xdr::decode_from<nfs4::CompoundResults>(decoder.rest())) {
      for (const auto& result : results->operations)
        text += fmt::format(" {}={}", nfs4::to_string(nfs4::operation_of(result)),
                            nfs4::to_string(nfs4::status_of(result)));
    }
  } else if (start && rpc::decode_call(decoder)) {
    auto reader = nfs4::CompoundReader::open(decoder.rest());
    while (reader && reader->left() > 0)
      text += fmt::format(" {}", nfs4::to_string(reader->next().operation));
  }
  on_event(text);
}

void RealMds::closed(const std::shared_ptr<Wire>& wire) {
  if (!up_) return;
  process_->loop.post([process = process_, wire] {
    const auto found = process->streams.find(wire.get());
    if (found == process->streams.end()) return;
    const auto stream = found->second;
    process->streams.erase(found);
    stream->closed();
  });
}

void RealMds::brick_changed(size_t brick) {
  if (up_) process_->controls.changed(brick);
}

bool RealMds::in_grace() const {
  return up_ && process_->grace.active();
}

void RealMds::expire(size_t client) {
  const std::string owner = std::to_string(client);
  bool done = false;
  while (!done) {
    while (!up_) (void)changed.wait(SteadyTime::max(), "the MDS");
    Process* const process = process_;
    process->loop.post([this, process, owner, &done] {
      const auto known = process->clients.find_confirmed(as_bytes(owner));
      const auto tell = [this, &done] {
        done = true;
        changed.ring();
      };
      if (!known) return tell();
      process->leases->retire(known, tell);
    });
    while (!done && process_ == process)
      (void)changed.wait(steady_now() + Milliseconds(50), "the end of a client at the MDS");
  }
}

uint64_t RealMds::id_of(size_t client) const {
  if (!up_) return 0;
  const auto known = process_->clients.find_confirmed(as_bytes(std::to_string(client)));
  return known ? known->id : 0;
}

bool RealMds::gone(uint64_t id) const {
  return up_ && !process_->clients.find(id) &&
         std::ranges::none_of(bricks_, [&](const ServedBrick* brick) { return brick->lets_in(id); });
}

void RealMds::recall_any(size_t client, uint32_t keep) {
  if (!up_) return;
  process_->loop.post([process = process_, owner = std::to_string(client), keep] {
    if (const auto known = process->clients.find_confirmed(as_bytes(owner)))
      process->layout_callbacks.recall_any(known->id, keep);
  });
}

// As its CLOSE does, without one.
void RealMds::disown(size_t client, size_t file) {
  if (!up_) return;
  process_->loop.post([process = process_, owner = std::to_string(client), file] {
    const auto known = process->clients.find_confirmed(as_bytes(owner));
    const auto inode = process->find(file);
    if (!known || !inode) return;
    mds::OpenState* open = nullptr;
    for (mds::OpenState* each : process->opens.opens_of_client(known->id))
      if (each->inode == (*inode)->id) open = each;
    if (open == nullptr || !process->state_store.erase(*open, {})) return;
    process->opens.remove(*open);
    if (!process->opens.is_open((*inode)->id))
      process->layouts->conflicts().on_last_close({(*inode)->id}, [] {});
  });
}

void RealMds::revoke(size_t client, size_t file) {
  if (!up_) return;
  process_->loop.post([process = process_, owner = std::to_string(client), file] {
    const auto known = process->clients.find_confirmed(as_bytes(owner));
    const auto inode = process->find(file);
    if (!known || !inode) return;
    process->layouts->layouts().revoke_layout(known->id, (*inode)->id, [](std::optional<size_t>) {});
  });
}

void RealMds::recall(size_t file, uint64_t offset, uint64_t length) {
  if (!up_) return;
  process_->loop.post([process = process_, file, offset, length] {
    const auto inode = process->find(file);
    if (inode) process->layouts->layouts().clear((*inode)->id, mds::range_of(offset, length), 0, [](bool) {});
  });
}

std::optional<RealMds::Answer> RealMds::ask(const std::function<void(Process&, Tell)>& work) {
  while (!up_) (void)changed.wait(SteadyTime::max(), "the MDS");
  Process* const process = process_;
  const auto answer = std::make_shared<std::optional<Answer>>();
  process->loop.post([this, process, answer, work] {
    work(*process, [this, answer](Answer told) {
      told.time = simulated::Scheduler::current().look();
      *answer = std::move(told);
      changed.ring();
    });
  });
  while (!*answer && process_ == process)
    (void)changed.wait(steady_now() + Milliseconds(50), "an answer to the administrator");
  return *answer;
}

std::optional<RealMds::Answer> RealMds::take_snapshot(const std::string& name) {
  return ask([name](Process& process, const Tell& tell) {
    process.layouts->snapshots().take(name, [tell](const Result<mds::SnapshotNumber>& taken) {
      tell({taken ? "" : taken.error().to_string(), taken.value_or(0), {}});
    });
  });
}

std::optional<RealMds::Answer> RealMds::remove_snapshot(const std::string& name) {
  return ask([name](Process& process, const Tell& tell) {
    process.layouts->snapshots().remove(
        name, [tell](const Result<>& removed) { tell({removed ? "" : removed.error().to_string(), 0, {}}); });
  });
}

bool RealMds::copies_metadata() const {
  return up_ && process_->store.copies_metadata();
}

std::map<std::string, uint32_t> RealMds::snapshots() const {
  std::map<std::string, uint32_t> ready;
  for (const auto& [number, snapshot] : process_->names->snapshots().all()) {
    if (!snapshot.is_ready()) continue;
    if (!ready.emplace(snapshot.name, number).second) on_violation("two snapshots of one name");
  }
  return ready;
}

std::map<size_t, RealMds::StoredFile> RealMds::files_in(uint32_t snapshot) const {
  std::map<size_t, StoredFile> files;
  mds::CheckpointView copy(process_->store, snapshot);
  for (size_t file = 0; file < inodes_.size(); ++file) {
    const auto row = copy.get(mds::number_key(mds::kInodeTag, inodes_[file]));
    if (!row) on_violation("a snapshot cannot be read: " + row.error().to_string());
    if (!row || !*row) continue;
    const auto inode = mds::read_value<mds::Inode>(**row, "an inode");
    const auto extents = mds::Extents(copy).all(inodes_[file]);
    if (!inode || !extents) on_violation("a snapshot cannot be read");
    files[file] = {inode->size, *extents};
  }
  return files;
}

void RealMds::remove_files() {
  (void)ask([this](Process& process, const Tell& tell) {
    for (size_t file = 0; file < files_; ++file) {
      const ServedFile known = served(file, {});
      for (const std::string& name : {known.name, known.other_name, known.second_name}) {
        const auto removed = process.names->remove(mds::kRootInode, name);
        if (removed && removed->orphaned) process.layouts->conflicts().on_orphaned(removed->inode->id);
      }
    }
    tell({});
  });
}

uint64_t RealMds::held() const {
  return process_->layouts->snapshots().held();
}

void RealMds::add_counts(const Process& process) {
  revocations_ += process.counters.layouts_revoked;
  delegations_.granted += process.counters.delegations_granted;
  delegations_.recalled += process.counters.delegations_recalled;
  delegations_.revoked += process.counters.delegations_revoked;
}

uint64_t RealMds::revocations() const {
  return revocations_ + (up_ ? process_->counters.layouts_revoked : 0);
}

RealMds::DelegationCounts RealMds::delegations() const {
  DelegationCounts counts = delegations_;
  if (!up_) return counts;
  counts.granted += process_->counters.delegations_granted;
  counts.recalled += process_->counters.delegations_recalled;
  counts.revoked += process_->counters.delegations_revoked;
  return counts;
}

}  // namespace pnfsrdma::sim
