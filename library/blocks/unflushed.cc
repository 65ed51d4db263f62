// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/unflushed.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pnfsrdma::library::blocks {

void Unflushed::wrote(uint64_t offset, uint64_t length, const Verifier& verifier) {
  const std::lock_guard lock(mutex_);
  add(offset, length, verifier);
}

void Unflushed::add(uint64_t offset, uint64_t length, const Verifier& verifier) {
  if (!ranges_.empty() && verifier != verifier_) {
    lost_ = true;
    ranges_.clear();
  }
  verifier_ = verifier;
  ranges_.add(offset, length);
}

void Unflushed::wrote_durably(uint64_t offset, uint64_t length) {
  const std::lock_guard lock(mutex_);
  ranges_.remove(offset, length);
}

Unflushed::Taken Unflushed::take(uint64_t offset, uint64_t length) {
  const std::lock_guard lock(mutex_);
  Taken taken{.ranges = {}, .verifier = verifier_, .lost = std::exchange(lost_, false)};
  const uint64_t end = offset + length;
  for (const auto& range : ranges_.ranges()) {
    const uint64_t from = std::max(range.offset, offset);
    const uint64_t to = std::min(range.end(), end);
    if (from < to) taken.ranges.push_back({from, to - from});
  }
  ranges_.remove(offset, length);
  return taken;
}

Result<> Unflushed::settle(const Taken& taken, const Verifier& verifier) {
  if (!taken.lost && (taken.ranges.empty() || taken.verifier == verifier)) return {};
  return fail(EIO, "the brick has lost what was written and not flushed");
}

void Unflushed::put_back(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  lost_ = lost_ || taken.lost;
  // What was written meanwhile under another verifier says that these are lost.
  if (!ranges_.empty() && !taken.ranges.empty() && verifier_ != taken.verifier) {
    lost_ = true;
    return;
  }
  for (const auto& range : taken.ranges) add(range.offset, range.length, taken.verifier);
}

}  // namespace pnfsrdma::library::blocks
