// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include "shared/nfs4/attributes.h"

namespace pnfsrdma::fuse_client {

// What a SETATTR sends for FUSE's `to_set` (FUSE_SET_ATTR_*), without the size if `with_size` is false.
nfs4::Attributes to_set_attributes(const struct stat& wanted, int to_set, bool with_size = true);

}  // namespace pnfsrdma::fuse_client
