// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "server/mds/state/client.h"
#include "server/mds/state/stateid.h"
#include "shared/base/clock.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

class StateMemory;

// What its holder may do without asking (RFC 8881, 10.4): read the file, for as long as nobody else changes it; or all,
// for as long as nobody else has to do with it.
enum class DelegationKind : uint8_t { kRead, kWrite };

// What somebody does with a file.
enum class FileAct : uint8_t {
  kUse,     // opens, reads or locks it: conflicts with another's write delegation
  kChange,  // conflicts with any delegation of another
};

// A file's times as the holder of a delegation has them (RFC 9754, 5).
struct HeldTimes {
  std::optional<WallTime> access, modify;

  bool any() const { return access || modify; }
};

// One client's delegation of one file. Its stateid never gets another version. Owned by the DelegationTable; its
// address is stable until it is removed.
struct DelegationState {
  StateidOther other{};
  ClientId client = 0;
  uint64_t inode = 0;
  DelegationKind kind = DelegationKind::kRead;
  nfs4::FileHandle handle;  // as the client knows the file: a recall names it so
  bool revoked = false;     // conflicts with nobody any more; there until FREE_STATEID
  // Of a write delegation: the change attribute that came with it, which its holder tells us as long as he holds no
  // change that we do not know. None: it was given by a version that did not keep it on record.
  std::optional<uint64_t> change_told;
  // The last size that its holder told and others were shown, with the change attribute of then.
  struct Shown {
    uint64_t size = 0;
    uint64_t change = 0;
  };
  std::optional<Shown> shown = std::nullopt;
  // RFC 9754, 5: its holder keeps the file's times. Of one to read that is only remembered as on record: perhaps.
  bool keeps_times = false;
  // Then: the file's when it was given. None: it was given before a restart.
  std::optional<WallTime> mtime_then = std::nullopt;

  nfs4::Stateid stateid() const { return {kSeqid, other}; }
  static constexpr uint32_t kSeqid = 1;
};

// All delegations, found by stateid, by file and by client, each in O(log n) of what there is. Control loop
// only. It knows nothing of the store: whoever changes a state also writes its record (state_store.h).
class DelegationTable {
 public:
  // In the order of clients, then of stateids.
  struct Order {
    bool operator()(const DelegationState* a, const DelegationState* b) const {
      return std::tie(a->client, a->other) < std::tie(b->client, b->other);
    }
  };
  using Set = std::set<DelegationState*, Order>;

  // `memory` counts them; null: nobody does.
  explicit DelegationTable(StateMemory* memory = nullptr) : memory_(memory) {}
  DelegationTable(const DelegationTable&) = delete;
  DelegationTable& operator=(const DelegationTable&) = delete;

  DelegationState* find(const StateidOther& other) const;
  // In force: revoked ones are not of the file any more.
  const Set& of_file(uint64_t inode) const;
  bool is_delegated(uint64_t inode) const { return by_file_.contains(inode); }
  const DelegationState* find(uint64_t inode, ClientId client) const;
  bool is_held_by_others(uint64_t inode, ClientId client) const;
  // The write delegation of the file, beside which it has no other. Null: there is none.
  const DelegationState* write_delegation(uint64_t inode) const;
  bool may_be_written_by_others(uint64_t inode, ClientId client) const;
  // Whether others hold what this act of the client's conflicts with.
  bool conflicts(uint64_t inode, ClientId client, FileAct act) const {
    return act == FileAct::kChange ? is_held_by_others(inode, client)
                                   : may_be_written_by_others(inode, client);
  }
  // With the revoked ones.
  const Set& of_client(ClientId client) const;
  // Who has any, in no order.
  std::vector<ClientId> holders() const;
  size_t revoked_of_client(ClientId client) const;

  DelegationState& add(DelegationState state);
  void revoke(DelegationState& state);
  void remove(DelegationState& state);
  size_t size() const { return by_other_.size(); }
  // Whether there is memory to spare for one more of this client.
  bool has_room(ClientId client) const;

 private:
  struct Holder {
    Set all;
    size_t revoked = 0;
  };
  void leave_file(DelegationState& state);

  StateMemory* const memory_;
  std::unordered_map<StateidOther, std::unique_ptr<DelegationState>, StateidOtherHash> by_other_;
  std::unordered_map<uint64_t, Set> by_file_;
  std::unordered_map<ClientId, Holder> by_client_;
};

}  // namespace pnfsrdma::mds
