// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "cli/tree/tree.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// The extended attributes of a file, POSIX ACLs among them. Not those by which a mount tells of itself.
using ExtendedAttributes = std::map<std::string, std::string>;

bool is_acl(const std::string& name);

// Of what is no symbolic link. Nothing where there are none. Errors: as getxattr(2).
Result<ExtendedAttributes> extended_attributes_of(const Entry& entry);

// Gives it those of `wanted`, and takes all others; ACLs last, which may take the right to set any more. Errors: as
// setxattr(2).
Result<> set_extended_attributes(const Held& file, const ExtendedAttributes& wanted);

}  // namespace pnfsrdma::cli
