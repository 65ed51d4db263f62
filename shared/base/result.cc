// SPDX-License-Identifier: Apache-2.0
#include "shared/base/result.h"

#include <cerrno>
#include <system_error>

namespace pnfsrdma {

Error Error::from_errno(std::string what) {
  return Error(errno, std::move(what));
}

std::string Error::to_string() const {
  return what_ + ": " + std::generic_category().message(number_);
}

Error Error::in(std::string_view where) const {
  return Error(number_, std::string(where) + ": " + what_);
}

}  // namespace pnfsrdma
