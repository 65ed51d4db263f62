// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/make_alike.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/tree/extended_attributes.h"

namespace pnfsrdma::cli {
namespace {

// Who owns a file that nobody may write may not give it attributes either: it is made writable for that time.
Result<> give_attributes(const Held& target, const ExtendedAttributes& wanted) {
  const auto given = set_extended_attributes(target, wanted);
  if (given || given.error().number() != EACCES) return given;
  if (chmod(target.path().c_str(), target.status.permissions() | S_IWUSR) != 0) return given;
  return set_extended_attributes(target, wanted);
}

}  // namespace

Result<> make_alike(const Held& target, const Entry& source) {
  const Status& present = target.status;
  const Status& wanted = source.status;
  const int file = target.file.get();
  const bool other_owner = present.user != wanted.user || present.group != wanted.group;
  if (other_owner && fchownat(file, "", present.user == wanted.user ? -1 : wanted.user,
                              present.group == wanted.group ? -1 : wanted.group, AT_EMPTY_PATH) != 0)
    return fail(errno, "give it its owner");
  if (wanted.type() != S_IFLNK) {
    TRY_ASSIGN(const ExtendedAttributes attributes, extended_attributes_of(source));
    TRY(give_attributes(target, attributes));
    // A new owner and an ACL change it.
    if (chmod(target.path().c_str(), wanted.permissions()) != 0) return fail(errno, "set its mode");
  }
  const std::array times = {wanted.accessed.as_timespec(), wanted.modified.as_timespec()};
  if (utimensat(file, "", times.data(), AT_EMPTY_PATH) != 0) return fail(errno, "set its times");
  return {};
}

}  // namespace pnfsrdma::cli
