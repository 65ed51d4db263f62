// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace pnfsrdma::sim {

// What can happen to a brick, whoever governs it.
class Brick {
 public:
  virtual ~Brick() = default;
  // Bytes that were not flushed are gone, or some of them: told before it happens.
  std::function<void()> on_loss;

  virtual bool up() const = 0;
  // The process ends and starts again after a while. `lose`: with the memory's power.
  virtual void stop(bool lose) = 0;
  virtual void start() = 0;
  // The next flush fails: the verifier changes.
  virtual void fail_next_flush() = 0;
  virtual void forget_orders() = 0;
};

}  // namespace pnfsrdma::sim
