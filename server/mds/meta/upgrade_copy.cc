// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/upgrade_copy.h"

#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

Result<> keep_upgrade_copy(rocksdb::DB& database, const std::string& path) {
  std::string stored;
  if (!database.Get({}, meta_key("format"), &stored).ok())
    return {};  // new, or check_format_version says what it is
  TRY_ASSIGN(const StoredNumber format, read_value<StoredNumber>(stored, "a format version"));
  if (format.number >= kFormatBasic) return {};
  const std::string copy = path + ".format-" + std::to_string(format.number);
  if (std::filesystem::exists(copy)) return {};
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&database, &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(copy);
  if (!status.ok()) {
    return fail(status.IsNoSpace() ? ENOSPC : EIO, "keeping a copy of the metadata in " + copy +
                                                       " before it is converted (" + status.ToString() + ")");
  }
  log_info("meta", "upgrade-copy-kept path={} format={}", copy, format.number);
  return {};
}

}  // namespace pnfsrdma::mds
