// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shared/initiator/brick/flush_chain.h"
#include "shared/initiator/file/flusher.h"
#include "shared/initiator/file/io.h"

namespace pnfsrdma::initiator {

// One brick's part of an I/O: what goes out there with one doorbell, and what became of it.
struct BrickTurn {
  std::shared_ptr<Connection> connection;
  std::span<WorkItem> items;  // READs or WRITEs, and what flushes these behind them
  size_t pieces = 0;
  std::array<uint8_t, kPiecesMax> piece_of;  // by item
  std::optional<WorkBatch> batch;
  // What flushes the WRITEs, where nothing behind them does.
  FlushChain* chain = nullptr;
  FlushChain::Member in_chain;
  // The connection has not all that the layout tells, or did not do all that it was asked for.
  bool outdated = false;

  bool flushes_itself() const { return items.size() > pieces; }
  bool flushes() const { return flushes_itself() || chain != nullptr; }
  bool sends_message() const { return flushes_itself() && connection->flush != FlushMethod::kNative; }
  bool flushed() const;
};

// What one I/O has with bricks, from its preparation to its outcome: on the stack of a thread that waits, or where
// it is used again and again.
struct BrickWork {
  std::array<WorkItem, 2 * kPiecesMax> items;
  std::array<BrickTurn, kPiecesMax> turns;
  size_t count = 0;
  // DirtyList::noted(), before anything was posted that is flushed.
  uint64_t noted = 0;
  // All of it could be posted but for room on a connection.
  bool lacks_room = false;

  std::span<BrickTurn> used() { return std::span(turns).first(count); }
  // How often its owner is told of something that has ended.
  size_t ends() const;
  // Lets go of the connections.
  void clear();
};

// One I/O's READs or WRITEs to bricks: posted in one batch for each brick, all before any is waited for, and
// what was written noted while its pin is inside of the gate. In steady state nothing is allocated here
// and nobody but bricks is asked. Thread-safe; without a state of its own.
class BrickIo {
 public:
  BrickIo(FileState& file, Flusher& flusher) : file_(file), flusher_(flusher) {}

  // Posts the pieces of a pin and waits for all; a bit per piece that is done.
  uint32_t post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice);

  // The same in three steps, without waiting. False: a brick is not connected, or has no room just now; nothing
  // has happened.
  bool try_prepare(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice, BatchOwner& owner);
  // `owner` hears of each turn's batch, possibly before this returns. Returns the bits of holes.
  uint32_t post(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice);
  // When all are done, and the pin still is inside: the other bits.
  uint32_t take_outcomes(BrickWork& work, const Io& io, LayoutPin& pin, BufferSlice slice);

 private:
  static Device* next_device(const LayoutPin& pin, const Device* behind);
  // `connecting`: where there is no connection one is made.
  void prepare(BrickWork& work, const Io& io, const LayoutPin& pin, BufferSlice slice, bool connecting);
  bool prepare(BrickTurn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice, Device& device,
               std::span<WorkItem> room);
  static FlushChain* find_chain(const BrickTurn& turn, const Io& io, const LayoutPin& pin);
  static size_t flush_items(const BrickTurn& turn, std::span<WorkItem> room);
  bool reserve(BrickWork& work, const LayoutPin& pin, BatchOwner& owner);
  void begin(BrickWork& work, const Io& io);
  static void start(BrickTurn& turn, const LayoutPin& pin, SteadyTime deadline);
  uint32_t take_outcome(BrickTurn& turn, Direction direction, LayoutPin& pin, BufferSlice slice,
                        uint64_t noted);
  void note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                    const BrickVerifier& verifier, std::optional<uint64_t> flushed_behind);
  void count_bytes(Direction direction, uint64_t bytes);

  FileState& file_;
  Flusher& flusher_;
};

}  // namespace pnfsrdma::initiator
