// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <set>
#include <string>

#include "server/mds/meta/snapshot_stores.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The checkpoints of a RocksDB database on disk: "snapshots/NUMBER" in its directory, each a database of its own whose
// tables are hard links. All methods block; one at a time.
class Checkpoints {
 public:
  // `live`: the options of the database in the directory `path`.
  Checkpoints(const rocksdb::Options& live, const std::string& path);

  // What the database has. It is durable, and could be read, when this returns; else nothing is left of it. Nobody
  // writes into the database meanwhile. EEXIST, ENOSPC, EIO.
  Result<> make(rocksdb::DB& database, SnapshotNumber number);
  // Makes the directory `path` a database of its own, with what the database has at some moment of the call, and with
  // its checkpoints. ENOSPC, EIO.
  Result<> copy_to(rocksdb::DB& database, const std::string& path);
  // None is no error.
  Result<> remove(SnapshotNumber number);
  // Removes all others, and what is left of those half made.
  Result<> keep(const std::set<SnapshotNumber>& kept);

  SnapshotStores& stores() { return stores_; }
  // The name of their directory in the database's.
  static constexpr const char* kDirectory = "snapshots";

 private:
  Result<> sync_directory(const std::string& path);
  Result<> remove_directory(const std::string& path);
  Result<> try_make(rocksdb::DB& database, SnapshotNumber number);
  Result<> check(rocksdb::DB& database, SnapshotNumber number);
  Result<> link_checkpoints(const std::string& path);

  rocksdb::Env& env_;
  const std::string path_;
  const std::string directory_;
  SnapshotStores stores_;
};

}  // namespace pnfsrdma::mds
