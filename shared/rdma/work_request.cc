// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/work_request.h"

#include <cerrno>
#include <limits>

namespace pnfsrdma::rdma {

void WorkRequest::fill(uint64_t id, Opcode operation, RemoteSlice target) {
  work_id = id;
  opcode = operation;
  level = FlushLevel::kPersistent;
  local_protection = false;
  slice_count = 0;
  length = 0;
  value = 0;
  remote = target;
}

void WorkRequest::fill_atomic_write(uint64_t id, uint64_t stored, RemoteSlice target) {
  fill(id, Opcode::kAtomicWrite, target);
  length = kAtomicWriteSize;
  value = stored;
}

void WorkRequest::bind(const SoftwareDomain& domain, LocalSlice slice, Access wanted) {
  length += slice.length;
  if (slice.length == 0) return;  // names no byte, so its key is not looked at
  auto registration = domain.find(slice.key);
  if (registration == nullptr || !allows(registration->access(), wanted) ||
      !registration->covers(reinterpret_cast<uintptr_t>(slice.address), slice.length)) {
    local_protection = true;
    return;
  }
  slices[slice_count++] = {std::move(registration), slice.address, slice.length};
}

void WorkRequest::release() {
  for (uint32_t i = 0; i < slice_count; ++i) slices[i].registration.reset();
  slice_count = 0;
}

Result<> check_remote(const RemoteSlice& remote, uint64_t needed) {
  if (remote.length > std::numeric_limits<uint32_t>::max()) {
    return fail(EINVAL, "one operation reaches at most 4 GiB - 1 bytes");
  }
  if (remote.length > 0 && remote.address + (remote.length - 1) < remote.address) {
    return fail(EINVAL, "the remote range wraps around the address space");
  }
  if (needed > remote.length) return fail(EINVAL, "the remote range is shorter than the local one");
  return {};
}

Result<> check_atomic_write(const RemoteSlice& target) {
  if (target.length == kAtomicWriteSize && target.address % kAtomicWriteSize == 0) return {};
  return fail(EINVAL, "an atomic write goes to eight bytes at a multiple of eight");
}

Result<uint32_t> gather_length(std::span<const LocalSlice> slices) {
  if (slices.size() > kGatherMax) return fail(EINVAL, "more local slices than one operation gathers");
  uint64_t total = 0;
  for (const LocalSlice& slice : slices) total += slice.length;
  if (total > std::numeric_limits<uint32_t>::max()) {
    return fail(EINVAL, "one operation moves at most 4 GiB - 1 bytes");
  }
  return static_cast<uint32_t>(total);
}

}  // namespace pnfsrdma::rdma
