// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::cli {

// The extended attributes of a file, POSIX ACLs among them. Not those by which a mount tells of itself.
using ExtendedAttributes = std::map<std::string, std::string>;

bool is_acl(const std::string& name);

// Of what the path's last name is, which is no symbolic link. Nothing where there are none. Errors: as getxattr(2).
Result<ExtendedAttributes> extended_attributes_of(const std::string& path);

// Gives it those of `wanted`, and takes all others. Errors: as setxattr(2).
Result<> set_extended_attributes(const std::string& path, const ExtendedAttributes& wanted);

}  // namespace pnfsrdma::cli
