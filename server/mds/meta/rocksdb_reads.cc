// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/rocksdb_reads.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace pnfsrdma::mds {
namespace {

// Of a scan so much is brought at a time.
constexpr size_t kRowsFetched = 256;
constexpr size_t kBytesFetched = size_t{64} << 10;
// More deletions than that between two keys are walked by a reader, in memory as they may be.
constexpr uint64_t kSkippedInLoop = 1000;

rocksdb::Slice as_slice(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view as_view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// Every scan: RocksDB before 8.5.2 loses the error of a table that a scan goes over to ("not in memory",
// "damaged"), and the scan ends as if there were no more rows. It does so where it looks for deleted ranges,
// and we delete none.
rocksdb::ReadOptions whole_medium() {
  rocksdb::ReadOptions options;
  options.ignore_range_deletions = true;
  return options;
}

rocksdb::ReadOptions memory_only() {
  rocksdb::ReadOptions options = whole_medium();
  options.read_tier = rocksdb::kBlockCacheTier;
  options.max_skippable_internal_keys = kSkippedInLoop;
  return options;
}

const rocksdb::ReadOptions& reads_of(Reach reach) {
  static const rocksdb::ReadOptions memory = memory_only();
  static const rocksdb::ReadOptions medium = whole_medium();
  return reach == Reach::kMemory ? memory : medium;
}

rocksdb::ReadOptions reads_of(Reach reach, const rocksdb::Snapshot* moment) {
  rocksdb::ReadOptions options = reads_of(reach);
  options.snapshot = moment;
  options.fill_cache = moment == nullptr;
  return options;
}

// The last key a scan has visited, kept without an allocation: the engine forgets it where it stops.
class LastKey {
 public:
  void set(const rocksdb::Slice& key) {
    if (key.size() > bytes_.size()) {
      long_.assign(key.data(), key.size());
    } else {
      std::memcpy(bytes_.data(), key.data(), key.size());
    }
    size_ = key.size();
  }
  // The next key there can be; `first` where none was visited.
  std::string behind(std::string_view first) const {
    if (size_ == 0) return std::string(first);
    std::string next(size_ > bytes_.size() ? std::string_view(long_)
                                           : std::string_view(bytes_.data(), size_));
    next.push_back('\0');
    return next;
  }

 private:
  std::array<char, 64> bytes_{};
  std::string long_;
  size_t size_ = 0;
};

// The smallest key behind all keys with the prefix; empty: there is none.
std::string behind_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

// With a table that is not open the engine says "found" and gives no value.
bool surely_empty(rocksdb::DB& database, std::string_view key) {
  std::string value;
  bool found = false;
  return database.KeyMayExist(reads_of(Reach::kMemory), as_slice(key), &value, &found) && found;
}

}  // namespace

Error error_of(const rocksdb::Status& status, const char* call) {
  const std::string what = std::string(call) + ": " + status.ToString();
  if (status.IsIncomplete() || status.IsBusy() || status.IsTryAgain()) return {EAGAIN, what};
  if (status.IsNoSpace()) return {ENOSPC, what};
  if (status.IsCorruption()) return {EUCLEAN, what};
  return {EIO, what};
}

Result<std::optional<std::string>> read_row(rocksdb::DB& database, std::string_view key, Reach reach,
                                            const rocksdb::Snapshot* moment) {
  std::string value;
  const bool memory = reach == Reach::kMemory;
  const rocksdb::Status status = moment == nullptr
                                     ? database.Get(reads_of(reach), as_slice(key), &value)
                                     : database.Get(reads_of(reach, moment), as_slice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (memory && (status.IsIncomplete() || (status.ok() && value.empty() && !surely_empty(database, key))))
    return fail(kNotAtHand, "reading metadata");
  if (!status.ok()) return std::unexpected(error_of(status, "reading metadata"));
  return value;
}

Result<> walk_rows(rocksdb::DB& database, std::string_view prefix, std::string_view from,
                   const KeyValueStore::Visitor& visitor, Reach reach, std::string& reached,
                   const rocksdb::Snapshot* moment) {
  const std::string end = behind_prefix(prefix);
  const rocksdb::Slice end_slice(end);
  rocksdb::ReadOptions options = reads_of(reach, moment);
  if (!end.empty()) options.iterate_upper_bound = &end_slice;
  const std::unique_ptr<rocksdb::Iterator> at(database.NewIterator(options));
  const std::string_view first = std::max(prefix, from);
  LastKey last;
  for (at->Seek(as_slice(first)); at->Valid(); at->Next()) {
    last.set(at->key());
    if (!visitor(as_view(at->key()), as_view(at->value()))) return {};
  }
  if (at->status().ok()) return {};
  if (reach != Reach::kMemory || !at->status().IsIncomplete())
    return std::unexpected(error_of(at->status(), "scanning metadata"));
  reached = last.behind(first);
  return fail(kNotAtHand, "scanning metadata");
}

Brought bring_page(rocksdb::DB& database, const Wanted& wanted) {
  Brought brought;
  const std::string end = behind_prefix(*wanted.prefix);
  const rocksdb::Slice end_slice(end);
  rocksdb::ReadOptions options = reads_of(Reach::kMedium);
  if (!end.empty()) options.iterate_upper_bound = &end_slice;
  const std::unique_ptr<rocksdb::Iterator> at(database.NewIterator(options));
  size_t bytes = 0;
  for (at->Seek(wanted.key); at->Valid(); at->Next()) {
    if (brought.rows.size() == kRowsFetched || bytes >= kBytesFetched) {
      brought.next = at->key().ToString();
      return brought;
    }
    bytes += at->key().size() + at->value().size();
    brought.rows.emplace_back(at->key().ToString(), at->value().ToString());
  }
  if (!at->status().ok()) brought.outcome = std::unexpected(error_of(at->status(), "scanning metadata"));
  return brought;
}

std::vector<Brought> bring_rows(rocksdb::DB& database, const std::vector<const Wanted*>& wanted) {
  std::vector<rocksdb::Slice> keys;
  keys.reserve(wanted.size());
  for (const Wanted* one : wanted) keys.emplace_back(one->key);
  std::vector<std::string> values;
  const std::vector<rocksdb::Status> statuses = database.MultiGet(reads_of(Reach::kMedium), keys, &values);
  std::vector<Brought> all(wanted.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) {
      all[i].rows.emplace_back(wanted[i]->key, std::move(values[i]));
    } else if (!statuses[i].IsNotFound()) {
      all[i].outcome = std::unexpected(error_of(statuses[i], "reading metadata"));
    }
  }
  return all;
}

}  // namespace pnfsrdma::mds
