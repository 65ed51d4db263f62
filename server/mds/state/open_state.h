// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "server/mds/state/client.h"
#include "server/mds/state/owner_index.h"
#include "server/mds/state/stateid.h"

namespace pnfsrdma::mds {

class StateMemory;

// Bits of share_access and share_deny (RFC 8881, 18.16.1) without the wishes about delegations.
inline constexpr uint32_t kShareRead = 1;
inline constexpr uint32_t kShareWrite = 2;
inline constexpr uint32_t kShareBoth = 3;

// One owner's open of one file. Owned by the OpenTable; its address is stable until the CLOSE.
struct OpenState {
  StateidOther other{};
  uint32_t seqid = 1;
  ClientId client = 0;
  uint64_t inode = 0;
  Bytes owner;          // open_owner4.owner
  uint32_t access = 0;  // kShare*: what is open now
  uint32_t deny = 0;
  uint16_t combinations =
      0;  // bit access * 4 + deny: asked for by some OPEN (OPEN_DOWNGRADE, RFC 8881, 18.18.3)

  nfs4::Stateid stateid() const { return {seqid, other}; }
};

// All opens, found by stateid, by file with its owner, and by client; each in O(log n) of what there is. What a file is
// open for, by everybody and by one client, is counted: nobody looks through opens to find out. Control loop only.
// It knows nothing of the store: whoever changes a state also writes its record (state_store.h).
class OpenTable {
 public:
  // In the order of clients, then of stateids.
  struct Order {
    bool operator()(const OpenState* a, const OpenState* b) const {
      return std::tie(a->client, a->other) < std::tie(b->client, b->other);
    }
  };
  using Set = std::set<OpenState*, Order>;

  // `memory` counts them; null: nobody does.
  explicit OpenTable(StateMemory* memory = nullptr) : memory_(memory) {}
  OpenTable(const OpenTable&) = delete;
  OpenTable& operator=(const OpenTable&) = delete;

  OpenState* find(const StateidOther& other);
  OpenState* find(ClientId client, uint64_t inode, ByteSpan owner);
  // Whether anybody, or anybody but `client`, has the file open.
  bool is_open(uint64_t inode) const { return by_file_.contains(inode); }
  bool is_open_by_others(uint64_t inode, ClientId client) const;
  const Set& opens_of_file(uint64_t inode) const;
  // Each of them once, in order, however often it has the file open.
  std::vector<ClientId> clients_of_file(uint64_t inode) const;
  const Set& opens_of_client(ClientId client) const;
  // kShare*: what this client has the file open for, by all of its opens together; 0: it has not.
  uint32_t access_of_client(uint64_t inode, ClientId client) const;

  // Whether anybody but `client` has it open for writing.
  bool is_written_by_others(uint64_t inode, ClientId client) const;

  // Share reservations (RFC 8881, 9.7): false if another open denies `access` or has what `deny` forbids.
  // `except` may be null.
  bool share_allowed(uint64_t inode, uint32_t access, uint32_t deny, const OpenState* except) const;
  // The same for I/O under a special stateid, which has no open of its own.
  bool access_denied_by_others(uint64_t inode, uint32_t access) const {
    return !share_allowed(inode, access, 0, nullptr);
  }

  OpenState& add(OpenState state);
  // `changed` is `state` with other rights and another seqid.
  void replace(OpenState& state, OpenState changed);
  void remove(OpenState& state);
  size_t size() const { return by_other_.size(); }
  // Whether there is memory for one more of this client.
  bool has_room(ClientId client) const;

 private:
  // How many opens there are, how many of them have a right, and how many deny it: by kShareRead - 1 and
  // kShareWrite - 1.
  struct Shares {
    size_t opens = 0;
    std::array<size_t, 2> access{};
    std::array<size_t, 2> deny{};
    void count(const OpenState& state, size_t by);
  };
  struct File {
    Set opens;
    Shares shares;                         // of all of them
    std::map<ClientId, Shares> by_client;  // of those who have some

    void count(const OpenState& state, size_t by);
    size_t writers_of(ClientId client) const;
  };
  StateMemory* const memory_;
  std::unordered_map<StateidOther, std::unique_ptr<OpenState>, StateidOtherHash> by_other_;
  std::unordered_map<uint64_t, File> by_file_;
  std::unordered_map<ClientId, Set> by_client_;
  OwnerIndex<OpenState> by_owner_;
};

}  // namespace pnfsrdma::mds
