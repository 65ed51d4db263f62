// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <unistd.h>

#include <cstdio>

#include "shared/base/sync.h"

namespace pnfsrdma::sim {

namespace {

// Of a brick; more than all files need.
constexpr size_t kBlocks = 200, kServedBlocks = 48, kBlocksWithSnapshots = 200;
// Longer than any client is kept from the MDS.
constexpr auto kLongLease = std::chrono::seconds(10);

uint32_t flush_methods(Dice& dice) {
  switch (dice.below(3)) {
    case 0:
      return nfs4::kFlushLayoutCommit;
    case 1:
      return nfs4::kFlushCommitMessage | nfs4::kFlushLayoutCommit;
    default:
      return nfs4::kFlushNative | nfs4::kFlushCommitMessage | nfs4::kFlushLayoutCommit;
  }
}

}  // namespace

World::World(const RunOptions& how)
    : options(how),
      dice(how.seed),
      lease(how.leases_end ? std::chrono::seconds(dice.between(1, 3)) : kLongLease),
      random(how.seed),
      network(dice.next(), random),
      mds_network(dice.next()),
      oracle(kClientsMax, kFiles, [this](const std::string& what) { violated(what); }),
      calm_since(steady_now()) {
  size_t count = 0;
  if (options.real_mds) {
    make_real();
    count = dice.between(2, kClientsMax);
  } else {
    make_model(count);
  }
  clients.resize(count);
  for (size_t i = 0; i < count; ++i) start(i);
}

void World::watch_losses(size_t brick) {
  bricks[brick]->on_loss = [this, brick] {
    trace("brick {} loses what is not flushed", brick);
    for (size_t file = 0; file < kFiles; ++file) {
      if (real_mds || file % kBricks == brick) oracle.may_be_lost(file);
    }
  };
}

void World::make_model(size_t& count) {
  std::vector<ModelBrick*> known;
  for (size_t i = 0; i < kBricks; ++i) {
    auto brick = std::make_unique<ModelBrick>(network, i, kBlocks, flush_methods(dice), dice.next());
    known.push_back(brick.get());
    bricks.push_back(std::move(brick));
    watch_losses(i);
  }
  mds = std::make_unique<ModelMds>(std::move(known), dice.next());
  mds->add_files(kFiles);
  if (options.trace) mds->on_event = [this](const std::string& event) { say("mds: " + event); };
  count = dice.between(2, kClientsMax);
  server = std::make_unique<ModelServer>(*mds, mds_network, count, dice.next());
  server->on_violation = [this](const std::string& what) { violated(what); };
  if (options.trace) server->on_event = [this](const std::string& event) { say("server: " + event); };
  server->on_error = [this](size_t client, ModelServer::Call call, size_t file) {
    trace("client {} file {}: ordered error of call {}", client, file, static_cast<int>(call));
    if (call == ModelServer::Call::kWrite || call == ModelServer::Call::kLayoutCommit)
      oracle.may_be_lost(file, &client);
  };
}

void World::make_real() {
  std::vector<ServedBrick*> known;
  for (size_t i = 0; i < kBricks; ++i) {
    auto brick =
        std::make_unique<ServedBrick>(network, i, options.snapshots ? kBlocksWithSnapshots : kServedBlocks,
                                      flush_methods(dice), dice.next());
    brick->on_violation = [this](const std::string& what) { violated("the MDS at a brick: " + what); };
    known.push_back(brick.get());
    bricks.push_back(std::move(brick));
    watch_losses(i);
  }
  const Milliseconds contended(options.delegations ? dice.between(1, dice.one_in(2) ? 20 : 500) : 0);
  const size_t clones = options.clones ? kClientsMax : 0;
  real_mds = std::make_unique<RealMds>(mds_network, std::move(known), kFiles + clones, clones, lease,
                                       contended, options.quotas, dice.next());
  real_mds->on_violation = [this](const std::string& what) { violated(what); };
  if (options.trace) real_mds->on_event = [this](const std::string& event) { say("mds: " + event); };
}

void World::start(size_t client) {
  // Fibers that are no more still stand in what they used.
  (void)clients[client].release();
  clients[client] = std::make_unique<ModelClient>(client, simulated::Scheduler::current().make_host(),
                                                  network, served(), clock, dice.next());
  started.ring();
}

bool World::alive(size_t client) const {
  return simulated::Scheduler::current().alive(clients[client]->host());
}

void World::crash(size_t client) {
  simulated::Scheduler::current().kill(clients[client]->host());
  network.abandon(client);
  mds_network.abandon(client);
  oracle.died(client);
  locks.forget(client);
}

void World::expire(size_t client) {
  if (real_mds) {
    real_mds->expire(client);
    // What living clients hold is not asked: any of them may.
    return oracle.fenced(client, steady_now(),
                         [&](size_t, uint64_t, uint64_t) { return options.sharing != Sharing::kNone; });
  }
  while (!server->up() || server->serves(client))
    (void)server->changed.wait(SteadyTime::max(), "what the MDS still does for a client");
  server->forget(client);
  mds->expire(client);
  oracle.fenced(client, steady_now(), [&](size_t file, uint64_t offset, uint64_t length) {
    return mds->is_written(mds->file(file), offset, length);
  });
}

void World::wait_for_fence(size_t client, uint64_t incarnation) {
  while (!real_mds->gone(incarnation)) sleep_for(Milliseconds(5));
  oracle.fenced(client, steady_now(),
                [&](size_t, uint64_t, uint64_t) { return options.sharing != Sharing::kNone; });
}

bool World::mds_up() const {
  return real_mds ? real_mds->up() : server->up();
}

void World::wait_for_mds() {
  simulated::Bell& changed = real_mds ? real_mds->changed : server->changed;
  while (!mds_up()) (void)changed.wait(SteadyTime::max(), "the MDS");
}

void World::stop_mds(bool host) {
  if (real_mds) return real_mds->stop(host);
  server->stop();
}

void World::start_mds() {
  if (!real_mds) return server->start();
  real_mds->start();
  wait_for_mds();
}

void World::stop_brick(size_t brick, bool lose) {
  bricks[brick]->stop(lose);
  if (real_mds) real_mds->brick_changed(brick);
}

void World::start_brick(size_t brick) {
  if (!real_mds) mds->brick_lost(brick);
  bricks[brick]->start();
  if (real_mds) real_mds->brick_changed(brick);
}

uint64_t World::held_writes() const {
  uint64_t sum = 0;
  for (const auto& client : clients) sum += client ? client->held_writes() : 0;
  return sum;
}

uint64_t World::opens_under_delegation() const {
  uint64_t sum = 0;
  for (const auto& client : clients) sum += client ? client->opens_under_delegation() : 0;
  return sum;
}

uint64_t World::revocations() const {
  return real_mds ? real_mds->revocations() : mds->revocations();
}

// A lease for the revocation, and one until the client has heard of it.
SteadyTime::duration World::lag(size_t client) const {
  const auto until = mds_network.callbacks_withheld_until(client);
  return until && steady_now() < *until + 2 * lease ? lease : SteadyTime::duration(0);
}

ModelClient::Served World::served() {
  if (real_mds) {
    return {.handle_of = [this](size_t file) { return real_mds->file(file).handle; },
            .root = real_mds->root(),
            .file = [this](size_t file) { return real_mds->file(file); },
            .delegates = options.delegations};
  }
  return {.handle_of = [this](size_t file) { return mds->file(file).handle; }, .root = {}, .file = {}};
}

World::~World() {
  clients.clear();
}

void World::say(const std::string& line) const {
  const auto& scheduler = simulated::Scheduler::current();
  const auto now =
      std::chrono::duration<double, std::milli>(scheduler.look().time_since_epoch() - std::chrono::hours(1));
  const auto* fiber = scheduler.running();
  std::fprintf(stderr, "%12.3f  %3llu  %s\n", now.count(),
               static_cast<unsigned long long>(fiber ? fiber->number : 0), line.c_str());
}

void World::violated(const std::string& what) {
  std::fprintf(stderr, "seed %llu, operation %zu, fault %zu: %s\n",
               static_cast<unsigned long long>(options.seed), operations, faults, what.c_str());
  if (options.trace) std::fputs(simulated::Scheduler::current().describe().c_str(), stderr);
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace pnfsrdma::sim
