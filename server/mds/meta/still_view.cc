// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/still_view.h"

#include "server/mds/meta/rocksdb_reads.h"

namespace pnfsrdma::mds {

Result<std::optional<std::string>> StillView::read(SnapshotNumber, std::string_view key, Reach) {
  return read_row(database_, key, Reach::kMedium, moment_);
}

Result<> StillView::walk(SnapshotNumber, std::string_view prefix, std::string_view from,
                         const Visitor& visitor, Reach, std::string& reached) {
  return walk_rows(database_, prefix, from, visitor, Reach::kMedium, reached, moment_);
}

}  // namespace pnfsrdma::mds
