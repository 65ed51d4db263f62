// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/pmem/shadow_persistence.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"

namespace pnfsrdma::pmem {

ShadowPersistence::ShadowPersistence(MutableByteSpan memory) : memory_(memory) {
  CHECK(memory.size() % kLine == 0);
  auto state = state_.lock();
  state->durable.assign(memory.begin(), memory.end());
  state->flushed = state->durable;
}

void ShadowPersistence::step() {
  uint64_t number = 0;
  {
    auto state = state_.lock();
    number = ++state->steps;
  }
  if (hook_) hook_(number);
}

void ShadowPersistence::copy(std::byte* target, ByteSpan source) {
  step();
  std::memcpy(target, source.data(), source.size());
}

void ShadowPersistence::zero(MutableByteSpan target) {
  step();
  std::memset(target.data(), 0, target.size());
}

Result<> ShadowPersistence::flush(ByteSpan memory) {
  step();
  if (memory.empty()) return {};
  CHECK(memory.data() >= memory_.data() && memory.data() + memory.size() <= memory_.data() + memory_.size());
  auto state = state_.lock();
  if (++state->flushes == skipped_flush_) return {};
  const auto begin = static_cast<size_t>(memory.data() - memory_.data()) / kLine;
  const auto end = (static_cast<size_t>(memory.data() - memory_.data()) + memory.size() + kLine - 1) / kLine;
  std::memcpy(state->flushed.data() + begin * kLine, memory_.data() + begin * kLine, (end - begin) * kLine);
  for (size_t line = begin; line < end; ++line) state->in_flight.insert(line);
  return {};
}

Result<> ShadowPersistence::fence() {
  step();
  auto state = state_.lock();
  for (const size_t line : state->in_flight) {
    std::memcpy(state->durable.data() + line * kLine, state->flushed.data() + line * kLine, kLine);
  }
  state->in_flight.clear();
  return {};
}

uint64_t ShadowPersistence::flushes() const {
  return state_.lock()->flushes;
}

Bytes ShadowPersistence::crash(Random& random, Tear tear) const {
  auto state = state_.lock();
  Bytes image = state->durable;
  const size_t unit = tear == Tear::kWords ? sizeof(uint64_t) : kLine;
  for (size_t line = 0; line < image.size(); line += kLine) {
    const bool same = std::memcmp(image.data() + line, memory_.data() + line, kLine) == 0;
    if (same && !state->in_flight.contains(line / kLine)) continue;
    for (size_t at = line; at < line + kLine; at += unit) {
      const uint32_t choice = random.next_u32() % 3;
      if (choice == 1) std::memcpy(image.data() + at, memory_.data() + at, unit);
      if (choice == 2 && state->in_flight.contains(line / kLine)) {
        std::memcpy(image.data() + at, state->flushed.data() + at, unit);
      }
    }
  }
  return image;
}

}  // namespace pnfsrdma::pmem
