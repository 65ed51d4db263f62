// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "shared/base/guarded.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The checkpoints that are being read, each a RocksDB database that is open for reading. The blocks of their tables
// share the live store's cache; a table that both have is there once. Thread-safe.
class SnapshotStores {
 public:
  // Open at a time, where no more are being read.
  static constexpr size_t kOpenMax = 8;
  using Database = std::shared_ptr<rocksdb::DB>;

  // `live`: the options of the live store. `directory` has one directory for each checkpoint, named by its number.
  SnapshotStores(const rocksdb::Options& live, std::string directory);

  std::string path_of(SnapshotNumber number) const;

  // Null: it is not open. Never waits for the medium.
  Database at_hand(SnapshotNumber number);
  // Opens it if it must. EIO: it is not there, is damaged, or was forgotten; a line in the log says which.
  Result<Database> open(SnapshotNumber number);
  // Opens one that is being made and is nobody's yet.
  Result<Database> open_at(const std::string& path) const;
  // Closes it when those who read it have done, and opens it no more.
  void forget(SnapshotNumber number);

  // For KeyValueStore. In the control loop with Reach::kMemory only, unless nobody waits for it.
  Result<std::optional<std::string>> read(SnapshotNumber number, std::string_view key, Reach reach);
  Result<> walk(SnapshotNumber number, std::string_view prefix, std::string_view from,
                const KeyValueStore::Visitor& visitor, Reach reach, std::string& reached);
  Brought bring(const Wanted& wanted);

 private:
  struct Open {
    Database database;
    uint64_t used = 0;
  };
  struct State {
    std::map<SnapshotNumber, Open> open;
    std::set<SnapshotNumber> gone;
    std::set<SnapshotNumber> complained;  // in the log, since it was last open
    uint64_t uses = 0;
  };
  static std::vector<Database> close_unused(State& state);
  std::unexpected<Error> complain(SnapshotNumber number, const Error& error);

  rocksdb::Options options_;
  const std::string directory_;
  Guarded<State> state_;
};

}  // namespace pnfsrdma::mds
