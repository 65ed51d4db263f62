// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/metadata/crash_file_system.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <string>

#include "shared/base/guarded.h"

namespace pnfsrdma::mds {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

}  // namespace

// Shared by the file system and its open files, whatever thread uses them.
struct CrashFileSystem::State {
  // Bytes of one file.
  struct Lengths {
    uint64_t written = 0;
    uint64_t synced = 0;
  };

  Guarded<std::map<std::string, Lengths>> files;
  std::atomic<bool> off = false;
  std::atomic<bool> failing_syncs = false;
  std::atomic<bool> failing_writes = false;
  std::atomic<uint64_t> syncs = 0;
  std::atomic<uint64_t> writes = 0;
  std::atomic<uint64_t> events = 0;
  std::atomic<uint64_t> last_event = UINT64_MAX;

  // Of everything that changes files; false: the power went before it.
  bool powered() {
    if (++events > last_event) off = true;
    return !off;
  }

  IOStatus refusal() const { return IOStatus::IOError("the power is off"); }
};

// Counts what is written and what is synced. RocksDB appends only; anything else it could do to a file is
// passed on.
class CrashFileSystem::WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, std::shared_ptr<State> state)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), state_(std::move(state)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* debug) override {
    // Not refused: RocksDB aborts the process when it syncs, in another thread, a log it could not write.
    if (!state_->powered()) return IOStatus::OK();
    if (state_->failing_writes) return IOStatus::IOError("the medium fails");
    const IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    ++state_->writes;
    if (status.ok()) (*state_->files.lock())[path_].written += data.size();
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    const IOStatus status = FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    if (status.ok()) (*state_->files.lock())[path_].written = size;
    return status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return sync([&] { return FSWritableFileOwnerWrapper::Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return sync([&] { return FSWritableFileOwnerWrapper::Fsync(options, debug); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return FSWritableFileOwnerWrapper::Close(options, debug);
  }

 private:
  template <typename Call>
  IOStatus sync(Call call) {
    if (!state_->powered()) return state_->refusal();
    if (state_->failing_syncs) return IOStatus::IOError("the medium fails");
    // Only what was there before the sync began is promised.
    const uint64_t written = (*state_->files.lock())[path_].written;
    const IOStatus status = call();
    if (!status.ok()) return status;
    ++state_->syncs;
    auto files = state_->files.lock();
    State::Lengths& lengths = (*files)[path_];
    lengths.synced = std::max(lengths.synced, written);
    return status;
  }

  const std::string path_;
  const std::shared_ptr<State> state_;
};

class CrashFileSystem::Files final : public rocksdb::FileSystemWrapper {
 public:
  explicit Files(std::shared_ptr<State> state)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), state_(std::move(state)) {}

  const char* Name() const override { return "CrashFileSystem"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    const IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, debug);
    if (status.ok()) wrap(path, State::Lengths{}, file);
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    const IOStatus status = FileSystemWrapper::ReopenWritableFile(path, options, file, debug);
    if (!status.ok()) return status;
    const uint64_t size = (*file)->GetFileSize(IOOptions(), debug);
    wrap(path, State::Lengths{size, size}, file);
    return status;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    const IOStatus status = FileSystemWrapper::RenameFile(from, to, options, debug);
    if (!status.ok()) return status;
    auto files = state_->files.lock();
    files->erase(to);
    if (auto node = files->extract(from)) {
      node.key() = to;
      files->insert(std::move(node));
    }
    // The files in a directory.
    const std::string inside = from + "/";
    for (auto at = files->lower_bound(inside); at != files->end() && at->first.starts_with(inside);) {
      auto node = files->extract(at++);
      node.key() = to + "/" + node.key().substr(inside.size());
      files->insert(std::move(node));
    }
    return status;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    return FileSystemWrapper::LinkFile(from, to, options, debug);
  }
  IOStatus CreateDir(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    return FileSystemWrapper::CreateDir(path, options, debug);
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    return FileSystemWrapper::CreateDirIfMissing(path, options, debug);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    return FileSystemWrapper::DeleteDir(path, options, debug);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    if (!state_->powered()) return state_->refusal();
    const IOStatus status = FileSystemWrapper::DeleteFile(path, options, debug);
    if (status.ok()) state_->files.lock()->erase(path);
    return status;
  }

 private:
  void wrap(const std::string& path, const State::Lengths& lengths,
            std::unique_ptr<rocksdb::FSWritableFile>* file) {
    (*state_->files.lock())[path] = lengths;
    *file = std::make_unique<WritableFile>(std::move(*file), path, state_);
  }

  const std::shared_ptr<State> state_;
};

CrashFileSystem::CrashFileSystem()
    : state_(std::make_shared<State>()), env_(rocksdb::NewCompositeEnv(std::make_shared<Files>(state_))) {}

CrashFileSystem::~CrashFileSystem() = default;

rocksdb::Env* CrashFileSystem::env() {
  return env_.get();
}

void CrashFileSystem::power_off() {
  state_->off = true;
}

void CrashFileSystem::power_off_after(uint64_t events) {
  state_->last_event = state_->events + events;
}

bool CrashFileSystem::is_off() const {
  return state_->off;
}

Result<> CrashFileSystem::lose_unsynced(Random* random) {
  auto files = state_->files.lock();
  for (auto& [path, lengths] : *files) {
    const uint64_t loose = lengths.written - std::min(lengths.synced, lengths.written);
    if (loose == 0) continue;
    const uint64_t kept = lengths.synced + (random != nullptr ? random->next_u64() % (loose + 1) : 0);
    if (::truncate(path.c_str(), static_cast<off_t>(kept)) != 0) {
      return std::unexpected(Error::from_errno("truncate " + path));
    }
    lengths = {kept, kept};
  }
  power_on();
  return {};
}

void CrashFileSystem::power_on() {
  state_->last_event = UINT64_MAX;
  state_->off = false;
}

void CrashFileSystem::fail_syncs(bool fail) {
  state_->failing_syncs = fail;
}

void CrashFileSystem::fail_writes(bool fail) {
  state_->failing_writes = fail;
}

uint64_t CrashFileSystem::syncs() const {
  return state_->syncs;
}

uint64_t CrashFileSystem::writes() const {
  return state_->writes;
}

}  // namespace pnfsrdma::mds
