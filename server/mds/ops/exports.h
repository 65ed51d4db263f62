// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
  uint16_t id = 0;  // part of every filehandle: the place in the configuration, from 1
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
// 8881, 7.3). Control loop only.
class Exports {
 public:
  static constexpr uint16_t kPseudoId = 0;

  // Paths are absolute and normal ("/a/b"), no two the same, their directories may come later.
  Exports(Namespace& names, std::vector<Export> exports);
  Exports(const Exports&) = delete;
  Exports& operator=(const Exports&) = delete;

  // The export of PUTROOTFH: that of "/", else the pseudo one.
  const Export& root() const { return *root_; }
  // Null for an id never configured: the handle is stale.
  const Export* find(uint16_t id) const;
  // The export whose directory this is, or null.
  const Export* at(InodeId directory) const;
  // The export `of` lies in: what LOOKUPP from its root leads to. Null for root().
  const Export* above(const Export& of) const;
  // In the pseudo file system: whether this directory leads to an export.
  bool leads_to_export(InodeId directory) const;
  const std::vector<Export>& all() const { return exports_; }

 private:
  // The inodes from the root to the export's directory; shorter if it does not exist (yet).
  std::vector<InodeId> walk(const Export& of) const;

  Namespace& names_;
  std::vector<Export> exports_;
  Export pseudo_;
  const Export* root_;
};

// "/a/b" without an empty, "." or ".." part; "/" itself.
bool is_normal_path(std::string_view path);

}  // namespace pnfsrdma::mds
