// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
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
  std::vector<Network> clients;  // none: everybody

  // `host`: numeric address of the caller.
  bool admits(std::string_view host) const;
  Credentials anonymous() const { return {.uid = anonuid, .gid = anongid, .groups = {}}; }
  Credentials squashed(const Credentials& caller) const;
};

// All exports over one namespace. Where a path of one export leads into another, LOOKUP crosses over. Without
// an export of "/" the root is a read-only pseudo file system of the directories that lead to exports (RFC
// 8881, 7.3). They change while the server runs; a reference is good until the next change. Control loop
// only.
class Exports {
 public:
  static constexpr uint16_t kPseudoId = 0;

  // Paths are absolute and normal ("/a/b"), no two the same, their directories may come later. Those without
  // an id get the next one, in order.
  Exports(Namespace& names, std::vector<Export> exports);
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // The export of PUTROOTFH: that of "/", else the pseudo one.
  const Export& root() const { return *root_; }
  // Null for an id never given, or removed: the handle is stale.
  const Export* find(uint16_t id) const;
  // The same for a handle that was accepted earlier in this COMPOUND: a removed one is found, too.
  const Export* find_accepted(uint16_t id) const;
  // Null: none of this path.
  const Export* find_path(std::string_view path) const;
  // The export whose directory this is, or null.
  const Export* at(InodeId directory) const;
  // The export `of` lies in: what LOOKUPP from its root leads to. Null for root().
  const Export* above(const Export& of) const;
  // In the pseudo file system: whether this directory leads to an export.
  bool leads_to_export(InodeId directory) const;
  // Whether the export's path leads to a directory.
  bool directory_exists(const Export& of) const;
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
    bool removed = false;
  };
  // The inodes from the root to the export's directory; shorter if it does not exist (yet).
  std::vector<InodeId> walk(const Export& of) const;
  void find_root();

  Namespace& names_;
  std::map<uint16_t, Entry> exports_;
  size_t size_ = 0;
  uint16_t next_id_ = 1;
  Export pseudo_;
  const Export* root_;
};

// "/a/b" without an empty, "." or ".." part; "/" itself.
bool is_normal_path(std::string_view path);

}  // namespace pnfsrdma::mds
