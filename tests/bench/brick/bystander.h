// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/brick/brick_owner.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::bench {

// Another client of the brick, which must not notice what happens to the attacker: reads or writes 4 KiB of
// a grant of its own, one at a time with a pause between, and notes when each began and how long it took.
// Owns its thread; the results belong to the caller once stop() has returned.
class Bystander {
 public:
  struct Operation {
    int64_t began_ns = 0;
    int64_t took_ns = 0;
  };

  static Result<std::unique_ptr<Bystander>> start(BrickOwner& owner, rdma::Transport& transport,
                                                  const std::string& address, uint64_t client,
                                                  uint64_t logical, bool writes);
  ~Bystander() { stop(); }

  void stop();
  const char* what() const { return writes_ ? "writer" : "reader"; }
  const brick::Grant& grant() const { return grant_; }
  const std::vector<Operation>& operations() const { return operations_; }
  uint64_t errors() const { return errors_; }

 private:
  Bystander(std::unique_ptr<brick::TestClient> client, const brick::Grant& grant, bool writes)
      : client_(std::move(client)), grant_(grant), writes_(writes) {}
  void run();

  std::unique_ptr<brick::TestClient> client_;
  const brick::Grant grant_;
  const bool writes_;
  std::vector<Operation> operations_;
  std::atomic<uint64_t> errors_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace pnfsrdma::bench
