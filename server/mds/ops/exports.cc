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

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string_view part; next_part(path, part);) parts.emplace_back(part);
  return parts;
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

// Two starts have no change value in common.
Exports::Exports(Namespace& names, std::vector<Export> exports)
    : names_(names), version_(names.next_change(Inode{})) {
  pseudo_.id = kPseudoId;
  pseudo_.read_only = true;
  pseudo_.squash = Squash::kAll;
  pseudo_.insecure = true;  // names that lead to exports: those say who is served
  for (Export& configured : exports) add(std::move(configured));
}

void Exports::add(Export added) {
  if (added.id == 0) added.id = next_id_;
  CHECK(added.id != 0 && !exports_.contains(added.id));
  // Past the last one it is 0 for good.
  if (added.id >= next_id_) next_id_ = static_cast<uint16_t>(added.id + 1);
  Entry& entry = exports_[added.id];
  entry.parts = parts_of(added.path);
  entry.rules = std::move(added);
  without_directory_.push_back(&entry);
  ++size_;
  ++version_;
}

void Exports::change(const Export& changed) {
  CHECK(find(changed.id) != nullptr && changed.id != kPseudoId);
  exports_[changed.id].rules = changed;
  ++version_;
}

void Exports::remove(uint16_t id) {
  CHECK(find(id) != nullptr && id != kPseudoId);
  Entry& entry = exports_[id];
  entry.removed = true;
  std::erase(without_directory_, &entry);
  std::erase_if(directories_, [&](const auto& item) { return item.second == &entry; });
  --size_;
  ++version_;
}

const Export* Exports::find(uint16_t id) const {
  if (id == kPseudoId) return &pseudo_;
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
  return complete(exports_.at(of.id));
}

const std::vector<InodeId>& Exports::walk(const Entry& of) const {
  if (of.found.empty()) of.found.push_back(kRootInode);
  while (of.found.size() <= of.parts.size()) {
    const auto inode = names_.lookup(of.found.back(), of.parts[of.found.size() - 1]);
    if (!inode || !(*inode)->is_directory()) break;
    of.found.push_back((*inode)->id);
  }
  return of.found;
}

// What was found stays (an export's directory is neither renamed nor removed).
void Exports::find_directories() const {
  std::erase_if(without_directory_, [&](const Entry* entry) {
    if (!complete(*entry)) return false;
    directories_.emplace(entry->found.back(), entry);
    return true;
  });
}

const Export* Exports::at(InodeId directory) const {
  find_directories();
  const auto found = directories_.find(directory);
  return found == directories_.end() ? nullptr : &found->second->rules;
}

std::vector<InodeId> Exports::directories() const {
  find_directories();
  std::vector<InodeId> all;
  for (const auto& [directory, entry] : directories_) all.push_back(directory);
  return all;
}

const Export* Exports::around(const Export& of) const {
  const Export* nearest = nullptr;
  for (const auto& [id, entry] : exports_) {
    const Export& candidate = entry.rules;
    if (!entry.removed && lies_in(of.path, candidate.path) &&
        (nearest == nullptr || candidate.path.size() > nearest->path.size()))
      nearest = &candidate;
  }
  return nearest;
}

bool Exports::holds(const Export& of, InodeId directory) const {
  for (InodeId at = directory;;) {
    if (const Export* own = this->at(at)) return own->id == of.id;
    if (at == kRootInode) return false;
    const auto parent = names_.lookup_parent(at);
    if (!parent) return false;
    at = (*parent)->id;
  }
}

namespace {
// Of a path that is looked up: the answer may be another one later.
bool may_be_there(nfs4::Status error) {
  return error == kSuspended || error == nfs4::Status::kDelay || error == nfs4::Status::kIo;
}
}  // namespace

const Exports::PlacesInSnapshot* Exports::places_in(SnapshotNumber snapshot) const {
  if (places_version_ != version_) places_.clear();
  places_version_ = version_;
  if (const auto known = places_.find(snapshot); known != places_.end()) return &known->second;
  PlacesInSnapshot places;
  bool unknown = false;
  for (const auto& [id, entry] : exports_) {
    if (entry.removed) continue;
    Outcome<InodePointer> at = names_.get(inode_in(snapshot, kRootInode));
    for (const std::string& part : entry.parts) {
      if (at) at = names_.lookup((*at)->id, part);
    }
    if (at) {
      places.emplace_back((*at)->id, id);
    } else {
      unknown = unknown || may_be_there(at.error());
    }
  }
  // All of them have been looked up: what is to be fetched is fetched together.
  if (unknown) return nullptr;
  std::erase_if(places_, [&](const auto& item) { return names_.snapshots().find(item.first) == nullptr; });
  return &places_.emplace(snapshot, std::move(places)).first->second;
}

