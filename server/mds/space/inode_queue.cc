// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/inode_queue.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::mds {

InodeQueue::~InodeQueue() {
  lifetime_.end();
  // Turns captured by waiting work end here, with nobody left to tell.
  lines_.clear();
}

InodeQueue::TurnState::~TurnState() {
  if (!token_.expired()) queue_.leave(inode_);
}

void InodeQueue::enter(uint64_t inode, bool exclusive, Work work) {
  lines_[inode].waiting.push_back({exclusive, std::move(work)});
  advance(inode);
}

void InodeQueue::leave(uint64_t inode) {
  Line& line = lines_.at(inode);
  --line.running;
  --running_;
  if (line.running == 0) line.exclusive = false;
  advance(inode);
  if (held_ && running_ == 0) tell_still();
}

void InodeQueue::tell_still() {
  if (const auto still = std::exchange(still_, nullptr)) still();
}

void InodeQueue::hold(std::function<void()> still) {
  held_ = true;
  still_ = std::move(still);
  if (running_ == 0) tell_still();
}

bool InodeQueue::release(size_t most) {
  if (std::exchange(held_, false)) {
    still_ = nullptr;
    for (const auto& [inode, line] : lines_) released_.push_back(inode);
  }
  for (; most > 0 && !released_.empty() && !held_; --most) {
    const uint64_t inode = released_.back();
    released_.pop_back();
    advance(inode);
  }
  return !released_.empty();
}

bool InodeQueue::any(const std::function<bool(uint64_t inode)>& is_so) const {
  return std::ranges::any_of(lines_, [&](const auto& line) { return is_so(line.first); });
}

// Work that ends at once comes back here through leave(), however many wait: in a loop, not one in the other.
void InodeQueue::advance(uint64_t inode) {
  const auto at = lines_.find(inode);
  if (at == lines_.end() || at->second.advancing) return;
  Line& line = at->second;  // stays where it is, and nobody else erases it meanwhile
  line.advancing = true;
  while (!held_ && !line.waiting.empty() && !line.exclusive &&
         (line.running == 0 || !line.waiting.front().exclusive)) {
    Waiting next = std::move(line.waiting.front());
    line.waiting.pop_front();
    ++line.running;
    ++running_;
    line.exclusive = next.exclusive;
    next.work(std::make_shared<TurnState>(*this, inode));
  }
  line.advancing = false;
  if (line.waiting.empty() && line.running == 0) lines_.erase(inode);
}

}  // namespace pnfsrdma::mds
