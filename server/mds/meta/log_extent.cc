// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/log_extent.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "server/mds/meta/sync_mark.h"

namespace pnfsrdma::mds {
namespace {

// Sees each batch that recovery takes, in order.
class BatchesSeen final : public rocksdb::WalFilter {
 public:
  explicit BatchesSeen(bool keep) : keep_(keep) {}

  const char* Name() const override { return "BatchesSeen"; }
  WalProcessingOption LogRecordFound(unsigned long long, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*, bool*) override {
    // A batch begins with the sequence of its first write, 64 bits little-endian.
    const std::string& bytes = batch.Data();
    uint64_t first = 0;
    for (size_t i = 0; i < sizeof(first) && i < bytes.size(); ++i)
      first |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    if (batch.Count() > 0) last_ = std::max(last_, first + batch.Count() - 1);
    file_ = file;
    return keep_ ? WalProcessingOption::kContinueProcessing : WalProcessingOption::kIgnoreCurrentRecord;
  }

  uint64_t last() const { return last_; }
  const std::string& file() const { return file_; }

 private:
  const bool keep_;
  uint64_t last_ = 0;
  std::string file_;
};

class Silent final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// `keep`: the writes of the log are put together in memory, as a real opening does it. Without, a log behind
// a damaged one is never taken, though recovery takes it when it goes on where the damaged one ended.
Result<> read_logs(rocksdb::Options options, const std::string& path, bool keep, const std::string& newest,
                   LogExtent& extent) {
  BatchesSeen seen(keep);
  options.create_if_missing = false;
  options.wal_filter = &seen;
  options.listeners.clear();
  options.info_log = std::make_shared<Silent>();  // the store's own is not begun anew
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, path, &opened);
  const std::unique_ptr<rocksdb::DB> database(opened);
  if (!status.ok()) return fail(EUCLEAN, "reading the metadata store " + path + ": " + status.ToString());
  extent.recovered = database->GetLatestSequenceNumber();
  if (!keep) extent.recovered = std::max(extent.recovered, seen.last());
  // The last one that could be read is where reading has ended, or the one behind it is: RocksDB keeps an older log
  // until its table is written.
  if (!seen.file().empty() && seen.file() < newest) extent.file = seen.file() + " to " + newest;
  return {};
}

}  // namespace

Result<LogExtent> measure_log(const rocksdb::Options& options, const std::string& path,
                              const SyncMark& mark) {
  // The marks first: a daemon that has the store open goes on writing.
  LogExtent extent{.recovered = 0, .synced = mark.synced(), .file = {}};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() != ".log") continue;
    TRY_ASSIGN(const uint64_t found, mark.highest_in(entry.path().string()));
    extent.synced = std::max(extent.synced, found);
    extent.file = std::max(extent.file, entry.path().string());
  }
  if (error) return fail(error.value(), "reading the directory " + path);
  if (extent.synced == 0 || !std::filesystem::exists(path + "/CURRENT", error)) return extent;
  const std::string newest = extent.file;
  TRY(read_logs(options, path, false, newest, extent));
  if (extent.loses_synced()) TRY(read_logs(options, path, true, newest, extent));
  return extent;
}

}  // namespace pnfsrdma::mds
