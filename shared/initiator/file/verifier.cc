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
  if (dirty.verify(flush, device, now)) fabric.statistics.lost_writes.add();
}

Result<std::optional<BrickVerifier>> FileIo::Parts::ask_verifier(Device& device) {
  const SteadyTime deadline = fabric.io_deadline();
  for (;;) {
    const auto connected = device.connect();
    if (connected) {
      fabric.statistics.rdma_round_trips.add();
      const auto reply = (*connected)->queue_pair.persist({}, fabric.io_deadline());
      if (outdated(**connected, reply)) device.lost(*connected);
      if (reply) return reply->verifier;
    } else if (connected.error().number() == ENOENT) {
      return std::nullopt;  // of GETDEVICEINFO
    }
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(patience.rest_of_brick(deadline));
  }
}

}  // namespace pnfsrdma::initiator
