// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace pnfsrdma::cli {

// Members of what a mount or a server tells, by JSON pointer; what is missing or of another type (another
// version's) is zero, empty or false.

inline uint64_t number_at(const nlohmann::json& from, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  if (!from.contains(at)) return 0;
  const nlohmann::json& value = from[at];
  return value.is_number() ? value.get<uint64_t>() : 0;
}

inline std::string text_at(const nlohmann::json& from, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  if (!from.contains(at)) return {};
  const nlohmann::json& value = from[at];
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline bool flag_at(const nlohmann::json& from, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return from.contains(at) && from[at].is_boolean() && from[at].get<bool>();
}

}  // namespace pnfsrdma::cli
