// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_gate.h"

#include <openssl/sha.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

#include "server/brickd/flush_turn.h"

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
  return line->front.size() + line->back.size();
}

// Of PMEM, whose fence speaks for the flushes of this thread alone: there is nothing to share.
Result<> FlushGate::flush_lines(std::span<const ByteSpan> ranges) {
  return judged(persistence_.persist_all(ranges));
}

// What of another's bytes fails in our turn has changed the verifier before the next turn begins, so before
// that other one answers: between turns nothing is lost from sight.
Result<> FlushGate::flush_all(std::span<const ByteSpan> ranges, Place place) {
  if (!persistence_.blocks()) return flush_lines(ranges);
  Waiting ours;
  std::ranges::copy_if(ranges, std::back_inserter(ours.left),
                       [](const ByteSpan& range) { return !range.empty(); });
  if (ours.left.empty()) return {};
  auto line = line_.lock();
  (place == Place::kFront ? line->front : line->back).push_back(&ours);
  while (!ours.result) {
    line.wait(turn_ended_,
              [&](const Line& now) { return ours.result || (!now.busy && now.next().front() == &ours); });
    if (!ours.result) run_turn(line);
  }
  return std::move(*ours.result);
}

// For the first in line and all behind it for whom there is room.
void FlushGate::run_turn(Guarded<Line>::Lock& line) {
  auto& waiting = line->front.empty() ? line->back : line->front;
  FlushTurn turn;
  std::vector<Waiting*> served;
  while (!waiting.empty() && !turn.full()) {
    served.push_back(waiting.front());
    waiting.pop_front();
    auto& left = served.back()->left;
    while (!left.empty() && !turn.full()) {
      turn.take(left.front());
      if (left.front().empty()) left.pop_front();
    }
  }
  line->busy = true;
  line.unlock();
  const Result<> flushed = judged(persistence_.persist_all(turn.flushes()));
  line.relock();
  line->busy = false;
  for (Waiting* each : served) {
    if (flushed && !each->left.empty())
      waiting.push_back(each);
    else
      each->result = flushed;
  }
  turn_ended_.notify_all();
}

// A failure changes the verifier before anybody hears of it.
Result<> FlushGate::judged(Result<> flushed) {
  if (!flushed) {
    count_unsafe_event();
    on_unsafe_(flushed.error());
  }
  return flushed;
}

}  // namespace pnfsrdma::brick
