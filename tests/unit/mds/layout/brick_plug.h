// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/mds/bricks/brick_connection.h"

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
      return std::make_unique<Lent>(brick);
    };
  }
  void up(const std::string& address) { bricks_.at(address).events.on_connected(); }
  void refuse(const std::string& address, const Error& why) {
    bricks_.at(address).events.on_unreachable(why);
  }
  void silent_for(const std::string& address, Milliseconds silence) { bricks_.at(address).silence = silence; }
  void down(const std::string& address) {
    bricks_.at(address).events.on_lost(Error(ECONNRESET, "unplugged"));
  }

 private:
  struct Brick {
    brick::Control* control = nullptr;
    brick::BrickClient::Events events;
    Milliseconds silence{0};
  };
  struct Lent final : BrickConnection {
    explicit Lent(const Brick& lent) : brick(lent) {}
    brick::Control& control() override { return *brick.control; }
    Milliseconds silence() const override { return brick.silence; }
    const Brick& brick;
  };
  std::map<std::string, Brick> bricks_;
};

}  // namespace pnfsrdma::mds::testing
