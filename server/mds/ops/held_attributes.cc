// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/held_attributes.h"

#include <memory>
#include <optional>

#include "server/mds/ops/delegated_times.h"
#include "server/mds/state/delegations.h"

namespace pnfsrdma::mds {

using nfs4::Attribute;
using nfs4::Status;

namespace {

using Told = std::optional<Delegations::Told>;

const nfs4::Bitmap& attributes_of_data() {
  static const nfs4::Bitmap kData =
      nfs4::Bitmap::of(Attribute::kChange, Attribute::kSize, Attribute::kSpaceUsed, Attribute::kTimeMetadata,
                       Attribute::kTimeModify);
  return kData;
}

InodePointer of_size(const Inode& inode, uint64_t size) {
  auto shown = std::make_shared<Inode>(inode);
  shown->size = size;
  return shown;
}

InodePointer of_access(const InodePointer& inode, const std::optional<WallTime>& atime) {
  if (!atime) return inode;
  auto shown = std::make_shared<Inode>(*inode);
  shown->atime = *atime;
  return shown;
}

// The file has changed, now or when the holder says (RFC 9754, 5).
Outcome<> move_on(CompoundContext& context, const Inode& inode, const HeldTimes& told,
                  const HeldTimes& times) {
  InodeUpdate update;
  update.by_holder = told.modify.has_value();
  update.atime = times.access;
  update.mtime = told.modify ? times.modify.value_or(inode.mtime) : context.services.clock.wall_now();
  TRY(context.services.names.update(inode.id, update));
  return {};
}

}  // namespace

Outcome<InodePointer> as_its_holder_knows(CompoundContext& context, const InodePointer& inode,
                                          const nfs4::Bitmap& asked) {
  Delegations& delegations = context.services.delegations;
  const DelegationState* held = delegations.table().write_delegation(inode->id);
  if (held == nullptr || held->client == context.client_id()) return inode;
  if ((asked & attributes_of_data()).none() && !(held->keeps_times && asked.test(Attribute::kTimeAccess)))
    return inode;
  TRY_ASSIGN(const uint64_t before, context.suspension.once<uint64_t>([&] { return inode->change; }));
  TRY_ASSIGN(const Told told, context.suspension.ask<Told>(
                                  [&](auto done) { delegations.ask_holder(inode->id, std::move(done)); }));
  // While the operation waited, somebody else has got one.
  if (told && told->delegation != held->other) return std::unexpected(Status::kDelay);
  if (!told) {
    // RFC 8881, 10.4.3, would have us wait until it is back: everybody's stat(2), for a lease, because of one host that
    // hangs. What he has closed is known here, since he may keep nothing back (space_limit is 0).
    delegations.recall(inode->id, context.client_id(), [](Status) {});
    return inode;
  }
  // What he has committed since is newer than what he said.
  TRY_ASSIGN(const bool stale, context.suspension.once<bool>([&] { return inode->change != before; }));
  if (stale) return inode;
  // Also of the size: what he did to that himself, and has had no answer to yet, he may not know.
  const HeldTimes said = held->keeps_times ? told->times : HeldTimes{};
  const HeldTimes times = believed(*held, *inode, said, context.services.clock.wall_now());
  if (!told->is_changed) return of_access(inode, times.access);
  TRY_ASSIGN(const Outcome<> moved,
             context.suspension.once<Outcome<>>([&] { return move_on(context, *inode, said, times); }));
  TRY(moved);
  TRY_ASSIGN(const InodePointer now, context.services.names.get(inode->id));
  delegations.shown(told->delegation, told->size, now->change);
  return of_size(*now, told->size);
}

InodePointer as_its_holder_said(const CompoundContext& context, const InodePointer& inode) {
  const DelegationState* held = context.services.delegations.table().write_delegation(inode->id);
  if (held == nullptr || held->client == context.client_id() || !held->shown) return inode;
  return held->shown->change == inode->change ? of_size(*inode, held->shown->size) : inode;
}

}  // namespace pnfsrdma::mds
