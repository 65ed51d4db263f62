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

// By a name, or by the path of a descriptor, which is a link.
struct Calls {
  ssize_t (*list)(const char* path, char* names, size_t size);
  ssize_t (*get)(const char* path, const char* name, void* value, size_t size);
};
constexpr Calls kOfName{llistxattr, lgetxattr};
constexpr Calls kOfHeld{listxattr, getxattr};

Result<ExtendedAttributes> read_by(const Calls& calls, const std::string& path) {
  const auto names =
      read_all("listxattr", [&](char* to, size_t size) { return calls.list(path.c_str(), to, size); });
  if (!names && names.error().number() == ENOTSUP) return ExtendedAttributes{};
  if (!names) return std::unexpected(names.error());
  ExtendedAttributes found;
  for (size_t at = 0; at < names->size();) {
    const std::string name(names->c_str() + at);
    at += name.size() + 1;
    if (name.starts_with("user.pnfsrdma.") || name.starts_with("system.pnfsrdma.")) continue;
    auto value = read_all(
        "getxattr", [&](char* to, size_t size) { return calls.get(path.c_str(), name.c_str(), to, size); });
    if (!value && value.error().number() == ENODATA) continue;
    if (!value) return std::unexpected(value.error());
    found.emplace(name, *std::move(value));
  }
  return found;
}

}  // namespace

bool is_acl(const std::string& name) {
  return name.starts_with("system.posix_acl_");
}

Result<ExtendedAttributes> extended_attributes_of(const Entry& entry) {
  return read_by(kOfName, entry.path());
}

Result<> set_extended_attributes(const Held& file, const ExtendedAttributes& wanted) {
  const std::string path = file.path();
  TRY_ASSIGN(const ExtendedAttributes present, read_by(kOfHeld, path));
  for (const auto& [name, value] : present) {
    if (!wanted.contains(name) && removexattr(path.c_str(), name.c_str()) != 0)
      return fail(errno, "removexattr");
  }
  for (const bool acls : {false, true}) {
    for (const auto& [name, value] : wanted) {
      const auto found = present.find(name);
      if (is_acl(name) != acls || (found != present.end() && found->second == value)) continue;
      if (setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0) != 0)
        return fail(errno, "setxattr");
    }
  }
  return {};
}

}  // namespace pnfsrdma::cli
