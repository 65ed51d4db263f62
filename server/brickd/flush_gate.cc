// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_gate.h"

#include <openssl/sha.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "server/brickd/limits.h"

namespace pnfsrdma::brick {

static_assert(sizeof(Verifier) == sizeof(uint64_t));

Verifier make_verifier(const std::array<std::byte, 16>& uuid, const BootId& boot, uint64_t unsafe_events) {
  std::array<std::byte, 40> material;
  std::memcpy(material.data(), uuid.data(), uuid.size());
  std::memcpy(material.data() + 16, boot.data(), boot.size());
  std::memcpy(material.data() + 32, &unsafe_events, sizeof unsafe_events);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(material.data()), material.size(), digest.data());
  Verifier verifier;
  std::memcpy(verifier.data(), digest.data(), verifier.size());
  return verifier;
}

FlushGate::FlushGate(pmem::Persistence& persistence, const std::array<std::byte, 16>& uuid,
                     const BootId& boot, uint64_t unsafe_events, std::function<void(const Error&)> on_unsafe)
    : persistence_(persistence),
      uuid_(uuid),
      boot_(boot),
      on_unsafe_(std::move(on_unsafe)),
      unsafe_events_(unsafe_events),
      verifier_(std::bit_cast<uint64_t>(make_verifier(uuid, boot, unsafe_events))) {}

Verifier FlushGate::verifier() const {
  return std::bit_cast<Verifier>(verifier_.load());
}

void FlushGate::count_unsafe_event() {
  const std::lock_guard lock(counting_);
  verifier_.store(std::bit_cast<uint64_t>(make_verifier(uuid_, boot_, ++unsafe_events_)));
}

Result<> FlushGate::persist(std::span<const ByteSpan> ranges) {
  return flush_all(ranges, Place::kBack);
}

Result<> FlushGate::persist_under(std::span<const ByteSpan> ranges, const Verifier& expected, Place place) {
  TRY(flush_all(ranges, place));
  if (verifier() != expected) return fail(ESTALE, "an earlier flush failed: the verifier has changed");
  return {};
}

size_t FlushGate::waiting() {
  auto line = line_.lock();
  return (line->front.taken - line->front.served) + (line->back.taken - line->back.served);
}

void FlushGate::wait_for_turn(Place place) {
  auto line = line_.lock();
  Line::Places& places = place == Place::kFront ? line->front : line->back;
  const uint64_t ours = places.taken++;
  line.wait(turn_ended_, [&](const Line& now) {
    return !now.busy && places.served == ours && (place == Place::kFront || now.front.empty());
  });
  ++places.served;
  line->busy = true;
}

void FlushGate::end_turn() {
  line_.lock()->busy = false;
  turn_ended_.notify_all();
}

// What of another's bytes fails in our turn has changed the verifier before the next turn begins, so before
// that other one answers: between turns nothing is lost from sight.
Result<> FlushGate::flush_all(std::span<const ByteSpan> ranges, Place place) {
  if (!persistence_.blocks()) return flush_turn(ranges);
  std::vector<ByteSpan> turn;
  uint64_t bytes = 0;
  const auto take_turn = [&] {
    wait_for_turn(place);
    Result<> flushed = flush_turn(turn);
    end_turn();
    turn.clear();
    bytes = 0;
    return flushed;
  };
  for (ByteSpan range : ranges) {
    while (!range.empty()) {
      const ByteSpan piece = range.first(std::min<size_t>(range.size(), kFlushTurnBytes - bytes));
      turn.push_back(piece);
      bytes += piece.size();
      range = range.subspan(piece.size());
      if (bytes == kFlushTurnBytes || turn.size() == kFlushTurnRanges) TRY(take_turn());
    }
  }
  return turn.empty() ? Result<>() : take_turn();
}

Result<> FlushGate::flush_turn(std::span<const ByteSpan> ranges) {
  Result<> result;
  for (const ByteSpan& range : ranges) {
    result = persistence_.flush(range);
    if (!result) break;
  }
  if (result) result = persistence_.fence();
  if (!result) {
    count_unsafe_event();
    on_unsafe_(result.error());
  }
  return result;
}

}  // namespace pnfsrdma::brick
