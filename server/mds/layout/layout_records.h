// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/mds/grants/held_layout.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/state/stateid.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// A layout as an earlier run left it.
struct RecordedLayout {
  uint64_t inode = 0;
  uint64_t client = 0;
  StateidOther other{};
  uint32_t seqid = 0;
  uint32_t newest_recall = 0;
  uint64_t end_token = 0;
  uint16_t export_id = 0;
  uint64_t generation = 0;
  bool old_handle = false;
  bool complete = false;  // else something is missing: the client may hold more, or less
  std::vector<ByteRange> holes;
  std::vector<HeldGrant> grants;
};

// The layouts that clients hold, on record for a restart of the daemon: one record a layout (stateid, holes, the
// end of the file) and one a grant. Written before the client is told, without a sync, and erased before a handle
// is withdrawn. So a grant that the brick has and no record names is one that nobody needs: it was not told to
// anybody, or is given back. Where a record could not be written or erased, it does not match what the brick has,
// and the layout is void at the next start. Control loop only.
class LayoutRecords {
 public:
  explicit LayoutRecords(KeyValueStore& store) : store_(store) {}

  // Before the answer to a LAYOUTGET that tells the client `grants` for the first time. False: not written.
  bool told(const HeldLayout& layout, std::span<const HeldGrant> grants);
  // Its stateid, its holes or the end of its file have changed.
  bool changed(const HeldLayout& layout);
  // Before `dead` is withdrawn: it has left the layout, with what was held of `range`.
  void given_back(const HeldLayout& layout, const ByteRange& range, std::span<const HeldGrant> dead);
  // The layout goes, and `dead`. Other grants of it are erased behind that: without a layout a start takes none over.
  void gone(const HeldLayout& layout, std::span<const HeldGrant> dead);
  // Before each of these is withdrawn.
  void withdrawn(uint64_t inode, uint64_t client, std::span<const HeldGrant> dead);

  struct Loaded {
    bool believed = false;  // the last run kept records, too: it was of no older program
    std::vector<RecordedLayout> layouts;
  };
  // At the start of the `run`-th run, which keeps records from here on. Those that cannot be read, and grants
  // without a layout, are left out and erased.
  Result<Loaded> load(uint64_t run);
  void forget(const RecordedLayout& layout);

 private:
  bool commit(const Batch& batch);

  KeyValueStore& store_;
};

}  // namespace pnfsrdma::mds
