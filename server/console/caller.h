// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shared/base/clock.h"

namespace pnfsrdma::console {

// What a caller may do; each may do all that those before it may.
enum class Role { kPublic, kViewer, kOperator, kAdmin };

constexpr std::string_view name_of(Role role) {
  switch (role) {
    case Role::kPublic:
      return "public";
    case Role::kViewer:
      return "viewer";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}
constexpr std::optional<Role> role_of(std::string_view name) {
  for (const Role role : {Role::kViewer, Role::kOperator, Role::kAdmin}) {
    if (name == name_of(role)) return role;
  }
  return std::nullopt;
}

// The names of those who come over the Unix socket: "root", "uid:1000".
inline constexpr std::string_view kSocketRoot = "root";
inline constexpr std::string_view kSocketUid = "uid:";

// The caller, as far as it is known.
struct Caller {
  std::string user = "-";
  Role role = Role::kPublic;
  std::string method = "none";  // "password" (a session), "token", "socket"
  std::string session;          // its key, when it has one
  std::string csrf_token;
  std::optional<WallTime> expires;
};

}  // namespace pnfsrdma::console
