// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/status.h"
#include "shared/nfs4/xattr_presence.h"

namespace pnfsrdma::client {

// One file's attributes as the server told them: what stat(2) shows, and the change attribute. A value.
struct FileAttributes {
  uint64_t change = 0;
  struct stat status{};
  // nfs4::kHas*Acl: those that a server of ours says there are. Of a device it says nothing: they may be.
  // nfs4::kTellsXattrs, kHasXattrs: the same of extended attributes.
  uint32_t presence = 0;
  bool lacks_xattrs() const {
    return (presence & (nfs4::kTellsXattrs | nfs4::kHasXattrs)) == nfs4::kTellsXattrs;
  }
};

// The attributes every GETATTR of this client asks for; at an OPEN also the threshold below which I/O goes
// through the MDS.
const nfs4::Bitmap& stat_attributes();
const nfs4::Bitmap& open_attributes();

// Where statx(2) asks for the time of birth.
const nfs4::Bitmap& birth_attributes();
std::optional<timespec> birth_of(const nfs4::Attributes& attributes);

// kServerFault when type, change or file id are missing: nothing can be done with such a file. Others have
// defaults.
std::expected<FileAttributes, nfs4::Status> to_file_attributes(const nfs4::Attributes& attributes);

// Mode for a new object, the umask already applied.
nfs4::Attributes mode_of_new(mode_t mode);
// The same where the server applies it, or the default ACL of the directory (RFC 8275).
nfs4::Attributes mode_of_new(mode_t mode, mode_t umask);

// mdsthreshold4 for our layout type: {read, write} sizes in bytes below which I/O goes through the MDS. None:
// the server did not say.
std::optional<std::pair<uint64_t, uint64_t>> thresholds_of(const nfs4::Attributes& attributes);

// An owner or group string (RFC 8881, 5.9): a number as AUTH_SYS servers send it, or name@domain looked up
// here; who is unknown here is nobody (65534).
uint32_t user_number(std::string_view owner);
uint32_t group_number(std::string_view owner_group);

}  // namespace pnfsrdma::client
