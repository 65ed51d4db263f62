// SPDX-License-Identifier: Apache-2.0
#include "cli/resource/own_quota_command.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/resource/view.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr std::array kOwnQuotaFields = {
    Field{"used", "/space_used_bytes", Field::kBytes},
    Field{"left to the soft limit", "/space_soft_left_bytes", Field::kBytes},
    Field{"left to the hard limit", "/space_hard_left_bytes", Field::kBytes},
};
constexpr size_t kOwnQuotaBytesMax = 4096;

Failure why_no_quota(const std::string& path, int error) {
  switch (error) {
    case ENODATA:
      return {ExitCode::kFailed, path + ": the server tells nothing of quotas",
              "They are off, or it is another server than ours.", "its administrator: pnfsrdma quota status"};
    case ENOTSUP:
      return {ExitCode::kNotFound, path + " is not in a pnfsrdma mount",
              "Or its pnfsrdma-fuse is older than this program.", "pnfsrdma stat shows all mounts"};
    case ENOENT:
    case ENOTDIR:
      return {ExitCode::kNotFound, path + ": " + std::strerror(error), {}, {}};
    case EACCES:
    case EPERM:
      return {ExitCode::kNotPermitted, path + ": " + std::strerror(error), {}, {}};
    case ENOTCONN:
    case ECONNABORTED:
      return {ExitCode::kUnreachable, path + ": the mount's process is gone", {}, {}};
    default:
      return {ExitCode::kFailed, path + ": " + std::strerror(error), {}, {}};
  }
}

}  // namespace

Outcome<json> own_quota(const std::string& path) {
  std::string text(kOwnQuotaBytesMax, '\0');
  const ssize_t size = ::getxattr(path.c_str(), "system.pnfsrdma.quota", text.data(), text.size());
  if (size < 0) return std::unexpected(why_no_quota(path, errno));
  text.resize(static_cast<size_t>(size));
  auto quota = json::parse(text, nullptr, false);
  if (!quota.is_object()) return refuse(ExitCode::kFailed, path + ": what the mount tells is no JSON object");
  return quota;
}

void add_own_quota_command(CLI::App* noun, Administration& admin) {
  CLI::App* const mine = noun->add_subcommand(
      "mine", "of a mount, for everybody: what you have at PATH, and may have more, as quota(1)");
  const auto path = std::make_shared<std::string>(".");
  mine->add_option("path", *path, "a file or directory of a mount; this directory if none is given");
  mine->callback([&admin, path] {
    admin.context.does([&admin, path]() -> Outcome<> {
      TRY_ASSIGN(const json quota, own_quota(*path));
      show_one(admin.output(), quota, kOwnQuotaFields);
      return {};
    });
  });
}

}  // namespace pnfsrdma::cli