bool Exports::is_of_another(uint16_t from, InodeId in_snapshot) const {
  const SnapshotNumber snapshot = snapshot_of(in_snapshot);
  if (snapshot == kSnapshotList) return false;
  if (const Export* today = at(live_inode(in_snapshot)); today != nullptr && today->id != from) return true;
  const PlacesInSnapshot* places = places_in(snapshot);
  return places == nullptr || std::ranges::any_of(*places, [&](const auto& place) {
           return place.first == in_snapshot && place.second != from;
         });
}

bool Exports::pinned(InodeId directory) const {
  return std::ranges::any_of(exports_, [&](const auto& item) {
    return !item.second.removed && std::ranges::count(walk(item.second), directory) > 0;
  });
}

bool Exports::awaited(InodeId directory, std::string_view name) const {
  return std::ranges::any_of(exports_, [&](const auto& item) {
    const Entry& entry = item.second;
    return !entry.removed && !complete(entry) && entry.found.back() == directory &&
           entry.parts[entry.found.size() - 1] == name;
  });
}

// --- as one host sees them ---

const Export* Exports::nearest(const Entry& of, size_t depth) const {
  const Export* nearest = nullptr;
  size_t longest = 0;
  for (const auto& [id, entry] : exports_) {
    const size_t parts = entry.parts.size();
    if (entry.removed || parts > depth || (nearest != nullptr && parts < longest)) continue;
    if (!std::equal(entry.parts.begin(), entry.parts.end(), of.parts.begin())) continue;
    nearest = &entry.rules;
    longest = parts;
  }
  return nearest;
}

uint16_t Exports::shown_by(const Entry& of, size_t depth, std::string_view host) const {
  const Export* shows = nearest(of, depth);
  return shows != nullptr && shows->admits(host) ? shows->id : kPseudoId;
}

std::optional<uint16_t> Exports::root(std::string_view host) const {
  std::optional<uint16_t> root;
  for (const auto& [id, entry] : exports_) {
    if (entry.removed || !entry.rules.admits(host)) continue;
    if (entry.parts.empty()) return id;
    root = kPseudoId;
  }
  return root;
}

std::optional<uint16_t> Exports::seen_through(uint16_t from, InodeId directory, std::string_view host) const {
  if (snapshot_of(directory) != 0) {
    if (is_of_another(from, directory)) return std::nullopt;
    return from;
  }
  if (const Export* own = at(directory)) {
    if (own->id == from || own->admits(host)) return own->id;
  } else if (from != kPseudoId) {
    return from;
  }
  if (in_pseudo(directory, host)) return kPseudoId;
  return std::nullopt;
}

std::optional<uint16_t> Exports::above(uint16_t of, InodeId directory, std::string_view host) const {
  if (directory == kRootInode) return std::nullopt;
  for (const auto& [id, entry] : exports_) {
    if (entry.removed || (of != kPseudoId ? id != of : !entry.rules.admits(host))) continue;
    const std::vector<InodeId>& way = walk(entry);
    const auto here = std::ranges::find(way, directory);
    if (here != way.end()) return shown_by(entry, static_cast<size_t>(here - way.begin()) - 1, host);
  }
  return std::nullopt;
}

bool Exports::in_pseudo(InodeId directory, std::string_view host) const {
  for (const auto& [id, entry] : exports_) {
    if (entry.removed || !entry.rules.admits(host)) continue;
    const std::vector<InodeId>& way = walk(entry);
    const auto here = std::ranges::find(way, directory);
    if (here != way.end() && shown_by(entry, static_cast<size_t>(here - way.begin()), host) == kPseudoId)
      return true;
  }
  return false;
}

std::vector<Exports::PseudoEntry> Exports::pseudo_entries(InodeId directory, std::string_view host) const {
  std::map<std::string, InodeId> entries;
  for (const auto& [id, entry] : exports_) {
    if (entry.removed || !entry.rules.admits(host)) continue;
    const std::vector<InodeId>& way = walk(entry);
    const auto here = std::ranges::find(way, directory);
    if (here == way.end() || here + 1 == way.end()) continue;
    entries.emplace(entry.parts[static_cast<size_t>(here - way.begin())], *(here + 1));
  }
  std::vector<PseudoEntry> sorted;
  for (auto& [name, inode] : entries) sorted.push_back({name, inode});
  return sorted;
}

}  // namespace pnfsrdma::mds
