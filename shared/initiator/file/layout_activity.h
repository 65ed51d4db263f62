// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/initiator/file/io.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::initiator {

// What was read and written of one file by its layouts, and not yet told to the server (LAYOUTSTATS, RFC 7862,
// 15.7). A hint for its administrator: what was taken and does not arrive is not told again. Thread-safe; two
// relaxed additions for each piece of an I/O.
class LayoutActivity {
 public:
  void add(Direction direction, uint64_t bytes) {
    Done& done = direction == Direction::kRead ? read_ : write_;
    done.count.fetch_add(1, std::memory_order_relaxed);
    done.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  bool any() const {
    return read_.count.load(std::memory_order_relaxed) != 0 ||
           write_.count.load(std::memory_order_relaxed) != 0;
  }
  // All of it, in the name of `layout`. Begins at nothing again.
  nfs4::LayoutStatisticsArguments take(const nfs4::Stateid& layout) {
    nfs4::LayoutStatisticsArguments arguments{.length = nfs4::kLengthToEnd, .stateid = layout};
    arguments.read = read_.take();
    arguments.write = write_.take();
    arguments.update.layout_type = nfs4::kLayoutTypePmem;
    return arguments;
  }

 private:
  struct Done {
    // Between the two an I/O may leave bytes without a count, which the server refuses.
    nfs4::IoInfo take() {
      nfs4::IoInfo taken;
      taken.bytes = bytes.exchange(0, std::memory_order_relaxed);
      taken.count = count.exchange(0, std::memory_order_relaxed);
      if (taken.count == 0 && taken.bytes != 0) taken.count = 1;
      return taken;
    }
    std::atomic<uint64_t> count = 0, bytes = 0;
  };
  Done read_, write_;
};

}  // namespace pnfsrdma::initiator
