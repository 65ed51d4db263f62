// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/log/log_server.h"

#include <cerrno>
#include <optional>

#include "shared/base/check.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::sim {
namespace {

constexpr const char* kRegister = "register";
// Of both hosts together below kClockDrift / kLeadTime.
constexpr double kRateMax = 0.024;

double some_rate(Dice& dice) {
  return 1 + kRateMax * (static_cast<double>(dice.below(2001)) / 1000 - 1);
}

}  // namespace

struct LogServer::Process {
  Process(LogServer& server, uint64_t seed)
      : random(seed),
        loop(server.loop_clock_),
        member(std::make_unique<mds::LogMember>(
            loop, random,
            mds::LogMember::Options{
                .prefix = "/log",
                .name = "server" + std::to_string(server.index_),
                .place = "host" + std::to_string(server.index_) + "-boot" + std::to_string(server.boots_),
                .connect = server.etcd_.connector(server.index_, server.lead_clock_),
                .clock = server.lead_clock_,
                .status = {}})) {
    auto made = std::make_unique<mds::MemoryStore>(loop, mds::MemoryStore::Syncing::kManual);
    mds::Batch all;
    for (const auto& [key, value] : server.disk_) all.put(key, value);
    if (!all.empty()) CHECK(made->commit(all, mds::CommitKind::kState));
    CHECK(made->sync());
    disk = made.get();
    store = std::move(made);
  }

  SeededRandom random;
  EventLoop loop;
  std::unique_ptr<mds::LogMember> member;
  mds::MemoryStore* disk = nullptr;           // null: the process has done with it
  std::unique_ptr<mds::KeyValueStore> store;  // the disk, or the log over it
  bool serves = false;
  bool stopping = false;
  std::optional<Error> failed;
};

LogServer::LogServer(size_t index, ModelEtcd& etcd, LogOracle& oracle, uint64_t seed)
    : index_(index),
      etcd_(etcd),
      oracle_(oracle),
      dice_(seed),
      loop_clock_(1, Milliseconds(0)),
      lead_clock_(some_rate(dice_), Milliseconds(dice_.below(100'000))) {}

void LogServer::start() {
  CHECK(process_ == nullptr);
  simulated::Scheduler& scheduler = simulated::Scheduler::current();
  host_ = scheduler.make_host();
  const simulated::Scheduler::OnHost on_host(host_);
  scheduler.spawn([this, seed = dice_.next()] {
    process_ = new Process(*this, seed);
    run(*process_);
  });
}

void LogServer::run(Process& process) {
  // The disk syncs when it likes.
  std::function<void()> sync = [&] {
    CHECK(process.disk->sync());
    process.loop.after(Milliseconds(dice_.between(50, 3000)), sync);
  };
  process.loop.after(Milliseconds(1), sync);
  const auto leads = process.member->lead(*process.disk, [&] { return process.stopping; });
  if (!leads && leads.error().number() != ESTALE)
    oracle_.violated("server " + std::to_string(index_) + " does not follow: " + leads.error().to_string());
  if (leads && *leads) serve(process);
  keep(*process.disk);
  process.serves = false;
  process.disk = nullptr;
  process.store.reset();
  process.member.reset();  // gives the lead back
  process_ = nullptr;
}

void LogServer::serve(Process& process) {
  process.store =
      process.member->open(std::move(process.store), [&](const Error& error) { process.failed = error; });
  ++terms_;
  oracle_.check(*process.store, "server " + std::to_string(index_) + ", which begins to serve,");
  process.serves = true;
  while (!process.failed && !process.stopping) {
    process.loop.run_once(Milliseconds(dice_.between(1, 120)));
    if (!quiet_ && dice_.one_in(2)) ask(process);
  }
  process.member->loop_ends();
  // A value that is not taken for long, with the lead, is bad luck; anything else of the log is none.
  const int why = process.failed ? process.failed->number() : 0;
  if (why != 0 && why != ESTALE && why != ETIMEDOUT)
    oracle_.violated("server " + std::to_string(index_) + " ends: " + process.failed->to_string());
  if (process.failed) return;
  static_cast<void>(process.store->close());
}

// As a compound is answered: nothing leaves before all that it has seen is logged, and this server leads.
void LogServer::ask(Process& process) {
  mds::KeyValueStore& store = *process.store;
  std::function<void()> reply;
  if (dice_.one_in(3)) {
    const auto shown = store.get(kRegister);
    CHECK(shown);
    reply = [this, shown = *shown ? std::stoull(**shown) : 0, newest = oracle_.newest()] {
      oracle_.read(shown, newest);
    };
  } else {
    const uint64_t number = oracle_.next();
    mds::Batch batch;
    batch.put(oracle_.key_of(number), "");
    batch.put(kRegister, std::to_string(number));
    if (!store.commit(batch, mds::CommitKind::kNamespace)) return;
    reply = [this, number] { oracle_.acknowledged(number); };
  }
  const mds::Sequence seen = store.last_sequence();
  const auto send = [&store, seen, reply] { store.written(seen) ? reply() : store.when_written(reply); };
  seen <= store.synced_sequence() ? send() : store.when_synced(seen, send);
}

void LogServer::keep(const mds::MemoryStore& disk) {
  disk_.clear();
  CHECK(const_cast<mds::MemoryStore&>(disk).scan("", "", [&](std::string_view key, std::string_view value) {
    disk_.emplace(key, value);
    return true;
  }));
}

void LogServer::kill(bool host) {
  simulated::Scheduler::current().kill(host_);
  Process* process = std::exchange(process_, nullptr);
  if (host) ++boots_;
  if (process == nullptr || process->disk == nullptr) return;
  const size_t unsynced = process->disk->unsynced();
  // What they hold belongs to fibers that are no more.
  (void)new mds::SyncWaiters(process->disk->take_waiters());
  process->disk->crash(host ? dice_.below(unsynced + 1) : unsynced);
  keep(*process->disk);
}

void LogServer::stop() {
  if (process_ != nullptr) process_->stopping = true;
}

void LogServer::pause(Milliseconds time) {
  const SteadyTime until = simulated::Scheduler::current().look() + time;
  loop_clock_.pause_until(until);
  lead_clock_.pause_until(until);
}

bool LogServer::leads() {
  const ServerClock::Look look(lead_clock_);
  return process_ != nullptr && process_->serves && !process_->failed && process_->store->written(0);
}

bool LogServer::serves() {
  return process_ != nullptr && process_->serves;
}

mds::MemoryStore::Content LogServer::content() const {
  CHECK(process_ != nullptr);
  mds::MemoryStore::Content rows;
  CHECK(process_->disk->scan("", "", [&](std::string_view key, std::string_view value) {
    rows.emplace(key, value);
    return true;
  }));
  return rows;
}

}  // namespace pnfsrdma::sim
