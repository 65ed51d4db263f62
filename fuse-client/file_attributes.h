// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <expected>
#include <string_view>

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::fuse_client {

// One file's attributes as the server told them: what stat(2) shows, and the change attribute. A value.
struct FileAttributes {
  uint64_t change = 0;
  struct stat status{};
};

// The attributes every GETATTR of this client asks for; at an OPEN also the threshold below which I/O goes
// through the MDS.
const nfs4::Bitmap& stat_attributes();
const nfs4::Bitmap& open_attributes();

// kServerFault when type, change or file id are missing: nothing can be done with such a file. Others have
// defaults.
std::expected<FileAttributes, nfs4::Status> to_file_attributes(const nfs4::Attributes& attributes);

// What a SETATTR sends for FUSE's `to_set` (FUSE_SET_ATTR_*), without the size if `with_size` is false.
nfs4::Attributes to_set_attributes(const struct stat& wanted, int to_set, bool with_size = true);

// Mode for a new object, the umask already applied by the kernel.
nfs4::Attributes mode_of_new(mode_t mode);

// An owner or group string (RFC 8881, 5.9): a number as AUTH_SYS servers send it, or name@domain looked up
// here; who is unknown here is nobody (65534).
uint32_t user_number(std::string_view owner);
uint32_t group_number(std::string_view owner_group);

}  // namespace pnfsrdma::fuse_client
