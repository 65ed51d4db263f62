// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/ops/network.h"

namespace pnfsrdma::mds {

enum class Squash { kNone, kRoot, kAll };  // no_root_squash, root_squash, all_squash

// One entry of exports(5): a directory, who may come in, and as whom.
struct Export {
  uint16_t id = 0;  // part of every filehandle, from 1 (in the configuration: the place), never used again
  std::string path = "/";
  bool read_only = false;
  Squash squash = Squash::kRoot;
  uint32_t anonuid = 65534;
  uint32_t anongid = 65534;
  // Calls by TCP are served from any port of the client's host; else from those that only its root may bind.
  bool insecure = false;
  // The groups of a caller are what this host's name service says; those in his calls, 16 at most, are not
  // believed.
  bool manage_gids = false;
  std::vector<Network> clients;  // none: everybody
  // Filehandles of version 1 (HandleKeys) are taken until then, where they are at all; none: the default.
  std::optional<WallTime> old_handles_until;

  // `host`: numeric address of the caller.
  bool admits(std::string_view host) const;
  Credentials anonymous() const { return {.uid = anonuid, .gid = anongid, .groups = {}}; }
  Credentials squashed(const Credentials& caller) const;
  // Whether UserGroups says what groups he is in. Root needs none, and whoever is squashed has none.
  bool manages_groups_of(const Credentials& caller) const {
    return manage_gids && squash != Squash::kAll && !caller.is_root();
  }
};

// All exports over one namespace, as each host sees them. Where a path of one export leads into another,
// LOOKUP crosses over. Directories that lead to an export which admits the host, and lie in none that does,
// are a read-only pseudo file system (RFC 8881, 7.3): it shows the names on these ways and nothing else, no
// attribute of the real directories either. Exports change while the server runs; a reference is good until
// the next change. Neither an export's directory nor one on the way to it is renamed or removed, so a path
// that was found once stays found. Control loop only.
class Exports {
 public:
  static constexpr uint16_t kPseudoId = 0;

  // Paths are absolute and normal ("/a/b"), no two the same, their directories may come later. Those without
  // an id get the next one, in order.
  Exports(Namespace& names, std::vector<Export> exports);
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // Null for an id never given, or removed: the handle is stale.
  const Export* find(uint16_t id) const;
  // The same for a handle that was accepted earlier in this COMPOUND: a removed one is found, too.
  const Export* find_accepted(uint16_t id) const;
  // Null: none of this path.
  const Export* find_path(std::string_view path) const;
  // The export whose directory this is, or null.
  const Export* at(InodeId directory) const;
  // Those that are there, of all exports.
  std::vector<InodeId> directories() const;
  // The export that `of` lies in, or null.
  const Export* around(const Export& of) const;
  // Whether the export's path leads to a directory.
  bool directory_exists(const Export& of) const;
  // Whether `directory` lies in the export, and in no other one below it: a walk up, for handles that nobody
  // has signed.
  bool holds(const Export& of, InodeId directory) const;
  // An export's directory, or one on the way to it: it stays where it is.
  bool pinned(InodeId directory) const;
  // A name that leads to an export once it is there.
  bool awaited(InodeId directory, std::string_view name) const;

  // --- as one host sees them ---
  // What PUTROOTFH leads to, kPseudoId for the pseudo file system. Null: no export admits the host.
  std::optional<uint16_t> root(std::string_view host) const;
  // What `directory`, met in export `from`, is seen through: `from`, the export it belongs to, or kPseudoId
  // if that does not admit the host but one below it does. Null: nothing of it is to be seen. In a snapshot no
  // way leads from one export into another, whoever asks.
  std::optional<uint16_t> seen_through(uint16_t from, InodeId directory, std::string_view host) const;
  // What the parent of an export's or pseudo directory is seen through. Null: that is the root.
  std::optional<uint16_t> above(uint16_t of, InodeId directory, std::string_view host) const;
  // Whether the pseudo file system has this directory.
  bool in_pseudo(InodeId directory, std::string_view host) const;
  struct PseudoEntry {
    std::string name;
    InodeId inode = 0;
  };
  // By name.
  std::vector<PseudoEntry> pseudo_entries(InodeId directory, std::string_view host) const;
  // A number that moves on with each change of exports: change and cookie verifier of pseudo directories.
  uint64_t version() const { return version_; }

  // By id.
  std::vector<const Export*> all() const;
  size_t size() const { return size_; }

  // --- changes; each takes effect with the next operation ---
  // The lowest id never given; 0: all are.
  uint16_t next_id() const { return next_id_; }
  // Ids below `id` are not given (any more).
  void reserve_ids(uint16_t id) { next_id_ = std::max(next_id_, id); }
  // With an id, or the next one; the path is nobody else's.
  void add(Export added);
  // The rules of an id that is there; id and path stay.
  void change(const Export& changed);
  void remove(uint16_t id);

 private:
  struct Entry {
    Export rules;
    std::vector<std::string> parts;  // of its path
    mutable std::vector<InodeId>
        found;  // from the root to the export's directory; shorter while that is not there
    bool removed = false;
  };
  const std::vector<InodeId>& walk(const Entry& of) const;
  bool complete(const Entry& of) const { return walk(of).size() == of.parts.size() + 1; }
  void find_directories() const;
  // Where the paths of exports lead in a snapshot. Null: a row of it cannot be read.
  using PlacesInSnapshot = std::vector<std::pair<InodeId, uint16_t>>;
  const PlacesInSnapshot* places_in(SnapshotNumber snapshot) const;
  // Whether a directory of a snapshot is that of another export: today's, or the one that had its path then.
  bool is_of_another(uint16_t from, InodeId in_snapshot) const;
  // The export that shows the directory of the first `depth` parts of this one's path.
  const Export* nearest(const Entry& of, size_t depth) const;
  uint16_t shown_by(const Entry& of, size_t depth, std::string_view host) const;

  Namespace& names_;
  std::map<uint16_t, Entry> exports_;
  // Their directories, and those whose directory was not there when it was last looked for.
  mutable std::unordered_map<InodeId, const Entry*> directories_;
  mutable std::vector<const Entry*> without_directory_;
  // For the exports of `places_version_`.
  mutable std::unordered_map<SnapshotNumber, PlacesInSnapshot> places_;
  mutable uint64_t places_version_ = 0;
  size_t size_ = 0;
  uint16_t next_id_ = 1;
  uint64_t version_;
  Export pseudo_;
};

// "/a/b" without an empty, "." or ".." part; "/" itself.
bool is_normal_path(std::string_view path);

}  // namespace pnfsrdma::mds
