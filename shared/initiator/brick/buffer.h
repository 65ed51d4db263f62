// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::initiator {

// Transports a mount can use at the same time: each RDMA device is one, and iwarp.
inline constexpr size_t kTransportsMax = 16;
// What one FUSE request or reply carries at most, and the room in front of it for headers, in bytes. The
// payload starts on a page border when a reply is built at kBufferHeaderRoom.
inline constexpr size_t kBufferPayload = size_t{1} << 20;
inline constexpr size_t kBufferHeaderRoom = 4096;
inline constexpr size_t kBufferSize = kBufferPayload + kBufferHeaderRoom;

// A transport and this mount's protection domain on it: registered memory and queue pairs of one domain work
// together.
struct TransportDomain {
  std::shared_ptr<rdma::Transport> transport;
  std::shared_ptr<rdma::ProtectionDomain> domain;
};

// Part of a Buffer: a value, good while the Buffer lives. RDMA goes straight from and to it.
class BufferSlice {
 public:
  BufferSlice() = default;
  BufferSlice(std::byte* address, size_t length, const uint32_t* keys)
      : address_(address), length_(length), keys_(keys) {}

  std::byte* data() const { return address_; }
  size_t size() const { return length_; }
  MutableByteSpan bytes() const { return {address_, length_}; }
  // `count` bytes from `offset`; CHECKs that they are inside.
  BufferSlice slice(size_t offset, size_t count) const;
  // For the transport with this index in DataPath's list. `count` bytes from `offset`.
  rdma::LocalSlice local(size_t transport, size_t offset, uint32_t count) const {
    return {address_ + offset, count, keys_[transport]};
  }

 private:
  std::byte* address_ = nullptr;
  size_t length_ = 0;
  const uint32_t* keys_ = nullptr;
};

// Who stores to a buffer's memory while it is being sent: nobody, or programs when they like (rdma::Access::kShared).
enum class Stores : uint8_t { kNone, kPrograms };

// Page-aligned memory, registered with every transport of the mount for as long as it lives. Owns memory, unless it
// has adopted it, and registrations. A FUSE worker has one (kBufferSize) for its life: the kernel's request is
// received into it and a WRITE goes out from there, a READ lands in it and the reply is written from there: no copy
// in user space.
class Buffer {
 public:
  // `size` is rounded up to whole pages. Errors: ENOMEM, or the transport's reason (memlock, …).
  static Result<std::unique_ptr<Buffer>> allocate(std::span<const TransportDomain> transports, size_t size,
                                                  Stores meanwhile = Stores::kNone);
  // The first `size` bytes (whole pages) of what the descriptor stands for, shared with whoever else has mapped it. It
  // must not shrink while the Buffer lives.
  static Result<std::unique_ptr<Buffer>> map(std::span<const TransportDomain> transports, int descriptor,
                                             size_t size);
  // Memory of somebody else's, who keeps it where it is as long as the Buffer lives, and stores to it when he likes.
  static Result<std::unique_ptr<Buffer>> adopt(std::span<const TransportDomain> transports,
                                               MutableByteSpan memory);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  BufferSlice slice(size_t offset, size_t count) const;

 private:
  enum class Mapping : uint8_t { kOwn, kOthers };
  Buffer(MutableByteSpan memory, Mapping mapping) : memory_(memory), mapping_(mapping) {}
  static Result<std::unique_ptr<Buffer>> mapped(std::span<const TransportDomain> transports, void* memory,
                                                size_t size, Stores meanwhile);
  Result<> register_with(std::span<const TransportDomain> transports, Stores meanwhile);

  MutableByteSpan memory_;
  const Mapping mapping_;
  std::vector<std::unique_ptr<rdma::Region>> regions_;
  std::array<uint32_t, kTransportsMax> keys_{};
};

// Returned buffers, ready for the next user: registering costs milliseconds, taking one from
// here a lock. Thread-safe.
class BufferPool {
 public:
  // Keeps at most `kept_max` idle ones; more are freed when they come back.
  BufferPool(std::vector<TransportDomain> transports, size_t buffer_size, size_t kept_max);

  // Gives the buffer back to its pool. The pool must outlive it.
  struct Return {
    BufferPool* pool = nullptr;
    void operator()(Buffer* buffer) const;
  };
  using Taken = std::unique_ptr<Buffer, Return>;
  Result<Taken> take();

 private:
  void give_back(std::unique_ptr<Buffer> buffer);

  const std::vector<TransportDomain> transports_;
  const size_t buffer_size_;
  const size_t kept_max_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> idle_;
};

}  // namespace pnfsrdma::initiator
