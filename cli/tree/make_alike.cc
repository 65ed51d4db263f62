// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/make_alike.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/tree/extended_attributes.h"

namespace pnfsrdma::cli {

Result<> make_alike(const Entry& target, const Entry& source) {
  const Status& wanted = source.status;
  const char* const name = target.name.c_str();
  const bool other_owner = target.status.user != wanted.user || target.status.group != wanted.group;
  if (other_owner &&
      fchownat(target.directory, name, target.status.user == wanted.user ? -1 : wanted.user,
               target.status.group == wanted.group ? -1 : wanted.group, AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errno, "give it its owner");
  if (wanted.type() != S_IFLNK) {
    TRY_ASSIGN(const ExtendedAttributes attributes, extended_attributes_of(source.path()));
    TRY(set_extended_attributes(target.path(), attributes));
    // A new owner and an ACL change it.
    if (fchmodat(target.directory, name, wanted.permissions(), AT_SYMLINK_NOFOLLOW) != 0)
      return fail(errno, "set its mode");
  }
  const std::array times = {wanted.accessed.as_timespec(), wanted.modified.as_timespec()};
  if (utimensat(target.directory, name, times.data(), AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errno, "set its times");
  return {};
}

}  // namespace pnfsrdma::cli
