// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/mds/meta/snapshot_keys.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What a read did not find in memory: a row, or the rows of a scan from `key` on.
struct Wanted {
  std::string key;
  std::optional<std::string> prefix;  // of a scan
  // For the engine: in whose copy; then key and prefix are as they are there.
  SnapshotNumber snapshot = 0;
};

// What the medium has of it.
struct Brought {
  Result<> outcome;
  std::vector<std::pair<std::string, std::string>> rows;  // the row, if there is one; of a scan the next ones
  std::string next;  // of a scan: from this key on nothing is known; empty: behind the rows there are no more
};

// A read of the medium that belongs to one request, under way or done. It says what is committed only as
// long as no commit has changed a key of it since it was begun.
struct Pinned {
  Wanted wanted;
  std::optional<Brought> brought;  // nullopt: under way
  bool stale = false;

  bool good() const { return brought && !stale; }
  // Whether a scan with the prefix finds here what comes from `key` on.
  bool covers(std::string_view prefix, std::string_view key) const;
  bool holds(std::string_view key) const;
};

// All of them, so that each commit finds those it makes stale. One look-up for each key of a batch while any
// is there, and nothing else. Owned by the store; control loop only.
class PinnedReads {
 public:
  // Must stay where it is until remove().
  void add(Pinned& pinned);
  void remove(Pinned& pinned);
  bool empty() const { return rows_.empty() && scans_.empty(); }
  void changed(std::string_view key);

 private:
  std::unordered_multimap<std::string_view, Pinned*> rows_;
  std::vector<Pinned*> scans_;
};

}  // namespace pnfsrdma::mds
