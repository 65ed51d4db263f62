// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/verifier_check.h"

#include <algorithm>

namespace pnfsrdma::initiator {

bool outdated(const Connection& connection, const std::optional<brick::PersistReply>& reply) {
  return !reply || reply->verifier != connection.hello.verifier;
}

void VerifierCheck::verify(const Flush& flush, const Device* device,
                           const std::optional<xdr::FixedOpaque<8>>& now) {
  if (file_.dirty.verify(flush, device, now)) file_.fabric.statistics.lost_writes.add();
}

Result<> VerifierCheck::ask_the_others(const Flush& flush, std::span<const Device* const> answered) {
  for (Device* device : flush.devices) {
    if (std::find(answered.begin(), answered.end(), device) != answered.end()) continue;
    // Lost, or written again elsewhere meanwhile.
    if (!file_.dirty.to_be_asked(flush, device)) continue;
    TRY_ASSIGN(const auto verifier, ask_verifier(*device));
    verify(flush, device, verifier);
  }
  return {};
}

Result<std::optional<BrickVerifier>> VerifierCheck::ask_verifier(Device& device) {
  const SteadyTime deadline = file_.fabric.io_deadline();
  for (;;) {
    const auto connected = device.connect();
    if (connected) {
      file_.fabric.statistics.rdma_round_trips.add();
      const auto reply = (*connected)->queue_pair.persist({}, file_.fabric.io_deadline());
      if (outdated(**connected, reply)) device.lost(*connected);
      if (reply) return reply->verifier;
    } else if (connected.error().number() == ENOENT) {
      return std::nullopt;  // of GETDEVICEINFO
    }
    if (device.too_weak()) return std::unexpected(device.weakness());
    TRY(file_.patience.rest_of_brick(deadline));
  }
}

}  // namespace pnfsrdma::initiator
