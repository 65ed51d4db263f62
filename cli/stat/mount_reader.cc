// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/mount_reader.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace pnfsrdma::cli {
namespace {

constexpr size_t kAttributeMax = size_t{64} << 10;  // the kernel's limit

Failure failure_of(int number, const Mounted& mounted) {
  switch (number) {
    case ENOTCONN:
    case ECONNABORTED:
      return {ExitCode::kUnreachable, mounted.path + ": the mount's process is gone",
              "Every access fails until it is unmounted.", "umount -l " + mounted.path};
    case EACCES:
    case EPERM:
      return {ExitCode::kNotPermitted, mounted.path + ": permission denied",
              "It was mounted by another user without allow_other.", "ask as that user, or as root"};
    case ENOTSUP:
    case ENODATA:
      return {ExitCode::kFailed, mounted.path + ": the mount does not report its status",
              "Its pnfsrdma-fuse is older than this program.",
              "unmount it and mount it with the installed version"};
    default:
      return {ExitCode::kFailed, mounted.path + ": " + std::strerror(number), {}, {}};
  }
}

Outcome<std::string> attribute(const Mounted& mounted, const char* name) {
  std::string text(kAttributeMax, '\0');
  const ssize_t size = ::getxattr(mounted.path.c_str(), name, text.data(), text.size());
  if (size < 0) return std::unexpected(failure_of(errno, mounted));
  text.resize(static_cast<size_t>(size));
  return text;
}

Outcome<nlohmann::json> json_attribute(const Mounted& mounted, const char* name) {
  auto text = attribute(mounted, name);
  if (!text) return std::unexpected(text.error());
  auto value = nlohmann::json::parse(*text, nullptr, false);
  if (value.is_discarded() || !value.is_object()) {
    return refuse(ExitCode::kFailed, fmt::format("{}: {} is no JSON object", mounted.path, name));
  }
  return value;
}

}  // namespace

Outcome<std::vector<Mounted>> MountReader::find(const std::string& path) {
  std::ifstream file("/proc/self/mountinfo");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Mounted> all = mounts_in(text);
  if (path.empty()) {
    if (all.empty()) {
      return refuse(ExitCode::kNotFound, "nothing of pnfsrdma is mounted here", {},
                    "mount -t pnfsrdma SERVER:/PATH DIRECTORY");
    }
    return all;
  }
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) {
    // A dead mount has no working root, but is listed.
    const Mounted* const listed = errno == ENOTCONN ? mount_of(all, path) : nullptr;
    if (listed != nullptr) return std::vector<Mounted>{*listed};
    const ExitCode code = errno == EACCES ? ExitCode::kNotPermitted : ExitCode::kNotFound;
    return refuse(code, path + ": " + std::strerror(errno));
  }
  const Mounted* const mounted = mount_of(all, resolved);
  if (mounted == nullptr) {
    return refuse(ExitCode::kNotFound, path + " is not in a pnfsrdma mount", {},
                  "pnfsrdma stat without a path shows all mounts");
  }
  return std::vector<Mounted>{*mounted};
}

Outcome<MountReading> MountReader::read(const Mounted& mounted) {
  auto status = json_attribute(mounted, "system.pnfsrdma.status");
  if (!status) return std::unexpected(status.error());
  auto statistics = json_attribute(mounted, "system.pnfsrdma.statistics");
  if (!statistics) return std::unexpected(statistics.error());
  return MountReading{mounted, *std::move(status), *std::move(statistics)};
}

Outcome<std::string> MountReader::metrics(const Mounted& mounted) {
  return attribute(mounted, "system.pnfsrdma.metrics");
}

}  // namespace pnfsrdma::cli
