// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/attributes.h"

namespace pnfsrdma::mds {

// The object as somebody sees it who asks for these attributes. Where another client holds a write delegation, he is
// asked for size and change first (RFC 8881, 10.4.3). If he does not say, the delegation is recalled, and what is
// known here is shown meanwhile. The size he tells is shown and not stored. That he has changed the file moves its
// change attribute and times on, and is on record before anybody sees it. May suspend. DELAY, and what
// Namespace::update() says.
Outcome<InodePointer> as_its_holder_knows(CompoundContext& context, const InodePointer& inode,
                                          const nfs4::Bitmap& asked);

// The same without a question, for who looks at many: as whoever asked last was shown it.
InodePointer as_its_holder_said(const CompoundContext& context, const InodePointer& inode);

}  // namespace pnfsrdma::mds
