// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "fuse-client/inode.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// The CLOSEs of files that nobody has open any more, several to a COMPOUND: a program that makes many files
// waits for none of them, and the server is called once for sixteen. A file that is opened again before its
// turn stays open at the server. Thread-safe.
class CloseQueue {
 public:
  explicit CloseQueue(initiator::Session& session);
  ~CloseQueue() { stop(); }
  CloseQueue(const CloseQueue&) = delete;
  CloseQueue& operator=(const CloseQueue&) = delete;

  // The file's last open has gone, and its data is settled. Waits for nothing.
  void add(std::shared_ptr<Inode> inode);
  // Sends what is left and ends; takes as long as the server does (Session::abort() cuts it short).
  void stop();

  // How long a CLOSE waits for others at most, and how many go together.
  static constexpr Milliseconds kDelay{50};
  static constexpr size_t kBatch = 16;

 private:
  struct Closing {
    std::shared_ptr<Inode> inode;
    OpenToClose open;
  };

  void run();
  void send(const std::vector<std::shared_ptr<Inode>>& inodes);
  // In one name, each as far as the server gets: how many are done.
  size_t send_some(std::span<const Closing> closings);

  initiator::Session& session_;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Inode>> waiting_;
  bool stopping_ = false;
  Thread thread_;  // last: uses the others
};

}  // namespace pnfsrdma::fuse_client
