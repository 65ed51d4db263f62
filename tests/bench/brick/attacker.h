// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/brick/behaviour.h"
#include "tests/bench/brick/brick_owner.h"
#include "tests/bench/brick/orders.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::bench {

// The client that loses its grant: a process of its own, so that it can be stopped. It takes orders on stdin
// and reports on stdout, one line each (orders.h), and writes in between. One thread.
class Attacker {
 public:
  Attacker(rdma::Transport& transport, std::string address, const Ticket& ticket, Behaviour behaviour);
  // Until the order to stop. The program's exit code.
  int run();

 private:
  void take_orders();
  void obey(const std::vector<std::string>& words);
  bool connect();
  void learn_target();
  void write_on();
  void post_writes();
  void take_completions();
  void refused(const std::string& outcome);
  void break_queue_pair();
  void invalidate(uint32_t key);

  rdma::Transport& transport_;
  const std::string address_;
  const Ticket ticket_;
  const Behaviour behaviour_;

  OrderReader orders_;
  std::unique_ptr<brick::TestClient> client_;
  std::optional<brick::Grant> target_;
  bool stopped_ = false, given_up_ = false;
  uint64_t posted_ = 0, completed_ = 0;
  std::vector<int64_t> posted_at_;  // by posted_ modulo its size
  bool announced_ = false;
  bool breaking_ = false;          // what is refused on this connection is its own doing
  bool refusal_reported_ = false;  // of this connection
  uint64_t refusals_ = 0, connections_ = 0;
  int64_t last_success_posted_ = 0;
};

}  // namespace pnfsrdma::bench
