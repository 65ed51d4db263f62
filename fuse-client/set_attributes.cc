// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/set_attributes.h"

#include <string>

#include "fuse-client/fuse_header.h"

namespace pnfsrdma::fuse_client {
namespace {

nfs4::SetTime client_time(const timespec& time) {
  return nfs4::SetTime::make<nfs4::TimeHow::kClientTime>({time.tv_sec, static_cast<uint32_t>(time.tv_nsec)});
}

}  // namespace

nfs4::Attributes to_set_attributes(const struct stat& wanted, int to_set, bool with_size) {
  nfs4::Attributes attributes;
  if (with_size && (to_set & FUSE_SET_ATTR_SIZE) != 0)
    attributes.size = static_cast<uint64_t>(wanted.st_size);
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) attributes.mode = wanted.st_mode & 07777;
  if ((to_set & FUSE_SET_ATTR_UID) != 0) attributes.owner = nfs4::Text(std::to_string(wanted.st_uid));
  if ((to_set & FUSE_SET_ATTR_GID) != 0) attributes.owner_group = nfs4::Text(std::to_string(wanted.st_gid));
  if ((to_set & FUSE_SET_ATTR_ATIME_NOW) != 0) {
    attributes.time_access_set = nfs4::SetTime{};
  } else if ((to_set & FUSE_SET_ATTR_ATIME) != 0) {
    attributes.time_access_set = client_time(wanted.st_atim);
  }
  if ((to_set & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    attributes.time_modify_set = nfs4::SetTime{};
  } else if ((to_set & FUSE_SET_ATTR_MTIME) != 0) {
    attributes.time_modify_set = client_time(wanted.st_mtim);
  }
  return attributes;
}

}  // namespace pnfsrdma::fuse_client
