// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/kept_memory.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::initiator {

namespace {

// What a mount that is not growing any file holds on to.
constexpr size_t kIdleAtRest = 64;

}  // namespace

KeptMemory::KeptMemory(uint64_t limit) : chunks_max_(std::max<uint64_t>(limit / kChunkBytes, 1)) {}

KeptMemory::Chunk KeptMemory::take(bool over_limit) {
  {
    std::lock_guard lock(mutex_);
    if (used_ >= chunks_max_ && !over_limit) return nullptr;
    ++used_;
    if (!idle_.empty()) {
      Chunk chunk = std::move(idle_.back());
      idle_.pop_back();
      return chunk;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
}

void KeptMemory::give_back(Chunk chunk) {
  std::vector<Chunk> freed;  // outside of the lock
  {
    std::lock_guard lock(mutex_);
    --used_;
    idle_.push_back(std::move(chunk));
    if (used_ == 0 && idle_.size() > kIdleAtRest) {
      freed.assign(std::move_iterator(idle_.begin() + kIdleAtRest), std::move_iterator(idle_.end()));
      idle_.resize(kIdleAtRest);
    }
  }
  room_.notify_all();
}

bool KeptMemory::wait_for_room(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return room_.wait_until(lock, deadline, [this] { return used_ < chunks_max_; });
}

uint64_t KeptMemory::used() const {
  std::lock_guard lock(mutex_);
  return used_ * kChunkBytes;
}

}  // namespace pnfsrdma::initiator
