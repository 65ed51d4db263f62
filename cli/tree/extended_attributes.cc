// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/extended_attributes.h"

#include <sys/xattr.h>

#include <cerrno>
#include <optional>

namespace pnfsrdma::cli {
namespace {

// What may grow between the question for its size and the one for itself.
template <typename Ask>
Result<std::string> read_all(const char* call, Ask ask) {
  for (;;) {
    const ssize_t size = ask(nullptr, 0);
    if (size < 0) return fail(errno, call);
    std::string text(static_cast<size_t>(size), '\0');
    if (size == 0) return text;
    const ssize_t read = ask(text.data(), text.size());
    if (read < 0 && errno == ERANGE) continue;
    if (read < 0) return fail(errno, call);
    text.resize(static_cast<size_t>(read));
    return text;
  }
}

}  // namespace

bool is_acl(const std::string& name) {
  return name.starts_with("system.posix_acl_");
}

Result<ExtendedAttributes> extended_attributes_of(const std::string& path) {
  const auto names =
      read_all("listxattr", [&](char* to, size_t size) { return llistxattr(path.c_str(), to, size); });
  if (!names && names.error().number() == ENOTSUP) return ExtendedAttributes{};
  if (!names) return std::unexpected(names.error());
  ExtendedAttributes found;
  for (size_t at = 0; at < names->size();) {
    const std::string name(names->c_str() + at);
    at += name.size() + 1;
    if (name.starts_with("user.pnfsrdma.") || name.starts_with("system.pnfsrdma.")) continue;
    auto value = read_all(
        "getxattr", [&](char* to, size_t size) { return lgetxattr(path.c_str(), name.c_str(), to, size); });
    if (!value && value.error().number() == ENODATA) continue;
    if (!value) return std::unexpected(value.error());
    found.emplace(name, *std::move(value));
  }
  return found;
}

Result<> set_extended_attributes(const std::string& path, const ExtendedAttributes& wanted) {
  TRY_ASSIGN(const ExtendedAttributes present, extended_attributes_of(path));
  for (const auto& [name, value] : present) {
    if (!wanted.contains(name) && lremovexattr(path.c_str(), name.c_str()) != 0)
      return fail(errno, "removexattr");
  }
  for (const auto& [name, value] : wanted) {
    const auto found = present.find(name);
    if (found != present.end() && found->second == value) continue;
    if (lsetxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) != 0)
      return fail(errno, "setxattr");
  }
  return {};
}

}  // namespace pnfsrdma::cli
