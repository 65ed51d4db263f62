// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

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

// What this mount's processes have locked in one file, as the server has confirmed it. Belongs to the inode.
// Thread-safe; never holds its mutex across a call.
class FileLocks {
 public:
  // Operations of one owner run one at a time: what the server does last is what is noted last. False when
  // whoever asks is gone (initiator::CancellationScope).
  bool begin(LockOwner owner);
  void end(LockOwner owner);

  struct Held {
    std::optional<nfs4::Stateid> stateid;  // none before the first lock
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
  void keep(LockOwner owner, Held held);
  void forget(LockOwner owner);
  // The file is closed at the server, and its locks with it.
  void clear();

  // For a reclaim: who holds anything.
  std::vector<LockOwner> owners() const;
  // For its release: whose last lock was asked for by this open file.
  std::vector<LockOwner> owners_by(uint64_t open_file) const;
  // The locks are gone and others may have had them since: the file's I/O fails until this owner has unlocked
  // or closed (nfs(5) does the same).
  bool any_lost() const { return lost_ > 0; }
  // The process behind an owner's name; 0 if it is none of ours.
  pid_t process_of(const nfs4::OwnerId& name) const;

 private:
  struct Entry {
    Held held;
    bool busy = false;
  };
  void count_lost();
  void drop_if_empty(LockOwner owner);

  mutable Mutex mutex_;
  Condition changed_;
  std::map<LockOwner, Entry> entries_;  // guarded by mutex_
  std::atomic<uint32_t> lost_ = 0;
};

}  // namespace pnfsrdma::fuse_client
