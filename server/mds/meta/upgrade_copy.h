// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/base/result.h"

namespace rocksdb {
class DB;
}

namespace pnfsrdma::mds {

// Before metadata of an older format is converted: a RocksDB checkpoint of it in "PATH.format-N", which shares the
// tables with the store (hard links) and which a program of that format opens. Metadata of this program's format, and
// a checkpoint that is there, are left alone. ENOSPC and so on: no copy could be made; nothing may be converted.
Result<> keep_upgrade_copy(rocksdb::DB& database, const std::string& path);

}  // namespace pnfsrdma::mds
