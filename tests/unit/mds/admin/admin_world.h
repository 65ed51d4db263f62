// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/mds/admin/administrator.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/layouts.h"
#include "tests/unit/mds/layout/layout_world.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds::testing {

// The other end of a connection that says nothing.
class SilentStream final : public rpc::MessageStream {
 public:
  explicit SilentStream(std::string peer) : peer_(std::move(peer)) {}
  void start(Handlers /*handlers*/) override {}
  void send(Bytes /*head*/, std::shared_ptr<const Bytes> /*body*/) override {}
  void pause() override {}
  void resume() override {}
  void close() override {}
  size_t unsent_bytes() const override { return 0; }
  const std::string& peer() const override { return peer_; }
  std::string transport() const override { return "tcp"; }

 private:
  const std::string peer_;
};

// What an administrator looks at: the MDS with fake bricks, and tables that tests fill past the protocol. What is
// held counts, not how it was got.
class AdminWorld {
 public:
  explicit AdminWorld(uint64_t blocks = 64, std::vector<uint64_t> others = {})
      : layouts(blocks, std::move(others)) {}
  ~AdminWorld() {
    for (const rpc::ConnectionPointer& connection : connections_) connection->close();
  }

  LayoutWorld layouts;
  TestHost host;
  TestServer server{host};
  Config config;
  rpc::MemoryBudget memory{layouts.clock, {}};
  Administrator administrator{{.loop = layouts.loop,
                               .clock = layouts.clock,
                               .counters = layouts.counters,
                               .store = layouts.store,
                               .names = *layouts.names,
                               .exports = server.exports,
                               .handles = *server.handles,
                               .clients = server.clients,
                               .sessions = server.sessions,
                               .opens = server.opens,
                               .locks = server.locks,
                               .delegations = server.delegations,
                               .grace = server.grace,
                               .memory = memory,
                               .leases = server.leases,
                               .layouts = *layouts.mds,
                               .compounds = server.compounds,
                               .config = config,
                               .limits = server.limits,
                               .user_groups = server.user_groups}};

  // A client with so many sessions, each with a connection.
  ClientId add_client(size_t sessions = 1) {
    const size_t number = server.clients.size();
    const std::string owner = fmt::format("pnfsrdma-host{}-{:032x}", number, number);
    const auto client = server.clients.add(as_bytes(owner), {}, {});
    server.clients.confirm(*client);
    for (size_t i = 0; i < sessions; ++i) {
      const auto session = server.sessions.create(client, {.max_requests = 1}, {});
      const std::string peer = fmt::format("10.{}.{}.7:{}", number >> 8, number & 255, 700 + i);
      connections_.push_back(
          rpc::Connection::start(layouts.loop, std::make_shared<SilentStream>(peer), {}, nullptr));
      session->bind_fore(connections_.back());
    }
    return client->id;
  }
  void add_open(ClientId client, InodeId inode) {
    OpenState open;
    open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), host.random);
    open.client = client;
    open.inode = inode;
    open.owner.assign(open.other.begin(), open.other.end());
    open.access = kShareRead;
    server.opens.add(std::move(open));
  }
  // With so many grants of a grain each, beside one another in the file.
  void add_layout(ClientId client, InodeId inode, size_t grants = 1, uint16_t export_id = 0) {
    auto& table = const_cast<LayoutTable&>(layouts.mds->table());  // past the brick
    std::array<std::byte, 12> other{};
    store_big_endian(other.data() + 4, next_++);
    HeldLayout& layout = table.add(inode, client, other);
    layout.set_handle(export_id, 1, false);
    for (uint64_t at = 0; at < grants; ++at) {
      table.add_grant(layout, {.grant = next_++,
                               .file = {at * kGrainSize, (at + 1) * kGrainSize},
                               .logical = at * 2 * kGrainSize,
                               .writable = true});
    }
  }

 private:
  std::vector<rpc::ConnectionPointer> connections_;
  uint64_t next_ = 1;
};

}  // namespace pnfsrdma::mds::testing
