// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "shared/base/check.h"

namespace pnfsrdma::initiator {

namespace {

constexpr size_t kPage = 4096;

bool device_gone(const Error& error) {
  return error.number() == EIO || error.number() == ENODEV;
}

}  // namespace

BufferSlice BufferSlice::slice(size_t offset, size_t count) const {
  CHECK(offset <= length_ && count <= length_ - offset);
  return {address_ + offset, count, keys_};
}

Result<std::unique_ptr<Buffer>> Buffer::allocate(std::span<const TransportDomain> transports, size_t size,
                                                 Stores meanwhile) {
  CHECK(transports.size() <= kTransportsMax);
  if (size == 0 || size > SIZE_MAX - kPage) return fail(EINVAL, "buffer size");
  const size_t rounded = (size + kPage - 1) / kPage * kPage;
  return mapped(transports,
                mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), rounded,
                meanwhile);
}

Result<std::unique_ptr<Buffer>> Buffer::map(std::span<const TransportDomain> transports, int descriptor,
                                            size_t size) {
  if (size == 0 || size % kPage != 0) return fail(EINVAL, "memory is shared in whole pages");
  return mapped(transports, mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), size,
                Stores::kPrograms);
}

Result<std::unique_ptr<Buffer>> Buffer::adopt(std::span<const TransportDomain> transports,
                                              MutableByteSpan memory) {
  if (memory.empty()) return fail(EINVAL, "buffer size");
  std::unique_ptr<Buffer> buffer(new Buffer(memory, Mapping::kOthers));
  TRY(buffer->register_with(transports, Stores::kPrograms));
  return buffer;
}

// `memory`: what mmap(2) said.
Result<std::unique_ptr<Buffer>> Buffer::mapped(std::span<const TransportDomain> transports, void* memory,
                                               size_t size, Stores meanwhile) {
  if (memory == MAP_FAILED) return std::unexpected(Error::from_errno("mmap of an I/O buffer"));
  std::unique_ptr<Buffer> buffer(new Buffer({static_cast<std::byte*>(memory), size}, Mapping::kOwn));
  TRY(buffer->register_with(transports, meanwhile));
  return buffer;
}

Result<> Buffer::register_with(std::span<const TransportDomain> transports, Stores meanwhile) {
  std::optional<Error> gone;
  auto access = rdma::Access::kLocalWrite;
  if (meanwhile == Stores::kPrograms) access = access | rdma::Access::kShared;
  for (size_t i = 0; i < transports.size(); ++i) {
    auto region = transports[i].transport->register_region(transports[i].domain, memory_, access);
    if (!region) {
      // A device that was removed takes no regions and gets no connections: the others go on.
      if (!device_gone(region.error())) return std::unexpected(std::move(region).error());
      gone = std::move(region).error();
      continue;
    }
    keys_[i] = (*region)->local_key();
    regions_.push_back(*std::move(region));
  }
  if (regions_.empty() && gone) return std::unexpected(*std::move(gone));
  return {};
}

Buffer::~Buffer() {
  regions_.clear();
  if (mapping_ == Mapping::kOwn) munmap(memory_.data(), memory_.size());
}

BufferSlice Buffer::slice(size_t offset, size_t count) const {
  CHECK(offset <= memory_.size() && count <= memory_.size() - offset);
  return {memory_.data() + offset, count, keys_.data()};
}

BufferPool::BufferPool(std::vector<TransportDomain> transports, size_t buffer_size, size_t kept_max)
    : transports_(std::move(transports)), buffer_size_(buffer_size), kept_max_(kept_max) {
  idle_.reserve(kept_max_);
}

void BufferPool::Return::operator()(Buffer* buffer) const {
  pool->give_back(std::unique_ptr<Buffer>(buffer));
}

Result<BufferPool::Taken> BufferPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Taken taken(idle_.back().release(), Return{this});
      idle_.pop_back();
      return taken;
    }
  }
  TRY_ASSIGN(auto buffer, Buffer::allocate(transports_, buffer_size_));
  return Taken(buffer.release(), Return{this});
}

void BufferPool::give_back(std::unique_ptr<Buffer> buffer) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < kept_max_) idle_.push_back(std::move(buffer));
}

}  // namespace pnfsrdma::initiator
