// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shared/initiator/file/flusher.h"
#include "shared/initiator/file/io.h"

namespace pnfsrdma::initiator {

// One I/O's READs or WRITEs to bricks: posted in one batch for each brick, all before any is waited for, and
// what was written noted while its pin is inside of the gate. In steady state nothing is allocated here
// and nobody but bricks is asked. Thread-safe; without a state of its own.
class BrickIo {
 public:
  BrickIo(FileState& file, Flusher& flusher) : file_(file), flusher_(flusher) {}

  // Posts the pieces of a pin and waits for all; a bit per piece that is done.
  uint32_t post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice);

 private:
  struct Turn;
  static Device* next_device(const LayoutPin& pin, const Device* behind);
  bool prepare(Turn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice, Device& device,
               std::span<WorkItem> room);
  size_t flush_items(const Turn& turn, std::span<WorkItem> room);
  static void start(Turn& turn, const LayoutPin& pin, SteadyTime deadline);
  uint32_t take_outcome(Turn& turn, Direction direction, LayoutPin& pin, BufferSlice slice, uint64_t noted);
  void note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                    const BrickVerifier& verifier, std::optional<uint64_t> flushed_behind);
  void count_bytes(Direction direction, uint64_t bytes);

  FileState& file_;
  Flusher& flusher_;
};

}  // namespace pnfsrdma::initiator
