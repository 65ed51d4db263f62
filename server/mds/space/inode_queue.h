// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// Keeps work on one file in order: whoever changes which memory belongs to it, or what the brick does with
// that memory, has an exclusive turn; who only reads or overwrites bytes in place has a shared one. First
// come, first served: a shared turn never overtakes a waiting exclusive one, so nobody starves. LAYOUTRETURN
// and LAYOUTCOMMIT never wait here: an exclusive turn may be waiting for them. Control loop only; must
// outlive every Turn.
class InodeQueue {
 public:
  // The right to work on one inode; it ends when the last copy goes. Copy it into every callback of the work.
  class TurnState;
  using Turn = std::shared_ptr<TurnState>;
  using Work = std::function<void(Turn)>;

  InodeQueue() = default;
  InodeQueue(const InodeQueue&) = delete;
  InodeQueue& operator=(const InodeQueue&) = delete;
  ~InodeQueue();

  // Runs `work` with its turn: at once if nobody is in the way.
  void exclusive(uint64_t inode, Work work) { enter(inode, true, std::move(work)); }
  void shared(uint64_t inode, Work work) { enter(inode, false, std::move(work)); }
  bool idle(uint64_t inode) const { return !lines_.contains(inode); }

  // Nobody gets a turn from now on, whatever the inode; `still` runs when the last one has ended, perhaps from inside
  // the call. Whoever has a turn and wants a second one must let go of the first while held().
  void hold(std::function<void()> still);
  bool held() const { return held_; }
  // Turns are given again, in this call to `most` of the inodes somebody waits for. True: some are left, for the next
  // call. Also before `still` has run: it never does then.
  bool release(size_t most);
  // Whether somebody has a turn, or waits for one, of an inode for which that is so.
  bool any(const std::function<bool(uint64_t inode)>& is_so) const;

 private:
  struct Waiting {
    bool exclusive = false;
    Work work;
  };
  struct Line {
    size_t running = 0;
    bool exclusive = false;  // the one running
    bool advancing = false;  // advance() runs for it: who comes meanwhile leaves the rest to it
    std::deque<Waiting> waiting;
  };

  void enter(uint64_t inode, bool exclusive, Work work);
  void leave(uint64_t inode);
  void advance(uint64_t inode);
  void tell_still();

  std::unordered_map<uint64_t, Line> lines_;
  size_t running_ = 0;  // turns
  bool held_ = false;
  std::function<void()> still_;
  std::vector<uint64_t> released_;  // inodes that somebody has waited for since it was held
  Lifetime lifetime_;
};

class InodeQueue::TurnState {
 public:
  TurnState(InodeQueue& queue, uint64_t inode)
      : queue_(queue), token_(queue.lifetime_.token()), inode_(inode) {}
  ~TurnState();
  TurnState(const TurnState&) = delete;
  TurnState& operator=(const TurnState&) = delete;

 private:
  InodeQueue& queue_;
  std::weak_ptr<const void> token_;  // a turn may outlast the queue
  uint64_t inode_;
};

}  // namespace pnfsrdma::mds
