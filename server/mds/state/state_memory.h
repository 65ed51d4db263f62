// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "server/mds/state/client.h"
#include "shared/base/clock.h"
#include "shared/rpc/memory_budget.h"

namespace pnfsrdma::mds {

class ClientTable;

// What opens, byte-range locks and delegations take of the MemoryBudget, counted by the tables that have them; by
// address, as the budget is: of what state may have, an address may have the share that it may have of everything.
// What there is stays, whatever was said since: only who makes more is refused. Outlives the tables. Control loop only.
class StateMemory {
 public:
  // Estimates of what the heap gives for one with all its places in the indexes, when nothing else is of its file
  // (measured: state_memory_test); the owner's name comes on top.
  static constexpr size_t kOpenBytes = 560;
  static constexpr size_t kLockBytes = 540;
  static constexpr size_t kRangeBytes = 112;  // of a lock
  static constexpr size_t kDelegationBytes = 400;

  StateMemory(rpc::MemoryBudget& budget, const ClientTable& clients) : budget_(budget), clients_(clients) {}
  StateMemory(const StateMemory&) = delete;
  StateMemory& operator=(const StateMemory&) = delete;

  void hold(ClientId client, size_t bytes);
  void give_back(ClientId client, size_t bytes);
  // Whether the client may make more state.
  bool has_room(ClientId client);
  // The same for what it can do without: a quarter is left for the rest.
  bool has_room_to_spare(ClientId client) const;

 private:
  struct Holder {
    std::string address;  // as it was when this began to be counted
    size_t bytes = 0;
  };
  // Whether it is within this share of the limits.
  bool is_within(ClientId client, double share) const;
  std::string address_of(ClientId client) const;

  rpc::MemoryBudget& budget_;
  const ClientTable& clients_;
  std::unordered_map<ClientId, Holder> holders_;
  std::unordered_map<std::string, size_t> by_address_;
  SteadyTime logged_;
};

}  // namespace pnfsrdma::mds
