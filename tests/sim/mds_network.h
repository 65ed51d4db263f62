// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "shared/base/result.h"
#include "shared/initiator/session/socket.h"
#include "tests/sim/dice.h"
#include "tests/sim/scheduler.h"

namespace pnfsrdma::sim {

class MdsNetwork;

// A connection of a session as TCP makes one, in whole records without their marks: each way they keep their
// order, and what has left arrives unless the connection dies.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  static constexpr size_t kToServer = 0, kToClient = 1;

  Wire(MdsNetwork& network, size_t client) : network(network), client(client) {}

  MdsNetwork& network;
  const size_t client;
  bool client_open = true, server_open = true;

  // `taken`: the client has received it.
  void to_client(Bytes record, std::function<void()> taken = {});
  void to_server(Bytes record);
  // One end ends it; the other hears of it behind what was sent before.
  void close_client();
  void close_server();
  // It dies between them: of what is on its way some arrives.
  void cut(Dice& dice);
  // The client's host dies: of what it has sent some arrives.
  void abandon(Dice& dice);

  // --- the client's end
  struct Letter {
    Bytes record;
    std::function<void()> taken;
  };
  std::deque<Letter> inbox;
  bool readable() const { return !inbox.empty() || !client_open; }
  simulated::Bell changed;
  // Whoever watches the socket while nobody receives.
  std::weak_ptr<simulated::Bell> watcher;

 private:
  friend class MdsNetwork;
  struct Message {
    SteadyTime due;
    std::function<void()> deliver;
  };
  void send(size_t direction, std::function<void()> deliver);
  void pump(size_t direction);
  void tell();

  std::array<std::deque<Message>, 2> on_its_way_;
};

// Wires between clients and the MDS, and who can reach it. One fiber delivers. Sessions find it by current().
class MdsNetwork {
 public:
  class Server {
   public:
    virtual ~Server() = default;
    virtual bool up() const = 0;
    virtual void message(const std::shared_ptr<Wire>& wire, Bytes record) = 0;
    // The client, or the network, has ended the connection.
    virtual void closed(const std::shared_ptr<Wire>& /*wire*/) {}
  };

  explicit MdsNetwork(uint64_t seed);
  ~MdsNetwork();
  static MdsNetwork& current();
  void serve(Server& server) { server_ = &server; }

  Result<std::shared_ptr<Wire>> connect(size_t client, SteadyTime deadline);
  void set_reachable(size_t client, bool reachable);
  bool reachable(size_t client) const { return !apart_.contains(client); }
  // So long is the next record on its way.
  void delay_next(size_t client, SteadyTime::duration delay) { delays_[client] = delay; }
  void cut(size_t client);
  void abandon(size_t client);
  // No call of the server reaches the client until then; answers do.
  void withhold_callbacks(size_t client, SteadyTime until) { withheld_until_[client] = until; }
  std::optional<SteadyTime> callbacks_withheld_until(size_t client) const {
    const auto found = withheld_until_.find(client);
    return found == withheld_until_.end() ? std::nullopt : std::optional(found->second);
  }
  // The server's process ends.
  void close_all();

 private:
  friend class Wire;
  void schedule(SteadyTime due, const std::shared_ptr<Wire>& wire, size_t direction);
  SteadyTime::duration latency(size_t client);
  void deliver();
  template <typename Each>
  void each_of(size_t client, Each each);

  Dice dice_;
  Server* server_ = nullptr;
  std::set<size_t> apart_;
  std::map<size_t, SteadyTime::duration> delays_;
  std::map<size_t, SteadyTime> withheld_until_;
  std::vector<std::weak_ptr<Wire>> wires_;
  std::multimap<SteadyTime, std::pair<std::weak_ptr<Wire>, size_t>> due_;
  simulated::Bell due_changed_, way_opened_;
  bool ending_ = false;
  simulated::Thread thread_;
};

// What a session holds of a wire.
class WireSocket final : public initiator::SessionSocket {
 public:
  WireSocket(std::shared_ptr<Wire> wire, Counters& counters) : wire_(std::move(wire)), counters_(counters) {}

  Result<> send(ByteSpan record, Milliseconds patience) override;
  Result<> receive(bool wait, std::vector<Bytes>& records) override;
  void shut_down() override { wire_->close_client(); }
  int fd() const override { return -1; }
  const std::shared_ptr<Wire>& wire() const { return wire_; }

 private:
  const std::shared_ptr<Wire> wire_;
  Counters& counters_;
};

}  // namespace pnfsrdma::sim
