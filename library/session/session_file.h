// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "library/open_file.h"
#include "library/session/client.h"
#include "library/session/file.h"
#include "shared/initiator/file/error_cursor.h"

namespace pnfsrdma::library::session {

inline initiator::Stability stability_of(bool durable) {
  return durable ? initiator::Stability::kDataSync : initiator::Stability::kUnstable;
}

// One open of a file at the server, and where it stands in the file's errors.
class SessionFile final : public OpenFile {
 public:
  // What one step moves: copies of growth are kept until it is committed, and a connection is given up when a step
  // takes longer than the data path's io_timeout.
  static constexpr size_t kStepMax = size_t{8} << 20;

  // In the caller's name.
  static Result<std::unique_ptr<SessionFile>> open(Client& client, std::string_view path, int flags,
                                                   mode_t mode);

  Result<> close() override;
  Result<size_t> read(void* buffer, size_t count, uint64_t offset) override;
  Result<size_t> write(const void* buffer, size_t count, uint64_t offset, bool durable) override;
  Result<uint64_t> append(const void* buffer, size_t count, bool durable) override;
  Result<> sync(bool data_only) override;
  Result<> truncate(uint64_t size) override;
  Result<struct stat> status() override;
  Result<uint64_t> change_word(const WordChange& change) override;
  Result<Verified> verify(std::span<const pnfsrdma_range> ranges) override;
  Result<std::unique_ptr<Watch>> watch(const pnfsrdma_range& range) override;
  Result<> lock(const LockWish& wish) override;
  Result<> unlock(uint64_t offset, uint64_t length) override;
  Result<bool> may_lock(const LockWish& wish) override;
  Result<> signal(const pnfsrdma_range& range, uint64_t value) override;

  initiator::FileIo& data() { return *file_->data; }
  // EIO: what this open had locked others may have had since.
  Result<> check_locks() const;

 private:
  SessionFile(Client& client, std::shared_ptr<File> file, std::shared_ptr<Open> open, int flags);

  // Another client may have made the file longer than is known here.
  Result<> know_size(uint64_t end);
  Result<> truncate_once(uint64_t size, bool& again);

  Client& client_;
  const std::shared_ptr<File> file_;
  const std::shared_ptr<Open> open_;
  initiator::ErrorCursor cursor_;
};

}  // namespace pnfsrdma::library::session
