// SPDX-License-Identifier: Apache-2.0
#include "library/map.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pnfsrdma::library {
namespace {

// In flight at once, and what one of them moves.
constexpr unsigned kDepth = 64;
constexpr uint64_t kPieceMax = uint64_t{1} << 20;

}  // namespace

Result<std::unique_ptr<Map>> Map::make(OpenFile& file, uint64_t offset, size_t length) {
  if (length == 0) return fail(EINVAL, "a map of no bytes");
  if (!file.readable()) return fail(EACCES, "the file is not open for reading");
  if (file.appends()) return fail(EINVAL, "the file is open for appending");
  TRY_ASSIGN(auto queue, Queue::create(file.connection(), kDepth));
  TRY_ASSIGN(void* const memory, file.connection().allocate(length));
  std::unique_ptr<Map> map(new Map(file, offset, length, memory, std::move(queue)));
  const pnfsrdma_range whole{0, length};
  TRY(map->refresh({&whole, 1}));
  return map;
}

Map::Map(OpenFile& file, uint64_t offset, size_t length, void* memory, std::unique_ptr<Queue> queue)
    : file_(file), offset_(offset), length_(length), memory_(memory), queue_(std::move(queue)) {
  ++file_.in_flight;  // it is not closed under the map
}

Map::~Map() {
  (void)file_.connection().free(memory_);
  --file_.in_flight;
}

Result<> Map::sync(std::span<const pnfsrdma_range> ranges) {
  if (!file_.writable()) return fail(EBADF, "the file is not open for writing");
  return move(ranges, PNFSRDMA_WRITE, PNFSRDMA_DURABLE);
}

Result<> Map::refresh(std::span<const pnfsrdma_range> ranges) {
  return move(ranges, PNFSRDMA_READ, 0);
}

// What of a move is under way: an operation's user_data is its place here.
struct Map::Flight {
  Flight(uint32_t code, uint32_t with) : opcode(code), flags(with) {
    for (unsigned i = 0; i < kDepth; ++i) free[i] = i;
  }
  const uint32_t opcode, flags;
  std::array<pnfsrdma_operation, kDepth> operations{};
  std::array<unsigned, kDepth> free;
  unsigned free_count = kDepth;

  bool any() const { return free_count < kDepth; }
};

Result<> Map::move(std::span<const pnfsrdma_range> ranges, uint32_t opcode, uint32_t flags) {
  if (!std::ranges::all_of(ranges, [this](const pnfsrdma_range& range) { return contains(range); }))
    return fail(EINVAL, "a range is not inside of the map");
  Flight flight(opcode, flags);
  Result<> outcome;
  for (size_t i = 0; i < ranges.size() && outcome; ++i) outcome = move_range(ranges[i], flight);
  while (flight.any()) {
    Result<> rest = reap(flight);
    if (outcome) outcome = std::move(rest);
  }
  return outcome;
}

Result<> Map::move_range(const pnfsrdma_range& range, Flight& flight) {
  for (uint64_t done = 0; done < range.length;) {
    while (flight.free_count == 0) TRY(reap(flight));
    const unsigned slot = flight.free[--flight.free_count];
    pnfsrdma_operation& operation = flight.operations[slot];
    operation = {.file = reinterpret_cast<pnfsrdma_file*>(&file_),
                 .opcode = flight.opcode,
                 .flags = flight.flags,
                 .buffer = static_cast<std::byte*>(memory_) + range.offset + done,
                 .length = std::min(range.length - done, kPieceMax),
                 .offset = offset_ + range.offset + done,
                 .user_data = slot};
    done += operation.length;
    // As deep as the flight: it has room.
    if (const auto submitted = queue_->submit({&operation, 1}); !submitted) {
      flight.free[flight.free_count++] = slot;
      return std::unexpected(submitted.error());
    }
  }
  return {};
}

Result<> Map::reap(Flight& flight) {
  std::array<pnfsrdma_completion, kDepth> completions;
  const auto count = queue_->reap(completions, -1);
  // A signal: it is waited for again.
  if (!count && count.error().number() == EINTR) return {};
  if (!count) return std::unexpected(count.error());
  Result<> outcome;
  for (const pnfsrdma_completion& completion : std::span(completions).first(*count)) {
    const auto slot = static_cast<unsigned>(completion.user_data);
    const pnfsrdma_operation& operation = flight.operations[slot];
    flight.free[flight.free_count++] = slot;
    if (completion.result < 0) {
      outcome = fail(static_cast<int>(-completion.result),
                     flight.opcode == PNFSRDMA_READ ? "reading into the map" : "writing the map's ranges");
    } else if (flight.opcode == PNFSRDMA_READ) {
      // Behind the end of the file.
      const auto moved = static_cast<uint64_t>(completion.result);
      std::memset(static_cast<std::byte*>(operation.buffer) + moved, 0, operation.length - moved);
    }
  }
  return outcome;
}

}  // namespace pnfsrdma::library
