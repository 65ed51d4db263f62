// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/rdma/verbs/domain.h"

namespace pnfsrdma::rdma::verbs {

// Registers `memory` with exactly these rights. Errors say what to do about them: ENOMEM (memlock),
// EOPNOTSUPP (a mapping that cannot be pinned, or flush where it cannot be given), EFAULT, EINVAL (empty).
//
// The region's destructor is the fence: it returns when the device has given up the key. Should the device
// refuse, the domain's queue pairs are failed first; should it still refuse, the process ends, which takes
// the memory back for certain.
Result<std::unique_ptr<Region>> register_region(std::shared_ptr<VerbsDomain> domain, MutableByteSpan memory,
                                                Access access);

}  // namespace pnfsrdma::rdma::verbs
