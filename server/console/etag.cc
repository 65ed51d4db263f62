// SPDX-License-Identifier: Apache-2.0
#include "server/console/etag.h"

#include "server/console/secret.h"

namespace pnfsrdma::console {

std::string etag_of_text(const std::string& text) {
  constexpr size_t kDigits = 32;
  return "\"" + digest_of(text).substr(0, kDigits) + "\"";
}

Answer<> check_if_match(const std::optional<std::string>& if_match, const std::string& etag,
                        Precondition precondition) {
  if (!if_match) {
    if (precondition == Precondition::kOptional) return {};
    return refuse("precondition-required", "A change must say what it was made from.",
                  "Give the ETag of the newest GET as If-Match, or * to overwrite whatever is there.");
  }
  if (*if_match == "*" || *if_match == etag) return {};
  return refuse("changed-meanwhile", "It is not what it was when you saw it: somebody has changed it.",
                "GET it again, look, and repeat the change with the new ETag.");
}

}  // namespace pnfsrdma::console
