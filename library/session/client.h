// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "library/connection.h"
#include "library/memory_index.h"
#include "library/session/file_table.h"
#include "library/session/names.h"
#include "library/session/recovery.h"
#include "library/session/session_memory.h"
#include "shared/base/random.h"
#include "shared/client/server.h"
#include "shared/client/transports.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session_mds.h"

namespace pnfsrdma::library::session {

// A connection of its own to a server: one session with the MDS, and the data path beside it. Thread-safe. Built top to
// bottom, as a mount is.
class Client final : public Connection {
 public:
  static Result<std::unique_ptr<Client>> connect(std::string_view source, std::string_view options);
  // Returns the layouts and takes leave of the server, ten seconds at most.
  ~Client() override;

  Result<std::unique_ptr<OpenFile>> open(std::string_view path, int flags, mode_t mode) override;
  Result<std::unique_ptr<Directory>> open_directory(std::string_view path) override;
  Result<struct stat> status(std::string_view path) override { return names_.status(path, caller()); }
  Result<> unlink(std::string_view path) override {
    return names_.remove(path, Names::What::kFile, caller());
  }
  Result<> remove_directory(std::string_view path) override {
    return names_.remove(path, Names::What::kDirectory, caller());
  }
  Result<> make_directory(std::string_view path, mode_t mode) override {
    return names_.make_directory(path, mode, caller());
  }
  Result<> rename(std::string_view from, std::string_view to, Renaming how) override {
    return how == Renaming::kReplace ? names_.rename(from, to, caller())
                                     : names_.rename(from, to, how, caller());
  }

  using Memory = MemoryIndex<SessionMemory>;
  Result<void*> allocate(size_t size, void* wanted) override;
  Result<> free(void* memory) override;
  Result<> register_memory(MutableByteSpan memory) override;
  Result<void*> register_file(int memfd, size_t size) override;
  Result<> unregister(void* memory) override;
  // None: at least one byte of it is not registered.
  Memory::Use find(const void* address, size_t size) { return memory_.find(address, size); }

  std::unique_ptr<Flight> make_flight(FlightListener& listener) override;
  void progress() override { data_path_.progress(); }
  void together(Starter& starter) override;
  int completion_fd() override { return data_path_.completion_fd(); }

  initiator::Session& session() { return *session_; }
  initiator::DataPath& data_path() { return data_path_; }
  FileTable& files() { return files_; }
  const Names& names() const { return names_; }
  uint64_t next_owner() { return ++owners_; }

  // The calling process's effective user and groups.
  static initiator::Credential caller();

 private:
  struct Made;
  explicit Client(Made made);

  std::unique_ptr<Random> random_;  // the transports use it
  const std::unique_ptr<initiator::Session> session_;
  const SystemClock clock_;
  initiator::SessionMds mds_;
  initiator::DataPath data_path_;
  FileTable files_;
  Recovery recovery_;
  Memory memory_;
  const Names names_;
  std::atomic<uint64_t> owners_ = 0;
};

}  // namespace pnfsrdma::library::session
