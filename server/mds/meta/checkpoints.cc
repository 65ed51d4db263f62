// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/checkpoints.h"

#include <rocksdb/env.h>
#include <rocksdb/utilities/checkpoint.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/mds/meta/rocksdb_reads.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

// RocksDB makes a checkpoint under its name and this, and renames it.
constexpr std::string_view kHalfMade = ".tmp";

struct Named {
  SnapshotNumber number = 0;
  bool half_made = false;
};
// nullopt: nothing of ours.
std::optional<Named> named(std::string_view name) {
  Named found;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()));
  if (!rest.empty() && rest != kHalfMade) return std::nullopt;
  found.half_made = !rest.empty();
  return found;
}

Result<> outcome_of(const rocksdb::Status& status, const std::string& what) {
  if (status.ok()) return {};
  return std::unexpected(error_of(status, what.c_str()));
}

}  // namespace

Checkpoints::Checkpoints(const rocksdb::Options& live, const std::string& path)
    : env_(*live.env), path_(path), directory_(path + "/" + kDirectory), stores_(live, directory_) {}

Result<> Checkpoints::make(rocksdb::DB& database, SnapshotNumber number) {
  const std::string path = stores_.path_of(number);
  if (env_.FileExists(path).ok()) return fail(EEXIST, path + " exists");
  Result<> made = try_make(database, number);
  if (made) return made;
  for (const std::string& left : {path, path + std::string(kHalfMade)}) {
    if (const Result<> removed = remove_directory(left); !removed) {
      log_warning("meta", "snapshot-not-removed path={} error=\"{}\" what=\"the next start tries again\"",
                  left, removed.error().to_string());
    }
  }
  return made;
}

// RocksDB writes out its memtables, links the tables, which are synced, copies the rest and syncs it, renames the
// directory and syncs it; its own name, and that of the directory that it is in, are left to us.
Result<> Checkpoints::try_make(rocksdb::DB& database, SnapshotNumber number) {
  const std::string path = stores_.path_of(number);
  TRY(outcome_of(env_.CreateDirIfMissing(directory_), "making " + directory_));
  TRY(remove_directory(path + std::string(kHalfMade)));
  rocksdb::Checkpoint* created = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&database, &created);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(created);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  TRY(outcome_of(status, "copying the metadata to " + path));
  TRY(sync_directory(directory_));
  TRY(sync_directory(path_));
  return check(database, number);
}

// A copy that cannot be read is found now, and not when it is needed.
Result<> Checkpoints::check(rocksdb::DB& database, SnapshotNumber number) {
  TRY_ASSIGN(const SnapshotStores::Database copy, stores_.open_at(stores_.path_of(number)));
  const uint64_t there = copy->GetLatestSequenceNumber();
  const uint64_t wanted = database.GetLatestSequenceNumber();
  if (there == wanted) return {};
  return fail(EIO, "the copy of the metadata ends with change " + std::to_string(there) + " instead of " +
                       std::to_string(wanted));
}

// The checkpoints last: one that was made meanwhile is dropped by whoever makes it again. (None goes meanwhile.)
Result<> Checkpoints::copy_to(rocksdb::DB& database, const std::string& path) {
  rocksdb::Checkpoint* created = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&database, &created);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(created);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  TRY(outcome_of(status, "copying the metadata to " + path));
  return link_checkpoints(path + "/" + kDirectory);
}

Result<> Checkpoints::link_checkpoints(const std::string& path) {
  std::vector<std::string> numbers;
  const rocksdb::Status listed = env_.GetChildren(directory_, &numbers);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return {};
  TRY(outcome_of(listed, "reading " + directory_));
  TRY(outcome_of(env_.CreateDir(path), "making " + path));
  for (const std::string& number : numbers) {
    const auto found = named(number);
    if (!found || found->half_made) continue;
    std::vector<std::string> names;
    TRY(outcome_of(env_.GetChildren(directory_ + "/" + number, &names), "reading " + directory_));
    TRY(outcome_of(env_.CreateDir(path + "/" + number), "making " + path));
    for (const std::string& name : names) {
      if (name == "." || name == "..") continue;
      const std::string file = "/" + number + "/" + name;
      TRY(outcome_of(env_.LinkFile(directory_ + file, path + file), "linking " + directory_ + file));
    }
  }
  return {};
}

Result<> Checkpoints::remove(SnapshotNumber number) {
  return remove_directory(stores_.path_of(number));
}

Result<> Checkpoints::keep(const std::set<SnapshotNumber>& kept) {
  std::vector<std::string> names;
  const rocksdb::Status listed = env_.GetChildren(directory_, &names);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return {};
  TRY(outcome_of(listed, "reading " + directory_));
  for (const std::string& name : names) {
    const auto found = named(name);
    if (!found || (!found->half_made && kept.contains(found->number))) continue;
    TRY(remove_directory(directory_ + "/" + name));
  }
  return {};
}

Result<> Checkpoints::sync_directory(const std::string& path) {
  std::unique_ptr<rocksdb::Directory> opened;
  TRY(outcome_of(env_.NewDirectory(path, &opened), "opening " + path));
  return outcome_of(opened->Fsync(), "syncing " + path);
}

Result<> Checkpoints::remove_directory(const std::string& path) {
  std::vector<std::string> names;
  const rocksdb::Status listed = env_.GetChildren(path, &names);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return {};
  TRY(outcome_of(listed, "reading " + path));
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    TRY(outcome_of(env_.DeleteFile(path + "/" + name), "removing " + path));
  }
  return outcome_of(env_.DeleteDir(path), "removing " + path);
}

}  // namespace pnfsrdma::mds
