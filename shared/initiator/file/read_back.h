// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "shared/initiator/file/layout_getter.h"
#include "shared/initiator/file/read_back_sums.h"

namespace pnfsrdma::initiator {

// Has bricks flush ranges of one file and read them back: a message and its answer for up to 64 pieces of memory on one
// brick, 4 MiB at most. Waits for bricks and the MDS. Thread-safe; without a state of its own.
class ReadBack {
 public:
  ReadBack(FileState& file, LayoutGetter& layouts) : file_(file), layouts_(layouts) {}

  // Of what is durable otherwise. As FileIo::flush_and_verify().
  Result<ReadBackSums> read(std::span<const FileRange> ranges);

 private:
  class Batch;

  Result<> gather(Batch& batch);
  Result<> ask(Batch& batch, ReadBackSums& sums);

  FileState& file_;
  LayoutGetter& layouts_;
};

}  // namespace pnfsrdma::initiator
