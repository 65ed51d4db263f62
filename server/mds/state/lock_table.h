// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "server/mds/state/client.h"
#include "server/mds/state/owner_index.h"
#include "server/mds/state/range_index.h"
#include "server/mds/state/stateid.h"
#include "shared/nfs4/range_locks.h"

namespace pnfsrdma::mds {

class StateMemory;

// The byte-range locks of one lock owner on one file, behind one stateid (RFC 8881, 9.1.1). Made by the
// owner's first LOCK; it stays when the last range is unlocked, until FREE_STATEID or the CLOSE of its open.
// Owned by the LockTable; its address is stable as long as it lives.
struct LockState {
  StateidOther other{};
  uint32_t seqid = 1;
  ClientId client = 0;
  uint64_t inode = 0;
  Bytes owner;          // lock_owner4.owner
  StateidOther open{};  // the open it grew from: with that it ends
  nfs4::RangeLocks ranges;

  nfs4::Stateid stateid() const { return {seqid, other}; }
};

// All byte-range locks, found by stateid, by owner, by file, by client and by open, and those of a file by
// their bytes, each in O(log n) of what there is; conflict() passes over the asker's own. Control loop only.
// It knows nothing of the store: whoever changes a state also writes its record (state_store.h).
class LockTable {
 public:
  // In the order of clients, then of stateids.
  struct Order {
    bool operator()(const LockState* a, const LockState* b) const {
      return std::tie(a->client, a->other) < std::tie(b->client, b->other);
    }
  };
  using Set = std::set<LockState*, Order>;

  // `memory` counts them; null: nobody does.
  explicit LockTable(StateMemory* memory = nullptr) : memory_(memory) {}
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  LockState* find(const StateidOther& other);
  LockState* find(ClientId client, uint64_t inode, ByteSpan owner);
  const Set& locks_of_open(const StateidOther& open) const;
  const Set& locks_of_client(ClientId client) const;
  const Set& locks_of_file(uint64_t inode) const;

  // Somebody else's lock that keeps this owner from locking `wanted`.
  struct Conflict {
    const LockState* holder = nullptr;
    nfs4::LockRange range;
  };
  std::optional<Conflict> conflict(uint64_t inode, const nfs4::LockRange& wanted, ClientId client,
                                   ByteSpan owner) const;

  LockState& add(LockState state);
  // `changed` is `state` with other ranges and another seqid.
  void replace(LockState& state, LockState changed);
  void remove(LockState& state) { remove(std::span<LockState* const>(std::array{&state})); }
  // Whoever waits is looked for once a file, however many locks of it go.
  void remove(std::span<LockState* const> states);
  size_t size() const { return by_other_.size(); }
  // Whether there is memory for one more range of this client.
  bool has_room(ClientId client) const;

  // Called when locks of a file may have become less, with the ranges that are not held any more as they
  // were.
  using Released = std::function<void(uint64_t inode, std::span<const nfs4::LockRange> ranges)>;
  void set_released(Released released) { released_ = std::move(released); }

 private:
  // Readers' ranges may overlap each other, a writer's none of anybody else's: who reads looks at writers
  // only.
  struct File {
    Set locks;
    RangeIndex<LockState*> shared;
    RangeIndex<LockState*> exclusive;
    RangeIndex<LockState*>& of(const nfs4::LockRange& range) { return range.exclusive ? exclusive : shared; }
  };
  void index(LockState& state, std::span<const nfs4::LockRange> ranges);
  void unindex(LockState& state, std::span<const nfs4::LockRange> ranges);
  void released(uint64_t inode, std::span<const nfs4::LockRange> ranges) const {
    if (released_ && !ranges.empty()) released_(inode, ranges);
  }

  StateMemory* const memory_;
  std::unordered_map<StateidOther, std::unique_ptr<LockState>, StateidOtherHash> by_other_;
  OwnerIndex<LockState> by_owner_;
  std::unordered_map<uint64_t, File> by_file_;
  std::unordered_map<ClientId, Set> by_client_;
  std::unordered_map<StateidOther, Set, StateidOtherHash> by_open_;
  Released released_;
};

}  // namespace pnfsrdma::mds
