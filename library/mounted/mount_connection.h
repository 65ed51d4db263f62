// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "library/connection.h"
#include "library/memory_index.h"
#include "library/mounted/door.h"
#include "library/mounted/names.h"
#include "library/mounted/ring.h"
#include "library/mounted/shared_memory.h"
#include "shared/base/guarded.h"

namespace pnfsrdma::library::mounted {

// A connection through a mount of this host: files are opened by the kernel, in the calling process's name, and read
// and written by the mount's process, from and to memory that it shares. Thread-safe.
class MountConnection final : public Connection {
 public:
  // `path`: a directory on the mount. `options`: none.
  static Result<std::unique_ptr<MountConnection>> connect(std::string_view path, std::string_view options);

  Result<std::unique_ptr<OpenFile>> open(std::string_view path, int flags, mode_t mode) override;
  Result<std::unique_ptr<Directory>> open_directory(std::string_view path) override;
  Result<struct stat> status(std::string_view path) override { return names_.status(path); }
  Result<> unlink(std::string_view path) override { return names_.unlink(path); }
  Result<> remove_directory(std::string_view path) override { return names_.remove_directory(path); }
  Result<> make_directory(std::string_view path, mode_t mode) override {
    return names_.make_directory(path, mode);
  }
  Result<> rename(std::string_view from, std::string_view to, Renaming how) override {
    return names_.rename(from, to, how);
  }

  using Memory = MemoryIndex<SharedMemory>;
  Result<void*> allocate(size_t size, void* wanted) override;
  Result<> free(void* memory) override;
  Result<> register_memory(MutableByteSpan memory) override;
  Result<void*> register_file(int memfd, size_t size) override;
  Result<> unregister(void* memory) override;
  // None: at least one byte of it is not shared with the mount.
  Memory::Use find(const void* address, size_t size) { return memory_.find(address, size); }

  std::unique_ptr<Flight> make_flight(FlightListener& listener) override;
  void progress() override { ring_->progress(); }
  void together(Starter& starter) override;
  int completion_fd() override { return ring_->completion_fd(); }

  const ring::Secret& secret() const { return door_->secret(); }
  Result<uint32_t> add_channel(int socket) { return door_->add_channel(socket); }

  // Memory for what is in a program's own meanwhile: an append.
  static constexpr size_t kBounceSize = size_t{1} << 20;
  Result<std::unique_ptr<SharedMemory>> take_bounce();
  void give_back(std::unique_ptr<SharedMemory> bounce);

 private:
  MountConnection(FileDescriptor root, const ring::Find& found, std::unique_ptr<Door> door,
                  std::unique_ptr<Ring> ring);

  const Names names_;
  const std::unique_ptr<Door> door_;
  const std::unique_ptr<Ring> ring_;
  Memory memory_;
  Guarded<std::vector<std::unique_ptr<SharedMemory>>> bounces_;
};

}  // namespace pnfsrdma::library::mounted
