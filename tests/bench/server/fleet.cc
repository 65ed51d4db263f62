// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tests/bench/server/tree.h"

namespace pnfsrdma::bench {
namespace {

constexpr size_t kConnectsAtOnce = 64;
constexpr size_t kUnbounded = SIZE_MAX;
constexpr Milliseconds kTurn{1000};

}  // namespace

Result<> Fleet::each(size_t count, size_t at_once, const std::function<void(size_t, Done)>& begin) {
  size_t begun = 0;
  size_t ended = 0;
  Result<> outcome;
  // After an error what is under way is still waited for: nothing of it outlives this call.
  while (begun > ended || (begun < count && outcome)) {
    while (outcome && begun < count && begun - ended < at_once) {
      begin(begun++, [&](Result<> one) {
        ++ended;
        if (!one && outcome) outcome = std::move(one);
      });
    }
    if (begun > ended) loop_.run_once(kTurn);
  }
  if (!outcome) return std::unexpected(outcome.error().in(target_.name));
  return {};
}

Result<> Fleet::connect(uint32_t count, uint32_t slots) {
  for (uint32_t number = 0; number < count; ++number) {
    ClientOptions options;
    options.owner = fmt::format("bench-server.{}.{}.{}", ::getpid(), target_.name, number);
    options.minor_version = settings_.minor_version;
    options.slots = slots;
    options.credential.machine_name = "bench-server";
    options.credential.uid = settings_.uid;
    options.credential.gid = settings_.gid;
    clients_.push_back(std::make_unique<Client>(loop_, std::move(options)));
  }
  TRY(each(count, kConnectsAtOnce, [this](size_t number, Done done) {
    clients_[number]->establish(target_.address, std::move(done));
  }));
  for (uint32_t number = 0; number < count; ++number) {
    for (uint32_t slot = 0; slot < clients_[number]->slots(); ++slot) {
      workers_.push_back(std::make_unique<Worker>(loop_, *clients_[number], slot, number, tree_));
    }
  }
  return {};
}

Result<> Fleet::play(const Calls& calls) {
  return each(workers_.size(), kUnbounded,
              [&](size_t number, Done done) { workers_[number]->play(calls, std::move(done)); });
}

Result<> Fleet::play_once_each(const Calls& calls) {
  std::vector<Worker*> firsts;
  for (const auto& worker : workers_) {
    if (worker->slot == 0) firsts.push_back(worker.get());
  }
  return each(firsts.size(), kUnbounded,
              [&](size_t number, Done done) { firsts[number]->play(calls, std::move(done)); });
}

Result<> Fleet::renew() {
  static const Calls kNothing = {{.what = "SEQUENCE", .build = [](Worker&, nfs4::CompoundWriter&) {}}};
  return play_once_each(kNothing);
}

Result<> Fleet::leave() {
  TRY(each(clients_.size(), kConnectsAtOnce,
           [this](size_t number, Done done) { clients_[number]->leave(std::move(done)); }));
  workers_.clear();
  clients_.clear();
  return {};
}

uint64_t Fleet::delays() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->delays();
  return sum;
}

Result<> make_tree(EventLoop& loop, const Target& target, const ServerSettings& settings, Tree& tree) {
  tree.name = fmt::format("bench-server.{}", ::getpid());
  for (size_t at = 0; at < settings.path.size();) {
    const size_t end = std::min(settings.path.find('/', at), settings.path.size());
    if (end > at) tree.above.push_back(settings.path.substr(at, end - at));
    at = end + 1;
  }
  tree.folders.resize(kFolders);
  tree.files.resize(kFolders);
  Fleet first(loop, target, settings, tree);
  TRY(first.connect(1, 1));
  TRY(first.play(make_root()));
  TRY(first.leave());
  Fleet builders(loop, target, settings, tree);
  TRY(builders.connect(kFolders, 1));
  TRY(builders.play(make_shared_folder()));
  return builders.leave();
}

Result<> remove_tree(EventLoop& loop, const Target& target, const ServerSettings& settings, Tree& tree) {
  Fleet builders(loop, target, settings, tree);
  TRY(builders.connect(kFolders, 1));
  TRY(builders.play(remove_folders()));
  TRY(builders.leave());
  Fleet last(loop, target, settings, tree);
  TRY(last.connect(1, 1));
  TRY(last.play(remove_root()));
  return last.leave();
}

}  // namespace pnfsrdma::bench
