// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "server/console/json.h"
#include "server/console/problem.h"

namespace pnfsrdma::console {

// A place in a list as clients get it: nothing they can read or make.
std::string seal_cursor(const std::string& place);
// None: it is none of ours.
std::optional<std::string> unseal_cursor(const std::string& cursor);

// One page of a list: {"items": […], "next_cursor": …}. Cursors name a place, not a number of items: a list
// that changes meanwhile neither repeats nor leaves out what stays.
inline Json page_json(Json items, const std::string& next_cursor) {
  return {{"items", std::move(items)},
          {"next_cursor", next_cursor.empty() ? Json() : Json(seal_cursor(next_cursor))}};
}

// The page of `all`, which is in the order of `key_of` (a string), behind `cursor` (the key of the last item
// before).
template <typename Items, typename KeyOf, typename ToJson>
Json make_page(const Items& all, const std::string& cursor, size_t limit, KeyOf key_of, ToJson to_json) {
  Json items = Json::array();
  std::string last;
  for (const auto& item : all) {
    const std::string key = key_of(item);
    if (!cursor.empty() && key <= cursor) continue;
    if (items.size() >= limit) return page_json(std::move(items), last);
    items.push_back(to_json(item));
    last = key;
  }
  return page_json(std::move(items), {});
}

inline std::unexpected<Problem> strange_cursor() {
  return refuse("bad-request", "The cursor does not belong to this list.",
                "Use next_cursor of the previous page, or none.");
}

// For keys that are numbers: all of the same length, so that they sort as numbers do.
inline std::string number_cursor(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(20 - digits.size(), '0') + digits;
}
inline Answer<uint64_t> number_of_cursor(const std::string& cursor) {
  uint64_t number = 0;
  const char* end = cursor.data() + cursor.size();
  const auto parsed = std::from_chars(cursor.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  return strange_cursor();
}

}  // namespace pnfsrdma::console
