// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/sync.h"
#include "shared/initiator/cancellation.h"
#include "shared/initiator/file/parts.h"

// Whether a brick still has what it took: it has, as long as its verifier is that of the writes (DESIGN.md
// section 5).
namespace pnfsrdma::initiator {

bool FileIo::Parts::outdated(const Connection& connection, const std::optional<brick::PersistReply>& reply) {
  return !reply || reply->verifier != connection.hello.verifier;
}

Result<> FileIo::Parts::ask_the_others(const Flush& flush, std::span<const Device* const> answered) {
  for (Device* device : flush.devices) {
    if (std::find(answered.begin(), answered.end(), device) != answered.end()) continue;
    // Lost, or written again elsewhere meanwhile.
    if (!dirty.pending(flush, device)) continue;
    TRY_ASSIGN(const auto verifier, ask_verifier(*device));
    verify(flush, device, verifier);
  }
  return {};
}

void FileIo::Parts::verify(const Flush& flush, const Device* device,
                           const std::optional<xdr::FixedOpaque<8>>& now) {
  if (dirty.verify(flush, device, now)) services.statistics.lost_writes.add();
}

Result<std::optional<BrickVerifier>> FileIo::Parts::ask_verifier(Device& device) {
  const SteadyTime deadline = services.io_deadline();
  for (;;) {
    const auto connected = device.connect();
    if (connected) {
      services.statistics.rdma_round_trips.add();
      const auto reply = (*connected)->queue_pair.persist({}, services.io_deadline());
      if (outdated(**connected, reply)) device.lost(*connected);
      if (reply) return reply->verifier;
    } else if (connected.error().number() == ENOENT) {
      return std::nullopt;  // of GETDEVICEINFO
    }
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(rest_of_brick(deadline));
  }
}

// A brick whose connection has just died rests for a moment; that alone must not become the EIO of an fsync.
Result<std::shared_ptr<Connection>> FileIo::Parts::connect_patiently(Device& device) {
  const SteadyTime deadline = services.io_deadline();
  for (;;) {
    auto connection = device.connect();
    if (connection) return connection;
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(rest_of_brick(deadline));
  }
}

Result<> FileIo::Parts::rest_of_brick(SteadyTime deadline) {
  constexpr Milliseconds kPause{10};
  if (services.aborted) return fail(ESHUTDOWN, "the mount ends");
  if (CancellationScope::cancelled()) return fail(EINTR, "whoever asked was killed");
  if (services.now() >= deadline) return fail(kBrickSilent, "the brick does not answer");
  sleep_for(kPause);
  return {};
}

}  // namespace pnfsrdma::initiator
