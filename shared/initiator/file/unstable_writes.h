// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "shared/initiator/file/layout_pin.h"
#include "shared/initiator/file/unstable_memory.h"

namespace pnfsrdma::initiator {

// Copies of what one file got by WRITEs that the server has answered UNSTABLE4: until COMMIT the server may lose
// it, says so by another write verifier, and the client writes it again (RFC 8881, 18.32.4). Not thread-safe.
class UnstableWrites {
 public:
  // The first `length` bytes of the copy; they replace what was kept there.
  void put(FileRange range, UnstableCopy copy);
  void forget(FileRange range);
  bool empty() const { return pieces_.empty(); }
  // Copies the first bytes of the range that are kept, as many as are contiguous and `sink` takes; where they
  // belong. None: nothing of it is kept.
  std::optional<FileRange> first(FileRange within, MutableByteSpan sink) const;

 private:
  struct Piece {
    UnstableCopy copy;
    uint64_t skip = 0;  // in the copy
    uint64_t end = 0;   // in the file
  };
  using Pieces = std::map<uint64_t, Piece>;  // by offset; they do not overlap

  void split(uint64_t offset);
  Pieces::const_iterator first_behind(uint64_t offset) const;

  Pieces pieces_;
};

}  // namespace pnfsrdma::initiator
