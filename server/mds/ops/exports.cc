// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/exports.h"

#include <algorithm>

namespace pnfsrdma::mds {

namespace {

// "a" of "/a/b", and "/b" stays. False at the end.
bool next_part(std::string_view& path, std::string_view& part) {
  if (path.size() <= 1) return false;
  path.remove_prefix(1);
  part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return true;
}

bool lies_in(std::string_view path, std::string_view directory) {
  if (directory == "/") return path != "/";
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace

bool is_normal_path(std::string_view path) {
  if (path == "/") return true;
  if (!path.starts_with('/') || path.ends_with('/')) return false;
  for (std::string_view part; next_part(path, part);) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

bool Export::admits(std::string_view host) const {
  return clients.empty() ||
         std::ranges::any_of(clients, [host](const Network& network) { return network.contains(host); });
}

Credentials Export::squashed(const Credentials& caller) const {
  if (squash == Squash::kNone) return caller;
  if (squash == Squash::kAll || caller.uid == 0) return anonymous();
  // A user may not come in by root's group either.
  Credentials squashed = caller;
  if (squashed.gid == 0) squashed.gid = anongid;
  std::ranges::replace(squashed.groups, 0U, anongid);
  return squashed;
}

Exports::Exports(Namespace& names, std::vector<Export> exports)
    : names_(names), exports_(std::move(exports)) {
  pseudo_.id = kPseudoId;
  pseudo_.read_only = true;
  pseudo_.squash = Squash::kAll;
  root_ = &pseudo_;
  for (size_t index = 0; index < exports_.size(); ++index) {
    exports_[index].id = static_cast<uint16_t>(index + 1);
    if (exports_[index].path == "/") root_ = &exports_[index];
  }
}

const Export* Exports::find(uint16_t id) const {
  if (id == root_->id) return root_;
  return id >= 1 && id <= exports_.size() ? &exports_[id - 1] : nullptr;
}

std::vector<InodeId> Exports::walk(const Export& of) const {
  std::vector<InodeId> inodes{kRootInode};
  std::string_view path = of.path;
  for (std::string_view part; next_part(path, part);) {
    const auto inode = names_.lookup(inodes.back(), part);
    if (!inode || !(*inode)->is_directory()) break;
    inodes.push_back((*inode)->id);
  }
  return inodes;
}

const Export* Exports::at(InodeId directory) const {
  // The one export of "/", which is the common configuration, costs no walk.
  if (directory == kRootInode) return root_;
  for (const Export& candidate : exports_) {
    if (candidate.path == "/") continue;
    const size_t parts = static_cast<size_t>(std::ranges::count(candidate.path, '/'));
    const std::vector<InodeId> inodes = walk(candidate);
    if (inodes.size() == parts + 1 && inodes.back() == directory) return &candidate;
  }
  return nullptr;
}

const Export* Exports::above(const Export& of) const {
  if (&of == root_) return nullptr;
  const Export* nearest = root_;
  for (const Export& candidate : exports_) {
    if (lies_in(of.path, candidate.path) && candidate.path.size() > nearest->path.size())
      nearest = &candidate;
  }
  return nearest;
}

bool Exports::leads_to_export(InodeId directory) const {
  return std::ranges::any_of(
      exports_, [&](const Export& candidate) { return std::ranges::count(walk(candidate), directory) > 0; });
}

}  // namespace pnfsrdma::mds
