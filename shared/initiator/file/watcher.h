// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/initiator/file/layout_getter.h"
#include "shared/initiator/file/watch.h"
#include "shared/initiator/file/watching.h"

namespace pnfsrdma::initiator {

// Has bricks watch ranges of one file, under layouts for reading: no message is sent while nothing happens. What is
// lost with a connection, a brick or a layout is watched again by a thread of the mount's, and the program gets a gap
// as it is lost and another when it is watched again: so it has looked behind everything it was not told. Thread-safe;
// without a state of its own.
class Watcher {
 public:
  Watcher(FileState& file, LayoutGetter& layouts, Watching& watching)
      : file_(file), layouts_(layouts), watching_(watching) {}

  // As FileIo::watch(). Waits for bricks and the MDS.
  Result<std::shared_ptr<Watch>> watch(FileRange range);

 private:
  class Cover;
  class Piece;

  FileState& file_;
  LayoutGetter& layouts_;
  Watching& watching_;
};

}  // namespace pnfsrdma::initiator
