// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/snapshot_path.h"

#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/tree/diff_command.h"
#include "cli/tree/tree.h"

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kList = "/.snapshots";
// The number that the list of snapshots has in the place of a snapshot's (docs/protocol.md).
constexpr uint64_t kListNumber = (uint64_t{1} << 24) - 1;

// Where in the path the list is that the rest of it is in; npos: nowhere.
size_t list_in(const std::string& path) {
  for (size_t at = path.find(kList); at != std::string::npos; at = path.find(kList, at + 1)) {
    const size_t end = at + kList.size();
    if (end != path.size() && path[end] != '/') continue;
    const auto status = status_of(path.substr(0, end));
    if (status && status->snapshot == kListNumber) return at;
  }
  return std::string::npos;
}

}  // namespace

Outcome<std::string> absolute_path(const std::string& given) {
  std::filesystem::path path = std::filesystem::absolute(given).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // a slash behind it
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::canonical(path.parent_path(), error);
  if (error) return refuse(kTrouble, path.parent_path().string() + ": " + std::strerror(error.value()));
  return path.has_filename() ? (parent / path.filename()).string() : parent.string();
}

Outcome<SnapshotPath> snapshot_path(const std::string& given) {
  TRY_ASSIGN(const std::string path, absolute_path(given));
  if (const auto status = status_of(path); !status)
    return refuse(kTrouble, given + ": " + std::strerror(status.error().number()));
  const size_t list = list_in(path);
  if (list == std::string::npos) {
    return refuse(kTrouble, given + " is not in a snapshot", {},
                  "a path like MOUNT/.snapshots/NAME/FILE; pnfsrdma snapshot list shows the names");
  }
  const size_t name = list + kList.size() + 1;
  if (name >= path.size())
    return refuse(kTrouble, given + " is the list of the snapshots", {}, "name one: " + given + "/NAME");
  const size_t rest = path.find('/', name);
  std::string living = path.substr(0, list) + (rest == std::string::npos ? "" : path.substr(rest));
  return SnapshotPath{path, living.empty() ? "/" : living};
}

bool is_in_a_snapshot(const std::string& absolute) {
  return list_in(absolute) != std::string::npos;
}

}  // namespace pnfsrdma::cli
