// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "shared/base/guarded.h"
#include "shared/base/sync.h"
#include "shared/initiator/credential.h"
#include "shared/initiator/session/session.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/range_locks.h"

namespace pnfsrdma::library::session {

class File;
struct Open;

// What one open of a file has locked, as a lock owner of its own, as far as the server has confirmed it. One thread at
// a time asks the server (turn()); a reclaim may come meanwhile. Thread-safe; never holds a mutex across a call but
// that of the turn, which no reclaim takes.
class Locks {
 public:
  explicit Locks(uint64_t owner);

  using Turn = std::unique_lock<Mutex>;
  Turn turn() { return Turn(turn_); }

  // In its turn. PUTFH, LOCK. True: it is locked. False: somebody else's lock is in the way. `waits`: it comes again
  // (READW_LT, WRITEW_LT: the server may keep its place). Errors: EIO (earlier ones were lost), ENOLCK, and the
  // server's.
  Result<bool> lock(initiator::Session& session, const File& file, const Open& open,
                    const nfs4::LockRange& range, bool waits);
  // In its turn. PUTFH, LOCKU; nothing is asked where nothing was locked. `last`: FREE_STATEID, too.
  Result<> unlock(initiator::Session& session, const File& file, const Open& open,
                  const nfs4::LockRange& range, bool last);
  // PUTFH, LOCKT. True: nobody else's is in the way.
  Result<bool> test(initiator::Session& session, const File& file, const Open& open,
                    const nfs4::LockRange& range) const;

  // The server gives what was locked once more, in its grace period, under this stateid of the open; else it is lost.
  // An Error: no answer.
  Result<> reclaim(initiator::Session& session, const File& file, const Open& open,
                   const nfs4::Stateid& stateid);
  void lose();
  // Others may have locked since, until this open unlocks.
  bool lost() const { return lost_; }

 private:
  struct Held {
    std::optional<nfs4::Stateid> stateid;  // none before the first lock
    nfs4::RangeLocks ranges;
    std::optional<nfs4::LockRange> doubtful;  // a LOCK without an answer
  };
  Result<initiator::CompoundReply> send_lock(initiator::Session& session, const File& file, const Open& open,
                                             const nfs4::LockRange& range, nfs4::LockType type,
                                             const std::optional<nfs4::Stateid>& known) const;
  void settle_doubt(initiator::Session& session, const File& file, const Open& open);

  const nfs4::OwnerId owner_;
  Mutex turn_;
  Guarded<Held> held_;
  std::atomic<bool> lost_ = false;
};

}  // namespace pnfsrdma::library::session
