// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <unistd.h>

#include <cstdio>

#include "shared/base/sync.h"

namespace pnfsrdma::sim {

namespace {

constexpr size_t kBlocks = 200;  // of a brick; more than all files need

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
      random(how.seed),
      network(dice.next(), random),
      mds_network(dice.next()),
      oracle(kClientsMax, kFiles, [this](const std::string& what) { violated(what); }),
      calm_since(steady_now()) {
  std::vector<ModelBrick*> known;
  for (size_t i = 0; i < kBricks; ++i) {
    bricks.push_back(std::make_unique<ModelBrick>(network, i, kBlocks, flush_methods(dice), dice.next()));
    known.push_back(bricks.back().get());
    bricks.back()->on_loss = [this, i] {
      trace("brick {} loses what is not flushed", i);
      for (size_t file = i; file < kFiles; file += kBricks) oracle.may_be_lost(file);
    };
  }
  mds = std::make_unique<ModelMds>(std::move(known), dice.next());
  mds->add_files(kFiles);
  if (options.trace) mds->on_event = [this](const std::string& event) { say("mds: " + event); };
  const size_t count = dice.between(2, kClientsMax);
  server = std::make_unique<ModelServer>(*mds, mds_network, count, dice.next());
  server->on_violation = [this](const std::string& what) { violated(what); };
  if (options.trace) server->on_event = [this](const std::string& event) { say("server: " + event); };
  server->on_error = [this](size_t client, ModelServer::Call call, size_t file) {
    trace("client {} file {}: ordered error of call {}", client, file, static_cast<int>(call));
    if (call == ModelServer::Call::kWrite || call == ModelServer::Call::kLayoutCommit)
      oracle.may_be_lost(file, &client);
  };
  clients.resize(count);
  for (size_t i = 0; i < count; ++i) start(i);
}

void World::start(size_t client) {
  // Fibers that are no more still stand in what they used.
  (void)clients[client].release();
  clients[client] = std::make_unique<ModelClient>(client, simulated::Scheduler::current().make_host(),
                                                  network, *mds, clock, dice.next());
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
}

void World::expire(size_t client) {
  while (!server->up() || server->serves(client))
    (void)server->changed.wait(SteadyTime::max(), "what the MDS still does for a client");
  server->forget(client);
  mds->expire(client);
  oracle.fenced(client, steady_now(), [&](size_t file, uint64_t offset, uint64_t length) {
    return mds->is_written(mds->file(file), offset, length);
  });
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
