// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "library/file_table.h"
#include "library/memory.h"
#include "library/names.h"
#include "library/process.h"
#include "library/recovery.h"
#include "shared/base/random.h"
#include "shared/client/server.h"
#include "shared/client/transports.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session_mds.h"

namespace pnfsrdma::library {

// A connection: one session with the MDS, and the data path beside it. Thread-safe. Built top to bottom, as a
// mount is.
class Client {
 public:
  // What an Error says names cause and fix, for a user.
  static Result<std::unique_ptr<Client>> connect(std::string_view source, std::string_view options);
  // Returns the layouts and takes leave of the server, ten seconds at most.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  initiator::Session& session() { return *session_; }
  initiator::DataPath& data_path() { return data_path_; }
  FileTable& files() { return files_; }
  Memory& memory() { return memory_; }
  const Memory& memory() const { return memory_; }
  const Names& names() const { return names_; }
  uint64_t next_owner() { return ++owners_; }

  // The calling process's effective user and groups.
  static initiator::Credential caller();

  const std::string& transport() const { return transport_; }
  const std::string& durability() const { return durability_; }

  // Not made by a parent of this process (fork(2)).
  bool is_ours() const { return forks_ == forks_before(); }
  void queue_came() { ++queues_; }
  void queue_left() { --queues_; }
  bool is_used() const { return queues_ > 0 || !files_.empty(); }

 private:
  struct Made;
  explicit Client(Made made);

  std::unique_ptr<Random> random_;  // the transports use it
  const std::unique_ptr<initiator::Session> session_;
  const std::string transport_;
  const std::string durability_;
  const SystemClock clock_;
  initiator::SessionMds mds_;
  initiator::DataPath data_path_;
  FileTable files_;
  Recovery recovery_;
  Memory memory_;
  const Names names_;
  const uint64_t forks_ = forks_before();
  std::atomic<uint64_t> owners_ = 0;
  std::atomic<int> queues_ = 0;
};

}  // namespace pnfsrdma::library
