// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/flush_gate.h"

#include <openssl/sha.h>

#include <bit>
#include <cstring>

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
  std::unique_lock lock(one_at_a_time_, std::defer_lock);
  if (persistence_.blocks()) lock.lock();
  return flush_all(ranges);
}

Result<> FlushGate::persist_under(std::span<const ByteSpan> ranges, const Verifier& expected) {
  std::unique_lock lock(one_at_a_time_, std::defer_lock);
  if (persistence_.blocks()) lock.lock();
  TRY(flush_all(ranges));
  if (verifier() != expected) return fail(ESTALE, "an earlier flush failed: the verifier has changed");
  return {};
}

Result<> FlushGate::flush_all(std::span<const ByteSpan> ranges) {
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
