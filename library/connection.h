// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "library/flight.h"
#include "library/process.h"
#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace pnfsrdma::library {

class Directory;
class OpenFile;

// What pnfsrdma_connect() makes: where a program's files are, its registered memory, and what completes the operations
// that nobody waits for. Thread-safe; what uses it is gone before it is.
class Connection {
 public:
  // What an Error says names cause and fix, for a user.
  static Result<std::unique_ptr<Connection>> connect(std::string_view source, std::string_view options);

  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& transport() const { return transport_; }
  const std::string& durability() const { return durability_; }

  // Paths below the directory connected to, in the calling process's name. `flags`, `mode`: open(2)'s.
  virtual Result<std::unique_ptr<OpenFile>> open(std::string_view path, int flags, mode_t mode) = 0;
  virtual Result<std::unique_ptr<Directory>> open_directory(std::string_view path) = 0;
  virtual Result<struct stat> status(std::string_view path) = 0;
  virtual Result<> unlink(std::string_view path) = 0;
  virtual Result<> remove_directory(std::string_view path) = 0;
  virtual Result<> make_directory(std::string_view path, mode_t mode) = 0;
  enum class Renaming : uint8_t { kReplace, kNoReplace, kExchange };
  virtual Result<> rename(std::string_view from, std::string_view to, Renaming how) = 0;

  // Registered memory: a move from or to it is not copied. `wanted`: where it is to be, or null. Errors: EEXIST, EINVAL
  // (map_pages()). Of free(): EINVAL (it is not the start of any), EBUSY (operations are under way).
  virtual Result<void*> allocate(size_t size, void* wanted = nullptr) = 0;
  virtual Result<> free(void* memory) = 0;
  // The program's own: what it has mapped, or what a memfd has, which is mapped here. Errors: as check_memory() and
  // check_memfd(); EEXIST (some of it is registered), ENOTSUP, ENOMEM. Of unregister(): as of free().
  virtual Result<> register_memory(MutableByteSpan memory) = 0;
  virtual Result<void*> register_file(int memfd, size_t size) = 0;
  virtual Result<> unregister(void* memory) = 0;

  virtual std::unique_ptr<Flight> make_flight(FlightListener& listener) = 0;
  // Takes what has completed, of all flights. Never blocks.
  virtual void progress() = 0;
  // Has `starter` start several flights, and sends them. None of the durable ones is complete before all of them are
  // flushed.
  virtual void together(Starter& starter) = 0;
  // Readable when progress() may have something to do. Negative: none is available (errno).
  virtual int completion_fd() = 0;

  // Not made by a parent of this process (fork(2)).
  bool is_ours() const { return forks_ == forks_before(); }
  bool is_used() const { return users_ > 0; }

 protected:
  Connection(std::string transport, std::string durability)
      : transport_(std::move(transport)), durability_(std::move(durability)) {}

 private:
  friend class ConnectionUse;

  const std::string transport_;
  const std::string durability_;
  const uint64_t forks_ = forks_before();
  std::atomic<int> users_ = 0;
};

// A file or queue of a connection: as long as it lives the connection is used.
class ConnectionUse {
 public:
  explicit ConnectionUse(Connection& connection) : connection_(connection) { ++connection_.users_; }
  ~ConnectionUse() { --connection_.users_; }
  ConnectionUse(const ConnectionUse&) = delete;
  ConnectionUse& operator=(const ConnectionUse&) = delete;

  Connection& connection() const { return connection_; }

 private:
  Connection& connection_;
};

}  // namespace pnfsrdma::library
