// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "library/connection.h"
#include "library/lock_wait.h"
#include "library/pnfsrdma.h"
#include "library/word_change.h"
#include "shared/base/result.h"

namespace pnfsrdma::library {

class Watch;

// What pnfsrdma_open() makes: one open of a file. Thread-safe; nothing is under way when it is closed.
class OpenFile : private ConnectionUse {
 public:
  // What open(2)'s `flags` mean here. Errors: EINVAL.
  static Result<> check_flags(std::string_view path, int flags);

  virtual ~OpenFile() = default;

  // Settles what was written, and closes whatever the outcome. Reports losses.
  virtual Result<> close() = 0;

  // Bytes moved; a read is short only at the end of the file.
  virtual Result<size_t> read(void* buffer, size_t count, uint64_t offset) = 0;
  // `durable`: when it returns. Where the file is open for appending, it appends.
  virtual Result<size_t> write(const void* buffer, size_t count, uint64_t offset, bool durable) = 0;
  // Where it was written.
  virtual Result<uint64_t> append(const void* buffer, size_t count, bool durable) = 0;
  virtual Result<> sync(bool data_only) = 0;
  virtual Result<> truncate(uint64_t size) = 0;
  virtual Result<struct stat> status() = 0;
  // What it was. Done once or, with an Error, not; EIO: nobody knows. check_word() has been asked.
  virtual Result<uint64_t> change_word(const WordChange& change) = 0;
  // CRC32C of each, as its brick has read it back behind a flush of everything that was written. So much together.
  static constexpr uint64_t kVerifiedBytesMax = uint64_t{64} << 20;
  struct Verified {
    bool medium = true;  // false: some of it from a copy in front of that
    std::vector<uint32_t> checksums;
  };
  virtual Result<Verified> verify(std::span<const pnfsrdma_range> ranges) = 0;
  // Where the file is open for reading; the watch is gone before it is closed.
  virtual Result<std::unique_ptr<Watch>> watch(const pnfsrdma_range& range) = 0;
  // Where it is open for writing: makes the range durable and tells those who watch it.
  virtual Result<> signal(const pnfsrdma_range& range, uint64_t value) = 0;
  // Errors: EAGAIN (somebody else has locked a part of it), EINTR, EIO (earlier locks were lost), ENOLCK.
  virtual Result<> lock(const LockWish& wish) = 0;
  virtual Result<> unlock(uint64_t offset, uint64_t length) = 0;
  // False: a lock of somebody else's is in the way.
  virtual Result<bool> may_lock(const LockWish& wish) = 0;
  // Errors: EBADF, EINVAL.
  Result<> check_word(const WordChange& change) const;

  using ConnectionUse::connection;
  // As the flags of open(2) say.
  bool readable() const { return readable_; }
  bool writable() const { return writable_; }
  bool appends() const { return appends_; }
  bool durable() const { return durable_; }  // each write
  // May be made by a Flight, as far as that goes.
  bool allows(const Move& move) const { return move.is_read ? readable_ : writable_ && !appends_; }

  // Operations of queues that are under way, maps and watches.
  std::atomic<int> in_flight = 0;

 protected:
  OpenFile(Connection& connection, int flags);

 private:
  const bool readable_, writable_, appends_, durable_;
};

}  // namespace pnfsrdma::library
