// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/inode_queue.h"

#include <utility>

namespace pnfsrdma::mds {

InodeQueue::~InodeQueue() {
  alive_.reset();
  // Turns captured by waiting work end here, with nobody left to tell.
  lines_.clear();
}

InodeQueue::TurnState::~TurnState() {
  if (const auto queue = queue_.lock()) (*queue)->leave(inode_);
}

void InodeQueue::enter(uint64_t inode, bool exclusive, Work work) {
  lines_[inode].waiting.push_back({exclusive, std::move(work)});
  advance(inode);
}

void InodeQueue::leave(uint64_t inode) {
  Line& line = lines_.at(inode);
  --line.running;
  if (line.running == 0) line.exclusive = false;
  advance(inode);
}

void InodeQueue::advance(uint64_t inode) {
  // Work that ends at once comes back here through leave(): look the line up again after each.
  while (true) {
    const auto at = lines_.find(inode);
    if (at == lines_.end()) return;
    Line& line = at->second;
    if (line.waiting.empty()) {
      if (line.running == 0) lines_.erase(at);
      return;
    }
    if (line.exclusive || (line.running > 0 && line.waiting.front().exclusive)) return;
    Waiting next = std::move(line.waiting.front());
    line.waiting.pop_front();
    ++line.running;
    line.exclusive = next.exclusive;
    next.work(std::make_shared<TurnState>(alive_, inode));
  }
}

}  // namespace pnfsrdma::mds
