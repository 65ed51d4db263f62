// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/path_lookup.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/ops/exports.h"

namespace pnfsrdma::mds {

Result<InodePointer> find_path(Namespace& names, const std::string& path) {
  if (!is_normal_path(path))
    return fail(EINVAL, "path must be absolute, without empty, \".\" or \"..\" parts");
  auto at = names.get(kRootInode);
  size_t begin = 1;
  while (at && begin < path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    at = names.lookup((*at)->id, std::string_view(path).substr(begin, end - begin));
    begin = end + 1;
  }
  if (at) return *at;
  if (at.error() == nfs4::Status::kIo || at.error() == nfs4::Status::kDelay)
    return fail(EIO, "reading the metadata of " + path);
  return fail(ENOENT, "there is no file " + path);
}

}  // namespace pnfsrdma::mds
