// SPDX-License-Identifier: Apache-2.0
#include "server/console/etag.h"

#include <algorithm>

#include "server/console/secret.h"

namespace pnfsrdma::console {

namespace {

// "a.b" is "a": what the rest of an answer was does not matter to a change.
std::string changeable_part(const std::string& etag) {
  const size_t dot = etag.find('.');
  return dot == std::string::npos ? etag : etag.substr(0, dot) + "\"";
}

}  // namespace

std::string etag_of_text(const std::string& text) {
  constexpr size_t kDigits = 32;
  return "\"" + digest_of(text).substr(0, kDigits) + "\"";
}

std::string etag_of_answer(const std::string& etag, const std::string& body) {
  constexpr size_t kDigits = 16;
  std::string text = etag.empty() ? "\"" : etag.substr(0, etag.size() - 1) + ".";
  return text + digest_of(body).substr(0, kDigits) + "\"";
}

bool is_known(std::string_view if_none_match, std::string_view etag) {
  if (if_none_match == "*") return true;
  while (!if_none_match.empty()) {
    const size_t comma = std::min(if_none_match.find(','), if_none_match.size());
    std::string_view one = if_none_match.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == etag) return true;
    if_none_match.remove_prefix(std::min(comma + 1, if_none_match.size()));
  }
  return false;
}

Answer<> check_if_match(const std::optional<std::string>& if_match, const std::string& etag,
                        Precondition precondition) {
  if (!if_match) {
    if (precondition == Precondition::kOptional) return {};
    return refuse("precondition-required", "A change must name the version it is based on.",
                  "Give the ETag of the newest GET as If-Match, or * to overwrite whatever is there.");
  }
  if (*if_match == "*" || changeable_part(*if_match) == etag) return {};
  return refuse("changed-meanwhile", "Somebody has changed it since you read it.",
                "GET it again, check it, and repeat the change with the new ETag.");
}

}  // namespace pnfsrdma::console
