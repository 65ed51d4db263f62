// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>

#include "server/mds/meta/read_only_store.h"

namespace pnfsrdma::mds {

// The live rows of a database as they were at one moment, for who reads many of them in a thread of his own: what he
// reads does not push others' rows out of the cache. Reads wait for the medium. `database` outlives it.
class StillView final : public ReadOnlyStore {
 public:
  explicit StillView(rocksdb::DB& database) : database_(database), moment_(database.GetSnapshot()) {}
  ~StillView() override { database_.ReleaseSnapshot(moment_); }

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber, std::string_view key, Reach) override;
  Result<> walk(SnapshotNumber, std::string_view prefix, std::string_view from, const Visitor& visitor, Reach,
                std::string& reached) override;

 private:
  rocksdb::DB& database_;
  const rocksdb::Snapshot* const moment_;
};

}  // namespace pnfsrdma::mds
