// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound_context.h"
#include "server/mds/state/delegation_table.h"
#include "shared/nfs4/open_operations.h"

namespace pnfsrdma::mds {

// Which delegation an OPEN would like.
struct DelegationWish {
  uint32_t want = 0;   // one of kShareAccessWant*
  bool times = false;  // its holder would keep the file's times (RFC 9754, 5)
  // Of the open that is to go for it, which it is like but for the kind. Zeros: there is none.
  StateidOther instead_of{};
};

// Whether somebody who has opened a regular file gets a delegation of it, or what he is told instead (RFC 8881, 10.4
// and 18.16.3). One to read for who only reads; one to write for who reads and writes, and asks for it. The last thing
// an operation does: it makes state. With kShareAccessWantNoPreference there is no reason in the answer.
nfs4::Delegation grant_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                  uint32_t access, const DelegationWish& wish);

// CLAIM_PREVIOUS: one that the client held before the host went down.
nfs4::Delegation reclaim_delegation(CompoundContext& context, const Inode& inode, const ObjectHandle& handle,
                                    nfs4::DelegationType type, const DelegationWish& wish);

// What OPEN answers of this one; `times`: the client knows of RFC 9754.
nfs4::Delegation given_delegation(const DelegationState& held, bool times);
// Of one that is given. Null: none is.
const nfs4::Stateid* stateid_of(const nfs4::Delegation& delegation);

// One of a directory, to read (10.9): names, their absence and the directory's own attributes stay as they are until it
// is recalled. What the client changes itself it knows from the answers. It cannot be reclaimed.
std::expected<nfs4::Stateid, nfs4::WhyNoDelegation> grant_directory_delegation(CompoundContext& context,
                                                                               const Inode& directory,
                                                                               const ObjectHandle& handle);

}  // namespace pnfsrdma::mds
