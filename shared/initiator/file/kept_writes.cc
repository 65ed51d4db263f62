// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/kept_writes.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"

namespace pnfsrdma::initiator {

namespace {

constexpr uint64_t kChunk = KeptMemory::kChunkBytes;
// More separate ranges than this are committed before more are kept: their list is searched at each write.
constexpr size_t kRangesMax = 4096;

}  // namespace

bool KeptWrites::prepare(uint64_t offset, uint64_t length) {
  if (length == 0) return true;
  std::lock_guard lock(mutex_);
  if (kept_.ranges().size() >= kRangesMax) return false;
  const uint64_t last = (range_end(offset, length) - 1) / kChunk;
  for (uint64_t index = offset / kChunk; index <= last; ++index) {
    if (chunks_.contains(index)) continue;
    KeptMemory::Chunk chunk = memory_.take();
    if (!chunk) {
      free_unused();
      return false;
    }
    chunks_.emplace(index, std::move(chunk));
  }
  return true;
}

void KeptWrites::keep(uint64_t offset, ByteSpan bytes) {
  if (bytes.empty()) return;
  std::lock_guard lock(mutex_);
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t at = offset + done;
    const uint64_t inside = at % kChunk;
    const size_t count = std::min<uint64_t>(bytes.size() - done, kChunk - inside);
    KeptMemory::Chunk& chunk = chunks_[at / kChunk];
    // Another write's commit has given back what was set aside.
    if (!chunk) chunk = memory_.take(true);
    std::memcpy(chunk.get() + inside, bytes.data() + done, count);
    done += count;
  }
  kept_.add(offset, bytes.size());
  any_.store(true, std::memory_order_release);
}

void KeptWrites::forget_below(uint64_t end) {
  std::lock_guard lock(mutex_);
  kept_.remove(0, end);
  free_unused();
}

void KeptWrites::forget(uint64_t offset, uint64_t length) {
  if (!any()) return;
  std::lock_guard lock(mutex_);
  kept_.remove(offset, length);
  free_unused();
}

void KeptWrites::clear() {
  std::lock_guard lock(mutex_);
  kept_.clear();
  free_unused();
}

// Chunks without a kept byte go back, those set aside too: whoever needs one still takes it again.
void KeptWrites::free_unused() {
  auto range = kept_.ranges().begin();
  for (auto at = chunks_.begin(); at != chunks_.end();) {
    const uint64_t begin = at->first * kChunk;
    while (range != kept_.ranges().end() && range->end() <= begin) ++range;
    if (range != kept_.ranges().end() && range->offset < begin + kChunk) {
      ++at;
      continue;
    }
    memory_.give_back(std::move(at->second));
    at = chunks_.erase(at);
  }
  any_.store(!kept_.empty(), std::memory_order_release);
}

std::optional<FileRange> KeptWrites::first(MutableByteSpan sink) const {
  std::lock_guard lock(mutex_);
  if (kept_.empty() || sink.empty()) return std::nullopt;
  FileRange range = kept_.ranges().front();
  range.length = std::min<uint64_t>(range.length, sink.size());
  for (uint64_t done = 0; done < range.length;) {
    const uint64_t at = range.offset + done;
    const uint64_t inside = at % kChunk;
    const uint64_t count = std::min(range.length - done, kChunk - inside);
    const auto chunk = chunks_.find(at / kChunk);
    CHECK(chunk != chunks_.end());
    std::memcpy(sink.data() + done, chunk->second.get() + inside, count);
    done += count;
  }
  return range;
}

bool KeptWrites::covers(uint64_t offset, uint64_t length) const {
  std::lock_guard lock(mutex_);
  return kept_.covers(offset, length);
}

std::vector<FileRange> KeptWrites::ranges() const {
  std::lock_guard lock(mutex_);
  return {kept_.ranges().begin(), kept_.ranges().end()};
}

uint64_t KeptWrites::bytes() const {
  std::lock_guard lock(mutex_);
  return chunks_.size() * kChunk;
}

}  // namespace pnfsrdma::initiator
