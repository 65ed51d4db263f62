// SPDX-License-Identifier: Apache-2.0
#include "library/map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace pnfsrdma::library {
namespace {

// In flight at once, and what one of them moves.
constexpr unsigned kDepth = 64;
constexpr uint64_t kPieceMax = uint64_t{1} << 20;
// Ranges that an error names.
constexpr size_t kNamed = 8;

}  // namespace

Result<std::unique_ptr<Map>> Map::make(OpenFile& file, uint64_t offset, size_t length, void* wanted) {
  if (length == 0) return fail(EINVAL, "a map of no bytes");
  if (!file.readable()) return fail(EACCES, "the file is not open for reading");
  if (file.appends()) return fail(EINVAL, "the file is open for appending");
  // The memory first: what a queue and its threads map may not take the wanted address.
  TRY_ASSIGN(void* const memory, file.connection().allocate(length, wanted));
  std::unique_ptr<Map> map(new Map(file, offset, length, memory));
  TRY_ASSIGN(map->queue_, Queue::create(file.connection(), kDepth));
  const pnfsrdma_range whole{0, length};
  TRY(map->refresh({&whole, 1}));
  return map;
}

Map::Map(OpenFile& file, uint64_t offset, size_t length, void* memory)
    : file_(file), offset_(offset), length_(length), memory_(memory) {
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

// What of a move is under way: an operation's user_data is its place here. And what has failed of it.
struct Map::Flight {
  Flight(std::span<const pnfsrdma_range> all, uint32_t code, uint32_t with)
      : ranges(all), opcode(code), flags(with) {
    for (unsigned i = 0; i < kDepth; ++i) free[i] = i;
  }
  const std::span<const pnfsrdma_range> ranges;
  const uint32_t opcode, flags;
  size_t next = 0;    // range
  uint64_t done = 0;  // of that
  std::array<pnfsrdma_operation, kDepth> operations{};
  std::array<unsigned, kDepth> free;
  unsigned free_count = kDepth;
  Result<> outcome;
  std::vector<pnfsrdma_range> failed;

  bool any() const { return free_count < kDepth; }
  bool has_more() const { return outcome && next < ranges.size(); }
  void fail_with(const Error& error) {
    if (outcome) outcome = std::unexpected(error);
  }
};

// What fits into the queue goes out together, with one flush behind it.
Result<> Map::move(std::span<const pnfsrdma_range> ranges, uint32_t opcode, uint32_t flags) {
  if (!std::ranges::all_of(ranges, [this](const pnfsrdma_range& range) { return contains(range); }))
    return fail(EINVAL, "a range is not inside of the map");
  Flight flight(ranges, opcode, flags);
  for (;;) {
    if (flight.has_more()) submit(flight);
    if (!flight.any()) break;
    reap(flight);
  }
  if (flight.outcome) return {};
  return fail(flight.outcome.error().number(), why(flight));
}

void Map::submit(Flight& flight) {
  std::array<pnfsrdma_operation, kDepth> together;
  size_t count = 0;
  while (flight.free_count > 0 && flight.next < flight.ranges.size()) {
    const pnfsrdma_range& range = flight.ranges[flight.next];
    const uint64_t length = std::min(range.length - flight.done, kPieceMax);
    if (length > 0) {
      const unsigned slot = flight.free[--flight.free_count];
      const uint64_t at = range.offset + flight.done;
      flight.operations[slot] = together[count++] = {.file = reinterpret_cast<pnfsrdma_file*>(&file_),
                                                     .opcode = flight.opcode,
                                                     .flags = flight.flags,
                                                     .buffer = static_cast<std::byte*>(memory_) + at,
                                                     .length = length,
                                                     .offset = offset_ + at,
                                                     .user_data = slot};
    }
    flight.done += length;
    if (flight.done < range.length) continue;
    ++flight.next;
    flight.done = 0;
  }
  if (count == 0) return;
  // As deep as the flight: it has room.
  const auto taken = queue_->submit(std::span(together).first(count));
  for (size_t i = taken.value_or(0); i < count; ++i) {
    flight.free[flight.free_count++] = static_cast<unsigned>(together[i].user_data);
    flight.failed.push_back({together[i].offset - offset_, together[i].length});
    flight.fail_with(taken ? Error(EAGAIN, "the queue is full") : taken.error());
  }
}

void Map::reap(Flight& flight) {
  std::array<pnfsrdma_completion, kDepth> completions;
  const auto count = queue_->reap(completions, -1);
  // A signal, or no memory: it is waited for again, for it may not be left.
  for (const pnfsrdma_completion& completion : std::span(completions).first(count.value_or(0))) {
    const auto slot = static_cast<unsigned>(completion.user_data);
    const pnfsrdma_operation& operation = flight.operations[slot];
    flight.free[flight.free_count++] = slot;
    if (completion.result < 0) {
      flight.failed.push_back({operation.offset - offset_, operation.length});
      flight.fail_with(Error(static_cast<int>(-completion.result), "a range of a map"));
    } else if (flight.opcode == PNFSRDMA_READ) {
      // Behind the end of the file.
      const auto moved = static_cast<uint64_t>(completion.result);
      std::memset(static_cast<std::byte*>(operation.buffer) + moved, 0, operation.length - moved);
    }
  }
}

// Names the ranges: whoever has to write them again knows which.
std::string Map::why(const Flight& flight) {
  auto failed = flight.failed;
  std::ranges::sort(failed, {}, &pnfsrdma_range::offset);
  const bool reads = flight.opcode == PNFSRDMA_READ;
  std::string text = reads ? "not read into the map:" : "not durable, or not known to be:";
  for (const auto& range : std::span(failed).first(std::min(failed.size(), kNamed)))
    text += fmt::format(" {}+{}", range.offset, range.length);
  if (failed.size() > kNamed) text += fmt::format(" and {} more", failed.size() - kNamed);
  if (flight.next < flight.ranges.size())
    text += fmt::format("; nor what follows from range {} on", flight.next);
  return text;
}

}  // namespace pnfsrdma::library
