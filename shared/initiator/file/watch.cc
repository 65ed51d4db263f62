// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace pnfsrdma::initiator {

Result<std::shared_ptr<Watch>> Watch::make() {
  FileDescriptor ready(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!ready) return std::unexpected(Error::from_errno("eventfd"));
  return std::shared_ptr<Watch>(new Watch(std::move(ready)));
}

Watch::~Watch() = default;

std::optional<WatchEvent> Watch::next() {
  const std::lock_guard lock(mutex_);
  if (untaken_.empty()) return std::nullopt;
  const WatchEvent event = untaken_.front();
  untaken_.pop_front();
  if (untaken_.empty()) {
    uint64_t count;
    (void)!::read(ready_.get(), &count, sizeof count);
  }
  return event;
}

// Behind a gap that is not taken yet everything is a part of that: whoever takes it looks later than all of it.
void Watch::tell(const WatchEvent& event) {
  const std::lock_guard lock(mutex_);
  const bool was_empty = untaken_.empty();
  if (!was_empty && untaken_.back().kind != WatchEvent::Kind::kSignal) return;
  if (untaken_.size() < kUntakenMax) {
    untaken_.push_back(event);
  } else {
    untaken_.push_back({.kind = WatchEvent::Kind::kGapSlow});
  }
  const uint64_t one = 1;
  if (was_empty) (void)!::write(ready_.get(), &one, sizeof one);
}

}  // namespace pnfsrdma::initiator
