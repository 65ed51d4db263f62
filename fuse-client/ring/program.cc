// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/program.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace pnfsrdma::fuse_client {

// The memory is the mount's own and cannot be cut: the program could not take a page away under its hands.
Result<> Program::open_rings(uint64_t depth, Random& random) {
  const auto rounded = ring::rounded_depth(depth);
  if (!rounded) return fail(EINVAL, "the depth of a ring is 1 to 4096");
  const size_t size = ring::rings_size(*rounded);
  FileDescriptor memory(::memfd_create("pnfsrdma-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return std::unexpected(Error::from_errno("memory of the rings"));
  FileDescriptor doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  FileDescriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell || !bell) return std::unexpected(Error::from_errno("eventfd"));
  // No transport: RDMA has no business there.
  TRY_ASSIGN(mapping_, initiator::Buffer::map({}, memory.get(), size));
  rings_.emplace(MutableByteSpan(mapping_->data(), size), *rounded);
  memory_ = std::move(memory);
  doorbell_ = std::move(doorbell);
  bell_ = std::move(bell);
  random.fill(std::as_writable_bytes(std::span(secret)));
  return {};
}

std::array<int, ring::kHelloDescriptors> Program::descriptors() const {
  return {memory_.get(), doorbell_.get(), bell_.get()};
}

void Program::publish() {
  if (!std::exchange(completed_any, false) || !rings_->publish()) return;
  const uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof one);
}

}  // namespace pnfsrdma::fuse_client
