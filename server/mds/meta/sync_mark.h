// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// How far the store's log was synced, kept where damage to the log cannot reach it: in a file of its own
// beside the log, and in each batch that is written later. Recovery that ends below it has lost what was
// promised. A mark never says more than was true, so it accuses no log that a crash has torn.
//
// The file is rewritten in place behind each sync and not synced itself: it survives the death of the
// process; after that of the host it may be some seconds old, and the marks in later batches tell more. These
// begin with a random number of the store's, so that no bytes a client made us write are taken for one.
class SyncMark {
 public:
  static constexpr size_t kBytes = 20;
  using Mark = std::array<char, kBytes>;

  // Reads the file in `directory`, which exists; makes it where there is none, or none that can be read.
  static Result<std::unique_ptr<SyncMark>> open(const std::string& directory, Random& random);
  SyncMark(const SyncMark&) = delete;
  SyncMark& operator=(const SyncMark&) = delete;

  // Sequence of the last write known to be durable: those of the engine, which count on over restarts.
  uint64_t synced() const { return now_.load(std::memory_order_acquire); }
  // For a batch.
  Mark mark() const;
  // The highest in this file, a log; 0: none.
  Result<uint64_t> highest_in(const std::string& path) const;
  // Any thread. A failure is logged once: the marks in batches go on.
  void note(uint64_t synced);
  // Forgets what is above: the loss was accepted. Durable when it returns.
  Result<> set_back(uint64_t synced);

 private:
  SyncMark(FileDescriptor file, uint64_t secret) : secret_(secret) { file_.lock()->fd = std::move(file); }
  Result<> write(const FileDescriptor& file, uint64_t synced) const;

  struct File {
    FileDescriptor fd;
    bool failed = false;
  };

  const uint64_t secret_;
  std::atomic<uint64_t> now_ = 0;
  Guarded<File> file_;
};

}  // namespace pnfsrdma::mds
