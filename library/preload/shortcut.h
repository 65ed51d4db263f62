// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <optional>

#include "library/preload/descriptor_table.h"
#include "library/preload/mounts.h"
#include "library/preload/statistics.h"

namespace pnfsrdma::preload {

// A read or write of a program's.
struct Call {
  int descriptor = -1;
  bool is_read = true;
  const iovec* vector = nullptr;
  int count = 0;
  std::optional<off_t> offset;  // none: at the descriptor's position
};

// The way of reads and writes past the kernel, for descriptors for which that is sure to be the same. What the kernel
// knows of an open file stays true at any time: its position, its size, its pages.
class Shortcut {
 public:
  // What the call returns (with errno, if it fails). None: the kernel is to be asked, nothing has happened.
  std::optional<ssize_t> take(const Call& call);

  // By open(2) of this process, by dup(2).
  void opened(int descriptor, int flags);
  void copied(int from, int to);
  // In the parent behind a fork(2), in the child.
  void forked_from_here();
  void is_child();

  // Reads are for the ring only by descriptors of O_DIRECT: what the kernel reads it keeps.
  void keep_reads() { keeps_reads_ = true; }
  // What comes alone goes past the kernel, too.
  void take_alone() { takes_alone_ = true; }
  // The kernel does everything from now on: the program is about to forbid itself what it does not need.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  const Statistics& statistics() const { return statistics_; }

 private:
  struct Look;
  bool belongs_here();
  std::optional<Reason> look(const Call& call, Look& look);
  std::optional<Reason> attach(const Call& call, Look& look);
  ssize_t ask_kernel(const Call& call);
  std::optional<ssize_t> run(const Call& call, const Look& look);
  std::optional<ssize_t> take_at_position(const Call& call, const Look& look);

  DescriptorTable table_;
  Mounts mounts_;
  Statistics statistics_;
  std::atomic<int> process_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> under_way_ = 0;
  bool keeps_reads_ = false, takes_alone_ = false;
};

}  // namespace pnfsrdma::preload
