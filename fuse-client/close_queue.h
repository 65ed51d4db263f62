// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "fuse-client/inode.h"
#include "fuse-client/lock_hand_over.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/lost_stateids.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// The CLOSEs of files that nobody has open any more, and the DELEGRETURNs of those whose delegation ends (behind the
// LOCKs of what is locked under it, for which nobody else waits), several to a COMPOUND: a program that makes many
// files waits for none of them, and the server is called once for sixteen. A file that is opened again before its turn
// stays open at the server.
// Thread-safe.
class CloseQueue {
 public:
  explicit CloseQueue(initiator::Session& session);
  ~CloseQueue() { stop(); }
  CloseQueue(const CloseQueue&) = delete;
  CloseQueue& operator=(const CloseQueue&) = delete;

  // kAtOnce: somebody waits for it at the server.
  enum class When : uint8_t { kWithOthers, kAtOnce };
  // The file's last open has gone, and its data is settled; or its delegation has ended. Waits for nothing.
  void add(std::shared_ptr<Inode> inode, When when = When::kWithOthers);
  // Sends what is left and ends; takes as long as the server does (Session::abort() cuts it short).
  void stop();
  // Files that are in it, or for which it is calling the server just now.
  size_t owed() const;

  // Delegations that the server had revoked, or did not take, when they were returned, and others that it may revoke.
  initiator::LostStateids& revoked() { return revoked_; }

  // How long a CLOSE waits for others at most, and how many go together.
  static constexpr Milliseconds kDelay{50};
  static constexpr size_t kBatch = 16;

 private:
  // How often it is looked whether what a file holds has been sent: the first time, and at most.
  static constexpr Milliseconds kHeldSoon{1};
  static constexpr Milliseconds kHeldLater{64};

  // One operation of one file.
  struct Step {
    std::shared_ptr<Inode> inode;
    nfs4::Stateid stateid;
    bool is_open = false;  // else a delegation
    initiator::Credential credential;
  };

  void run();
  std::vector<std::shared_ptr<Inode>> take_due();
  // DELEGRETURN comes behind what is held.
  void hold_back(const std::shared_ptr<Inode>& inode);
  void send(const std::vector<std::shared_ptr<Inode>>& inodes);
  void send(std::span<const Step> steps);
  // Those of the next ones that have no locks to hand over.
  void send_without_locks();
  // In one name, each as far as the server gets: how many are done.
  size_t send_some(std::span<const Step> steps);
  void done(const Step& step, bool is_kept_in_mind);

  initiator::Session& session_;
  const LockHandOver locks_;
  mutable Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Inode>> waiting_;
  bool is_urgent_ = false;  // the first in waiting_
  std::vector<std::shared_ptr<Inode>> holding_;
  Milliseconds look_after_ = kHeldSoon;
  size_t under_way_ = 0;  // taken out of waiting_, and not sent yet
  bool stopping_ = false;
  initiator::LostStateids revoked_;
  Thread thread_;  // last: uses the others
};

}  // namespace pnfsrdma::fuse_client
