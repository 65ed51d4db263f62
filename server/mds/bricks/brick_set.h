// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/mds/bricks/block_memory.h"
#include "server/mds/bricks/brick_connection.h"
#include "server/mds/bricks/brick_device.h"
#include "server/mds/grants/held_layout.h"
#include "server/mds/meta/brick_list.h"
#include "shared/base/lifetime.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/buffer.h"

namespace pnfsrdma::mds {

// The bricks this server uses, connected: finds the one that an address is on, and splits what concerns
// several. What happens to one of them does not touch the others. Control loop only.
class BrickSet {
 public:
  struct Parts {
    EventLoop& loop;
    KeyValueStore& store;
    BrickList& list;
    Random& random;
    ConnectBrick connect;
  };
  struct Options {
    uint64_t first_epoch = 1;  // BootRecord::epoch: no claim is lower
    BrickDevice::Options device;
    // How we reach the bricks' memory ourselves, best first.
    std::vector<initiator::TransportDomain> transports;
    // Instead of that, for tests.
    BlockMemory* memory = nullptr;
  };
  // BrickDevice::Hooks, for each brick.
  struct Hooks {
    std::function<void(BrickNumber)> on_lost;
    std::function<void(BrickNumber, const brick::SessionEntry&, std::vector<brick::Grant>,
                       std::function<void(std::vector<uint64_t>)> done)>
        adopt;
    std::function<void(BrickNumber, std::function<void()> done)> adopted;
    std::function<void(BrickNumber, std::function<void(bool)> done)> zero_tails;
    std::function<void(BrickNumber)> on_ready;
    std::function<void(const std::string& why)> on_fenced;
  };
  using Done = std::function<void(nfs4::Status)>;

  BrickSet(Parts parts, Options options);
  ~BrickSet();
  BrickSet(const BrickSet&) = delete;
  BrickSet& operator=(const BrickSet&) = delete;
  // Connects the bricks of the list.
  void start(Hooks hooks);
  // BrickDevice::keep_sessions() for each of them, of clients that are known. Before the loop runs; blocks.
  Result<> keep_sessions(const std::function<bool(uint64_t client)>& knows);
  // Connects one that has just been added to the list.
  void connect(BrickNumber number);
  // Ends the connection to one that is to be removed from the list; nothing of ours is on it. Not from inside
  // a callback of its own.
  void disconnect(BrickNumber number);

  // --- which brick ---
  std::vector<BrickDevice*> all();
  // Null: none.
  BrickDevice* find(BrickNumber number);
  // For how long one of the list has said nothing on its connection.
  Milliseconds silence(BrickNumber number) const;
  // Nothing new is put on it; for this run only.
  void set_closed(BrickNumber number, bool closed);
  BrickDevice* find(const BrickUuid& uuid);
  // The address is in an extent or a grant: its brick exists.
  BrickDevice& at(uint64_t logical);
  BlockMemory& memory_at(uint64_t logical);
  Space& space_at(uint64_t logical) { return at(logical).space(); }
  BrickUuid uuid_at(uint64_t logical) const;
  // Its brick gets nothing new: what is there is to be moved away.
  bool leaving_at(uint64_t logical);
  // Where a file whose data is on `home` gets more memory, best first; kNoBrick: a file without data.
  // DELAY, IO: the brick it must be is away; NOSPC: no brick takes data.
  std::expected<std::vector<BrickNumber>, nfs4::Status> places(InodeId inode, BrickNumber home);

  // --- all of them ---
  // Every brick of the list is ready.
  bool ready() const;
  // At least one was claimed in this run.
  bool identified() const;
  // Of the bricks that these ranges are on, now.
  std::map<BrickNumber, BrickVerifier> verifiers(const std::vector<brick::Range>& ranges);
  // None: it is not one of ours.
  std::optional<BrickVerifier> verifier_of(BrickNumber number);
  // BrickList::verifier_changes()
  uint64_t verifier_changes() const { return parts_.list.verifier_changes(); }

  // --- several at once. OK, or what of the answers says the most: IO, DELAY, … ---
  // What an operation answers that needs these ranges.
  nfs4::Status absence(const std::vector<brick::Range>& ranges);
  // The same of bricks; one that has been removed counts as ready.
  nfs4::Status absence(const std::set<BrickNumber>& numbers);
  void persist(const std::vector<brick::Range>& ranges, Done done);
  void zero(const std::vector<brick::Range>& ranges, Done done);
  // Memory to other memory, durably: by the brick that has both, else through this server.
  void copy(const brick::Range& source, uint64_t target, Done done);
  // Blocks their Space has given up. Our own handles die first. Nobody waits, as BrickDevice::free().
  void free(const std::vector<brick::Run>& runs);
  // Blocks are on their way back to the brick: it may have more soon.
  bool freeing(BrickNumber number) const;
  // `done` when the handles are dead.
  void withdraw(uint64_t client, const std::vector<HeldGrant>& grants, std::function<void()> done);
  void close_session(uint64_t client, std::function<void()> done);

 private:
  struct Member;
  using Split = std::map<BrickNumber, std::vector<brick::Range>>;

  Member& member_at(uint64_t logical);
  Split split(const std::vector<brick::Range>& ranges) const;
  void next_epoch(uint64_t above, std::function<void(uint64_t)> done);
  void begin_epoch(uint64_t last, uint64_t above, const std::function<void(uint64_t)>& done);
  struct Carrying;
  void carry(const std::shared_ptr<Carrying>& work);
  template <typename Result>
  void on_each(const std::vector<brick::Range>& ranges, Done done,
               void (BrickDevice::*call)(const std::vector<brick::Range>&, BrickDevice::Done<Result>));

  Parts parts_;
  const Options options_;
  Hooks hooks_;
  std::map<BrickNumber, std::unique_ptr<Member>> members_;
  std::vector<Thread> leaving_;  // of members that are gone; joined at the end
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds
