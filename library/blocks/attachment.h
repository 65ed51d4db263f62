// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "library/blocks/owner_link.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::library::blocks {

// What its data goes over while a brick knows a process by one attachment: the device that the attachment's
// ticket lets in at. Thread-safe.
struct Attachment {
  Attachment(OwnerLink::Attached said, const Clock& clock, const initiator::DataPathOptions& options,
             std::vector<initiator::TransportDomain> transports, DeferredDestruction& destruction);

  const OwnerLink::Attached told;
  initiator::Fabric fabric;
  initiator::Device device;
};

}  // namespace pnfsrdma::library::blocks
