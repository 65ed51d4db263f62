// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace pnfsrdma {

// The deleter behind Owned: calls a C function on the handle.
template <auto Destroy>
struct CallDestroy {
  template <typename T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};

// A C handle with its destroy function: `using QueuePair = Owned<ibv_qp, ibv_destroy_qp>;`
template <typename T, auto Destroy>
using Owned = std::unique_ptr<T, CallDestroy<Destroy>>;

// A file descriptor, closed when it goes. Movable; not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace pnfsrdma
