// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// What a watcher is told. A gap: from the event before to this one anything may have been signalled, so look again.
struct WatchEvent {
  enum class Kind : uint8_t {
    kSignal,
    kGapSlow,  // more came than was taken
    kGapLost,  // the connection, the brick or the memory was another one for a while
  };
  Kind kind = Kind::kSignal;
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  uint64_t value = 0;
  bool operator==(const WatchEvent&) const = default;
};

// What a program watches of a file, and has not been told yet: bounded, and what does not fit becomes a gap at its end.
// Thread-safe. The watch ends with it.
class Watch {
 public:
  static constexpr size_t kUntakenMax = 1024;

  static Result<std::shared_ptr<Watch>> make();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Readable while there is something to take.
  int fd() const { return ready_.get(); }
  // Does not wait.
  std::optional<WatchEvent> next();

  // By whoever watches. Does not wait.
  void tell(const WatchEvent& event);
  // What is to end with it.
  void keep(std::shared_ptr<void> what) { kept_ = std::move(what); }

 private:
  explicit Watch(FileDescriptor ready) : ready_(std::move(ready)) {}

  const FileDescriptor ready_;
  Mutex mutex_;
  std::deque<WatchEvent> untaken_;
  std::shared_ptr<void> kept_;
};

}  // namespace pnfsrdma::initiator
