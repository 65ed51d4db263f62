// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tests/bench/server/settings.h"
#include "tests/bench/server/worker.h"

namespace pnfsrdma::bench {

// So many clients of one server. Its methods run the loop until they are through: one at a time, nothing else
// of the loop's user is under way.
class Fleet {
 public:
  // `tree` must live as long.
  Fleet(EventLoop& loop, const Target& target, const ServerSettings& settings, Tree& tree)
      : loop_(loop), target_(target), settings_(settings), tree_(tree) {}

  // Clients 0 … count - 1 with so many slots each, and a worker for each slot that was granted.
  Result<> connect(uint32_t count, uint32_t slots);
  // Every worker makes the calls, all at once; or only the first of each client.
  Result<> play(const Calls& calls);
  Result<> play_once_each(const Calls& calls);
  // The leases begin anew: one SEQUENCE of each client.
  Result<> renew();
  Result<> leave();

  const std::vector<std::unique_ptr<Client>>& clients() const { return clients_; }
  // Those of one client stand together, in the order of clients.
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  uint64_t delays() const;
  const Target& target() const { return target_; }

 private:
  using Done = Worker::Done;
  // Runs begin(0) … begin(count - 1), at most `at_once` under way, until all are done or the first error.
  Result<> each(size_t count, size_t at_once, const std::function<void(size_t, Done)>& begin);

  EventLoop& loop_;
  const Target& target_;
  const ServerSettings& settings_;
  Tree& tree_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// The folder of the generator on a server, made and removed by clients of their own.
Result<> make_tree(EventLoop& loop, const Target& target, const ServerSettings& settings, Tree& tree);
Result<> remove_tree(EventLoop& loop, const Target& target, const ServerSettings& settings, Tree& tree);

}  // namespace pnfsrdma::bench
