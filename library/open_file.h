// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <span>
#include <string_view>

#include "library/client.h"
#include "library/file.h"
#include "shared/initiator/file/error_cursor.h"
#include "shared/initiator/file/io.h"

namespace pnfsrdma::library {

// What pnfsrdma_open() makes: one open of a file, and where it stands in the file's errors. Thread-safe; nothing
// is under way when it is closed. The client must outlive it.
class OpenFile {
 public:
  // `flags`, `mode`: open(2)'s. In the caller's name.
  static Result<std::unique_ptr<OpenFile>> open(Client& client, std::string_view path, int flags,
                                                mode_t mode);
  // Settles what was written, and closes whatever the outcome. Reports losses.
  Result<> close();

  // Bytes moved; a read is short only at the end of the file.
  Result<size_t> read(void* buffer, size_t count, uint64_t offset);
  Result<size_t> write(const void* buffer, size_t count, uint64_t offset, initiator::Stability stability);
  // Where it was written.
  Result<uint64_t> append(const void* buffer, size_t count, initiator::Stability stability);
  Result<> sync(bool data_only);
  // A read or write that is not waited for (FileIo::start_read()); `listener` hears when it is complete. False: it
  // would have to wait, or fail.
  bool start(initiator::PendingIo& io, bool is_read, void* buffer, size_t count, uint64_t offset,
             initiator::Stability stability, initiator::PendingIoListener& listener,
             initiator::Doorbell doorbell);
  // Behind a write that has to be durable. `losses`: of before it (FileIo::losses_from_now()).
  Result<> make_durable(initiator::ErrorCursor& losses) { return data().fdatasync(losses); }
  Result<> truncate(uint64_t size);
  Result<struct stat> status();

  // As the flags of open(2) say.
  initiator::Stability stability() const { return stability_; }
  bool readable() const { return readable_; }
  bool writable() const { return writable_; }
  bool appends() const { return appends_; }
  initiator::FileIo& data() { return *file_->data; }
  Client& client() { return client_; }

  // Operations of queues that are under way.
  std::atomic<int> in_flight = 0;

 private:
  OpenFile(Client& client, std::shared_ptr<File> file, std::shared_ptr<Open> open, int flags);

  Result<> truncate_once(uint64_t size, bool& again);

  Client& client_;
  const std::shared_ptr<File> file_;
  const std::shared_ptr<Open> open_;
  const bool readable_, writable_, appends_;
  const initiator::Stability stability_;
  initiator::ErrorCursor cursor_;
};

}  // namespace pnfsrdma::library
