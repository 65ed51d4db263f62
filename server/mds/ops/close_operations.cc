// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handlers.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/lease_keeper.h"
#include "server/mds/state/state_store.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// The open that CLOSE and OPEN_DOWNGRADE are about: a special stateid, but for "current", is none.
Outcome<OpenState*> named_open(const CompoundContext& context, const nfs4::Stateid& asked) {
  TRY_ASSIGN(const ObjectHandle handle, context.current_handle());
  TRY_ASSIGN(const nfs4::Stateid stateid, context.resolve(asked));
  if (special_stateid(stateid) != SpecialStateid::kNone) return std::unexpected(Status::kBadStateid);
  return context.find_open(stateid, handle.inode);
}

// The combinations of `open` that stay within access and deny, and whether together they are exactly these: a
// downgrade goes back to what some of the OPENs in effect asked for (RFC 8881, 18.18.3).
struct Downgrade {
  uint16_t combinations = 0;
  bool exact = false;
};
Downgrade downgrade(const OpenState& open, uint32_t access, uint32_t deny) {
  Downgrade result;
  uint32_t access_union = 0;
  uint32_t deny_union = 0;
  for (uint32_t bit = 0; bit < 16; ++bit) {
    const uint32_t one_access = bit / 4;
    const uint32_t one_deny = bit % 4;
    const bool within = (one_access & ~access) == 0 && (one_deny & ~deny) == 0;
    if ((open.combinations >> bit & 1) == 0 || !within) continue;
    result.combinations |= static_cast<uint16_t>(1U << bit);
    access_union |= one_access;
    deny_union |= one_deny;
  }
  result.exact = access_union == access && deny_union == deny;
  return result;
}

}  // namespace

// RFC 8881, 18.2
nfs4::CloseResponse handle(CompoundContext& context, const nfs4::CloseArguments& arguments) {
  TRY_ASSIGN(OpenState * open, named_open(context, arguments.open_stateid));
  // 18.2.4: whoever closes a file gives up its locks, by his own word or by ours.
  if (context.services.leases.has_many_locks(open->other)) {
    TRY_ASSIGN(const Outcome<> released, context.suspension.ask<Outcome<>>([&](auto done) {
      context.services.leases.release_locks(open->other, std::move(done));
    }));
    TRY(released);
  }
  LockTable& locks = context.services.locks;
  const LockTable::Set& of_open = locks.locks_of_open(open->other);
  const std::vector<LockState*> held(of_open.begin(), of_open.end());
  TRY(context.services.state_store.erase(*open, held));
  locks.remove(held);
  const InodeId inode = open->inode;
  context.services.opens.remove(*open);
  if (!context.services.opens.is_open(inode)) context.services.layouts.on_last_close({inode}, [] {});
  // The stateid is dead; the RFC wants it answered so that nobody can use it by mistake.
  context.set_current_stateid(nfs4::Stateid::invalid());
  return nfs4::CloseResult{nfs4::Stateid::invalid()};
}

// RFC 8881, 18.18
nfs4::OpenDowngradeResponse handle(CompoundContext& context, const nfs4::OpenDowngradeArguments& arguments) {
  TRY_ASSIGN(OpenState * open, named_open(context, arguments.open_stateid));
  const uint32_t access = arguments.share_access & ~nfs4::kShareAccessWantMask;
  const uint32_t deny = arguments.share_deny;
  if (access == 0 || access > kShareBoth || deny > kShareBoth) return Status::kInval;
  if ((access & ~open->access) != 0 || (deny & ~open->deny) != 0) return Status::kInval;
  const Downgrade result = downgrade(*open, access, deny);
  if (!result.exact) return Status::kInval;
  OpenState downgraded = *open;
  downgraded.access = access;
  downgraded.deny = deny;
  downgraded.combinations = result.combinations;
  downgraded.seqid = next_seqid(downgraded.seqid);
  TRY(context.services.state_store.put(downgraded));
  context.services.opens.replace(*open, std::move(downgraded));
  context.set_current_stateid(open->stateid());
  return nfs4::OpenDowngradeResult{open->stateid()};
}

}  // namespace pnfsrdma::mds
