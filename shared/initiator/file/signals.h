// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/initiator/file/error_cursor.h"
#include "shared/initiator/file/file_sync.h"
#include "shared/initiator/file/layout_getter.h"

namespace pnfsrdma::initiator {

// Has bricks flush a range of one file and tell those who watch it, in one round trip where the range is memory of one
// brick and what was written there needs nothing but a flush; else behind a sync of the file. Waits for bricks and the
// MDS. Thread-safe; without a state of its own.
class Signals {
 public:
  Signals(FileState& file, FileSync& file_sync, LayoutGetter& layouts)
      : file_(file), file_sync_(file_sync), layouts_(layouts) {}

  // As FileIo::signal().
  Result<> signal(FileRange range, uint64_t value, ErrorCursor& cursor);

 private:
  class Part;

  bool is_plain(FileRange range) const;
  Result<> enter(Part& part, FileRange rest);
  // How much of the rest was signalled. None: once more, behind a sync.
  Result<std::optional<uint64_t>> tell(FileRange rest, uint64_t value, bool whole, bool synced);

  FileState& file_;
  FileSync& file_sync_;
  LayoutGetter& layouts_;
};

}  // namespace pnfsrdma::initiator
