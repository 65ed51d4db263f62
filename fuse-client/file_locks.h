// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/initiator/credential.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/range_locks.h"

namespace pnfsrdma::fuse_client {

// Whose lock: the kernel's number for a process's table of files or, of F_OFD_SETLK, for an open file (fcntl;
// nothing tells the two apart), or our own for an open file (flock): the kernel's may be another file's before
// the release of the first has reached us.
struct LockOwner {
  enum class Kind : uint8_t { kPosix, kFlock };
  Kind kind = Kind::kPosix;
  uint64_t number = 0;
  auto operator<=>(const LockOwner&) const = default;

  // lock_owner4.owner at the server.
  nfs4::OwnerId name() const;
};

// What this mount's processes have locked in one file: as the server has confirmed it or, under a write delegation,
// as it is decided here, where nobody else can have any (RFC 8881, 10.4.4). All of a file are in the same place:
// here, until they are handed over, or at the server, until none is held there. Belongs to the inode. Thread-safe;
// never holds its mutex across a call.
class FileLocks {
 public:
  // Operations of one owner run one at a time: what the server does last is what is noted last. False when
  // whoever asks is gone (initiator::CancellationScope).
  bool begin(LockOwner owner);
  void end(LockOwner owner);

  struct Held {
    // None before the first lock at the server. It may stay when the last one is unlocked.
    std::optional<nfs4::Stateid> stateid;
    nfs4::RangeLocks ranges;
    initiator::Credential credential;
    pid_t process = 0;
    uint64_t open_file = 0;  // our number of the one that was locked last
    // A LOCK that nobody knows the outcome of: no answer came.
    std::optional<nfs4::LockRange> doubtful;
    bool lost = false;
  };
  // Nothing held is a Held without stateid and ranges.
  Held held(LockOwner owner) const;
  bool has(LockOwner owner) const;
  // Anything is held, or may be, wherever.
  bool any() const;
  void keep(LockOwner owner, Held held);
  void forget(LockOwner owner);
  // The file is closed at the server, and its locks with it.
  void clear();

  // For a reclaim: who has a stateid.
  std::vector<LockOwner> owners() const;
  // For its release: whose last lock was asked for by this open file.
  std::vector<LockOwner> owners_by(uint64_t open_file) const;
  // The locks are gone and others may have had them since: the file's I/O fails until this owner has unlocked
  // or closed (nfs(5) does the same).
  bool any_lost() const { return lost_ > 0; }
  // The process behind an owner's name; 0 if it is none of ours.
  pid_t process_of(const nfs4::OwnerId& name) const;

  // --- locks that are decided here ---

  // kAskServer: LOCK has to be sent, and asked_server() to follow. kWait: they are here and must not get more.
  // kTooMany: so many are not handed over in time when the delegation is recalled. It is to end, and the server to be
  // asked.
  enum class Verdict : uint8_t { kGiven, kInTheWay, kAskServer, kWait, kTooMany };
  // Ranges of one file, of all owners together.
  static constexpr size_t kRangesHereMax = 1024;
  static_assert(kRangesHereMax <= nfs4::kLockRangesMax, "the server takes them all, of one owner too");
  // In the turn of the owner, begin(); who asks has in `asker` what a Held says of him. Only while no other client can
  // lock (Inode::lock).
  Verdict lock_here(LockOwner owner, const nfs4::LockRange& range, const Held& asker);
  // The same when others may have locks by now.
  Verdict lock_at_server();
  void asked_server();
  // kAskServer: they are the server's; or kTooMany, where a hole makes two of one. Waits for a hand-over. EINTR:
  // whoever asks is gone (initiator::CancellationScope).
  Result<Verdict> unlock_here(LockOwner owner, const nfs4::LockRange& range);
  // What is in the way of a lock. kWait: as above. `only_we`: no other client can lock.
  struct InTheWay {
    LockOwner owner;
    nfs4::LockRange range;
  };
  Verdict test_here(LockOwner owner, const nfs4::LockRange& range, bool only_we,
                    std::optional<InTheWay>& found) const;
  bool are_here() const;
  // While they are handed over: a second at most. False: nobody waits any more (initiator::CancellationScope).
  bool await_hand_over();

  // The end of a delegation hands them over to the server: nobody locks or unlocks until end_hand_over(). One thread.
  struct HandOver {
    uint64_t number = 0;  // of the server's losses
    std::vector<std::pair<LockOwner, Held>> owners;
  };
  // None: there is nothing to hand over (any more).
  std::optional<HandOver> begin_hand_over();
  // They are at the server, with stateid, or lost: how many owners have lost theirs. None: the server has lost its
  // state meanwhile, begin again.
  std::optional<size_t> end_hand_over(HandOver handed_over);
  // The server has lost all that it was told. True: they are here, and stay.
  bool outlive_server();
  // The delegation is gone without one: what is held is lost. How many owners.
  size_t lose_here();

 private:
  struct Entry {
    Held held;
    bool busy = false;
  };
  // Under mutex_.
  void count_lost();
  void drop_if_empty(LockOwner owner);
  bool any_at_server() const;
  size_t ranges_but_of(LockOwner owner) const;
  std::optional<InTheWay> find_in_the_way(LockOwner owner, const nfs4::LockRange& range) const;

  mutable Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::map<LockOwner, Entry> entries_;
  bool are_here_ = false;
  bool handing_over_ = false;
  uint32_t asked_for_ = 0;  // at the server
  uint64_t losses_ = 0;     // of the server
  std::atomic<uint32_t> lost_ = 0;
};

}  // namespace pnfsrdma::fuse_client
