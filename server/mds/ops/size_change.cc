// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/size_change.h"

#include "server/mds/state/conflicts.h"
#include "server/mds/state/delegations.h"

namespace pnfsrdma::mds {

using nfs4::Status;

Outcome<> change_size(CompoundContext& context, const Inode& inode, uint64_t size) {
  TRY_ASSIGN(const Status resized, context.suspension.ask<Status>([&](auto done) {
    auto hold = context.services.delegations.hold(inode.id, context.client_id());
    context.services.layouts.set_size(inode.id, size, context.client_id(),
                                      holding(std::move(hold), std::move(done)));
  }));
  if (resized != Status::kOk) return std::unexpected(resized);
  if (!context.credentials().is_root() && mode_without_setid(inode) != inode.mode) {
    InodeUpdate update;
    update.clear_setid = true;
    TRY(context.services.names.update(inode.id, update));
  }
  return {};
}

}  // namespace pnfsrdma::mds
