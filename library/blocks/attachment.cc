// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/attachment.h"

#include <utility>

namespace pnfsrdma::library::blocks {
namespace {

nfs4::DeviceAddress address_of_brick(const AttachResult& told) {
  nfs4::DeviceAddress address;
  for (const brick::Path& path : told.paths) address.paths.push_back({path.netid, path.address});
  address.ticket = told.ticket;
  address.flush_methods = told.flush_methods;
  const auto durability = static_cast<Durability>(told.durability);
  address.durability = xdr_known(durability) ? durability : Durability::kVolatile;
  address.block_size = static_cast<uint32_t>(told.block_size);
  return address;
}

}  // namespace

Attachment::Attachment(OwnerLink::Attached said, const Clock& clock,
                       const initiator::DataPathOptions& options,
                       std::vector<initiator::TransportDomain> transports, DeferredDestruction& destruction)
    : told(std::move(said)),
      fabric{.clock = clock,
             .options = options,
             .transports = std::move(transports),
             .address_of = [brick = address_of_brick(*told)](
                               const nfs4::DeviceId&) -> Result<nfs4::DeviceAddress> { return brick; },
             .destruction = destruction},
      device(told->uuid, fabric) {}

}  // namespace pnfsrdma::library::blocks
