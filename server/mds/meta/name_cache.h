// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/mds/meta/bounded_cache.h"
#include "server/mds/meta/directory_entry.h"

namespace pnfsrdma::mds {

// A name in a directory, for look-ups that don't copy the name.
struct NameView {
  InodeId directory = kNoInode;
  std::string_view name;
};
struct NameKey {
  InodeId directory = kNoInode;
  std::string name;
  operator NameView() const { return {directory, name}; }  // NOLINT(google-explicit-constructor)
};

struct NameHash {
  using is_transparent = void;
  size_t operator()(const NameView& key) const {
    return std::hash<std::string_view>()(key.name) ^ (key.directory * 0x9E3779B97F4A7C15ULL);
  }
};
struct NameEqual {
  using is_transparent = void;
  bool operator()(const NameView& a, const NameView& b) const {
    return a.directory == b.directory && a.name == b.name;
  }
};

// Names that exist; absent ones are not remembered.
using NameCache = BoundedCache<NameKey, NameEntry, NameHash, NameEqual>;

}  // namespace pnfsrdma::mds
