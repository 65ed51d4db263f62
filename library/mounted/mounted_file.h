// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "library/mounted/mount_connection.h"
#include "library/open_file.h"
#include "shared/base/owned.h"

namespace pnfsrdma::library::mounted {

// A descriptor of a file on the mount, of direct I/O, by which all that waits is done.
class MountedFile final : public OpenFile {
 public:
  static Result<std::unique_ptr<MountedFile>> open(MountConnection& connection, const Names& names,
                                                   std::string_view path, int flags, mode_t mode);

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

  // In submissions. None: the mount takes none for it.
  std::optional<uint32_t> number() const { return number_; }

 private:
  MountedFile(MountConnection& connection, FileDescriptor file, int flags);

  // Where the piece went. `memory`: shared with the mount.
  Result<uint64_t> append_piece(const SharedMemory& memory, size_t at, size_t length, bool durable);

  MountConnection& connection_;
  FileDescriptor file_;
  std::optional<uint32_t> number_;
  std::atomic<bool> locked_ = false;  // ever
};

}  // namespace pnfsrdma::library::mounted
