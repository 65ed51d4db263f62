// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::mds {

// A handler for each row of the table of operations: `nfs4::OpenResponse handle(CompoundContext&, const
// nfs4::OpenArguments&)` and so on. See compound_context.h for what a handler may do and when. They are
// defined by family in *_operations.cc; those this server does not offer in unsupported_operations.cc.
#define PNFSRDMA_HANDLER(Name, number, text, first, last) \
  nfs4::Name##Response handle(CompoundContext& context, const nfs4::Name##Arguments& arguments);
PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_HANDLER)
#undef PNFSRDMA_HANDLER

}  // namespace pnfsrdma::mds
