// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/attributes.h"

namespace pnfsrdma::mds {

// supported_attrs: the same for every object.
const nfs4::Bitmap& supported_attributes();
// Those of them that can only be set (time_access_set …): asking for one is INVAL.
const nfs4::Bitmap& write_only_attributes();
// What SETATTR, CREATE and OPEN may set. suppattr_exclcreat is the same: the verifier of an exclusive create
// has its own place, no attribute is used to keep it.
const nfs4::Bitmap& settable_attributes();

// The attributes of `inode` as seen through `handle` that are asked for and supported (RFC 8881, 5: others
// are left out without a word).
nfs4::Attributes attribute_values(const Services& services, const ObjectHandle& handle, const Inode& inode,
                                  const nfs4::Bitmap& requested);

// owner and owner_group on the wire are decimal numbers (RFC 8881, 5.9): every host maps names by itself.
std::string owner_text(uint32_t id);
// "1000", "1000@anything", "root", "nobody"; nothing for another name.
std::optional<uint32_t> parse_owner(std::string_view text);

}  // namespace pnfsrdma::mds
