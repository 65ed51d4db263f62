// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/exports.h"

#include <algorithm>

#include "shared/base/check.h"

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

Exports::Exports(Namespace& names, std::vector<Export> exports) : names_(names) {
  pseudo_.id = kPseudoId;
  pseudo_.read_only = true;
  pseudo_.squash = Squash::kAll;
  for (Export& configured : exports) add(std::move(configured));
  find_root();
}

void Exports::find_root() {
  const Export* found = find_path("/");
  root_ = found != nullptr ? found : &pseudo_;
}

void Exports::add(Export added) {
  if (added.id == 0) added.id = next_id_;
  CHECK(added.id != 0 && !exports_.contains(added.id));
  // Past the last one it is 0 for good.
  if (added.id >= next_id_) next_id_ = static_cast<uint16_t>(added.id + 1);
  exports_[added.id].rules = std::move(added);
  ++size_;
  find_root();
}

void Exports::change(const Export& changed) {
  CHECK(find(changed.id) != nullptr && changed.id != kPseudoId);
  exports_[changed.id].rules = changed;
}

void Exports::remove(uint16_t id) {
  CHECK(find(id) != nullptr && id != kPseudoId);
  exports_[id].removed = true;
  --size_;
  find_root();
}

const Export* Exports::find(uint16_t id) const {
  if (id == root_->id) return root_;
  const auto found = exports_.find(id);
  return found == exports_.end() || found->second.removed ? nullptr : &found->second.rules;
}

const Export* Exports::find_accepted(uint16_t id) const {
  if (id == kPseudoId) return &pseudo_;
  const auto found = exports_.find(id);
  return found == exports_.end() ? nullptr : &found->second.rules;
}

const Export* Exports::find_path(std::string_view path) const {
  for (const auto& [id, entry] : exports_) {
    if (!entry.removed && entry.rules.path == path) return &entry.rules;
  }
  return nullptr;
}

std::vector<const Export*> Exports::all() const {
  std::vector<const Export*> all;
  for (const auto& [id, entry] : exports_) {
    if (!entry.removed) all.push_back(&entry.rules);
  }
  return all;
}

bool Exports::directory_exists(const Export& of) const {
  return of.path == "/" || walk(of).size() == static_cast<size_t>(std::ranges::count(of.path, '/')) + 1;
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
  for (const auto& [id, entry] : exports_) {
    const Export& candidate = entry.rules;
    if (entry.removed || candidate.path == "/") continue;
    const size_t parts = static_cast<size_t>(std::ranges::count(candidate.path, '/'));
    const std::vector<InodeId> inodes = walk(candidate);
    if (inodes.size() == parts + 1 && inodes.back() == directory) return &candidate;
  }
  return nullptr;
}

const Export* Exports::above(const Export& of) const {
  if (&of == root_) return nullptr;
  const Export* nearest = root_;
  for (const auto& [id, entry] : exports_) {
    const Export& candidate = entry.rules;
    if (!entry.removed && lies_in(of.path, candidate.path) && candidate.path.size() > nearest->path.size())
      nearest = &candidate;
  }
  return nearest;
}

bool Exports::leads_to_export(InodeId directory) const {
  return std::ranges::any_of(exports_, [&](const auto& entry) {
    return !entry.second.removed && std::ranges::count(walk(entry.second.rules), directory) > 0;
  });
}

}  // namespace pnfsrdma::mds
