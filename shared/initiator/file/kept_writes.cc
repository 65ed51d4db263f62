// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/kept_writes.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"

namespace pnfsrdma::initiator {

namespace {

constexpr uint64_t kChunk = KeptMemory::kChunkBytes;
// More separate ranges than this are committed before more are kept: their list is searched at each write.
constexpr size_t kRangesMax = 512;

}  // namespace

KeptWrites::Room& KeptWrites::Room::operator=(Room&& other) noexcept {
  give_back();
  kept_ = std::exchange(other.kept_, nullptr);
  range_ = other.range_;
  return *this;
}

void KeptWrites::Room::give_back() {
  if (kept_ != nullptr) std::exchange(kept_, nullptr)->release(range_);
}

std::optional<KeptWrites::Room> KeptWrites::set_aside(uint64_t offset, uint64_t length) {
  if (length == 0) return Room();
  std::lock_guard lock(mutex_);
  if (kept_.ranges().size() >= kRangesMax) return std::nullopt;
  const uint64_t last = (range_end(offset, length) - 1) / kChunk;
  for (uint64_t index = offset / kChunk; index <= last; ++index) {
    const auto at = chunks_.try_emplace(index).first;
    if (!at->second.bytes) at->second.bytes = memory_.take();
    if (!at->second.bytes) {
      chunks_.erase(at);
      for (uint64_t taken = offset / kChunk; taken < index; ++taken) --chunks_.at(taken).rooms;
      free_unused();
      return std::nullopt;
    }
    ++at->second.rooms;
  }
  return Room(*this, {offset, length});
}

void KeptWrites::release(FileRange range) {
  std::lock_guard lock(mutex_);
  auto at = chunks_.find(range.offset / kChunk);
  const uint64_t last = (range.end() - 1) / kChunk;
  while (at != chunks_.end() && at->first <= last) {
    --at->second.rooms;
    at = free_if_unused(at);
  }
}

void KeptWrites::keep(uint64_t offset, ByteSpan bytes) {
  if (bytes.empty()) return;
  std::lock_guard lock(mutex_);
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t at = offset + done;
    const uint64_t inside = at % kChunk;
    const size_t count = std::min<uint64_t>(bytes.size() - done, kChunk - inside);
    KeptMemory::Chunk& chunk = chunks_[at / kChunk].bytes;
    // The file was cut by another client behind the write's back: more of it lies beyond the end than before.
    if (!chunk) chunk = memory_.take(true);
    std::memcpy(chunk.get() + inside, bytes.data() + done, count);
    done += count;
  }
  kept_.add(offset, bytes.size());
  any_.store(true, std::memory_order_release);
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

// Chunks without a kept byte go back, unless a write under way may need them.
void KeptWrites::free_unused() {
  for (auto at = chunks_.begin(); at != chunks_.end();) at = free_if_unused(at);
  any_.store(!kept_.empty(), std::memory_order_release);
}

KeptWrites::Chunks::iterator KeptWrites::free_if_unused(Chunks::iterator at) {
  if (at->second.rooms > 0 || kept_.overlaps(at->first * kChunk, kChunk)) return std::next(at);
  memory_.give_back(std::move(at->second.bytes));
  return chunks_.erase(at);
}

std::optional<FileRange> KeptWrites::first(FileRange within, MutableByteSpan sink) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.ranges().begin(), kept_.ranges().end(), [&](const FileRange& kept) {
    return overlap(kept.offset, kept.length, within.offset, within.length);
  });
  if (found == kept_.ranges().end() || sink.empty()) return std::nullopt;
  FileRange range{std::max(found->offset, within.offset), 0};
  range.length = std::min<uint64_t>(std::min(found->end(), within.end()) - range.offset, sink.size());
  for (uint64_t done = 0; done < range.length;) {
    const uint64_t at = range.offset + done;
    const uint64_t inside = at % kChunk;
    const uint64_t count = std::min(range.length - done, kChunk - inside);
    const auto chunk = chunks_.find(at / kChunk);
    CHECK(chunk != chunks_.end());
    std::memcpy(sink.data() + done, chunk->second.bytes.get() + inside, count);
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
