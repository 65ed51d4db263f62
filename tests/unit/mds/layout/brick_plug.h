// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/mds/layout/brick_connection.h"

namespace pnfsrdma::mds::testing {

// Bricks in this process, by address: connect() gives the MDS their Control as it is, and the test says when
// the connection comes and goes. Outlives every MDS that uses it.
class BrickPlug {
 public:
  void lend(const std::string& address, brick::Control& control) { bricks_[address].control = &control; }
  ConnectBrick connector() {
    return [this](const std::string& address, brick::BrickClient::Events events) {
      Brick& brick = bricks_.at(address);
      brick.events = std::move(events);
      return std::make_unique<Lent>(*brick.control);
    };
  }
  void up(const std::string& address) { bricks_.at(address).events.on_connected(); }
  void down(const std::string& address) {
    bricks_.at(address).events.on_lost(Error(ECONNRESET, "unplugged"));
  }

 private:
  struct Lent final : BrickConnection {
    explicit Lent(brick::Control& lent) : control_(lent) {}
    brick::Control& control() override { return control_; }
    brick::Control& control_;
  };
  struct Brick {
    brick::Control* control = nullptr;
    brick::BrickClient::Events events;
  };
  std::map<std::string, Brick> bricks_;
};

}  // namespace pnfsrdma::mds::testing
