// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

// Reads of one RocksDB database, the live one or a checkpoint. Any thread.
namespace pnfsrdma::mds {

Error error_of(const rocksdb::Status& status, const char* call);

// As KeyValueStore::read() and walk(). With a `moment`: as it was then, and nothing is kept in the cache.
Result<std::optional<std::string>> read_row(rocksdb::DB& database, std::string_view key, Reach reach,
                                            const rocksdb::Snapshot* moment = nullptr);
Result<> walk_rows(rocksdb::DB& database, std::string_view prefix, std::string_view from,
                   const KeyValueStore::Visitor& visitor, Reach reach, std::string& reached,
                   const rocksdb::Snapshot* moment = nullptr);

// For a reader's thread: a part of a scan, and rows in the order of the keys.
Brought bring_page(rocksdb::DB& database, const Wanted& wanted);
std::vector<Brought> bring_rows(rocksdb::DB& database, const std::vector<const Wanted*>& wanted);

}  // namespace pnfsrdma::mds
