// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/namespace.h"
#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/attributes.h"

namespace pnfsrdma::mds {

// What CREATE and OPEN make for the caller in `directory` from the attributes asked for: its own, mode 0
// without one, with the ACLs it inherits. A size is OPEN's to set. The errors of settable_attributes() and of
// SettableAttributes::check_type(); INVAL for the size of what is no file; PERM for an owner the caller cannot give to.
Outcome<NewInode> new_inode(const CompoundContext& context, const Inode& directory, FileType type,
                            const nfs4::Attributes& attributes);

}  // namespace pnfsrdma::mds
