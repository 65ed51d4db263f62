// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>

#include "shared/rdma/software_domain.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma {

// A local slice with the registration that allows it.
struct BoundSlice {
  std::shared_ptr<Registration> registration;
  std::byte* address = nullptr;
  uint32_t length = 0;
};

// One posted operation of a software queue pair, its local slices looked up when it was posted. Lives in a
// Ring: fill() overwrites all of it and allocates nothing.
struct WorkRequest {
  uint64_t work_id = 0;
  Opcode opcode = Opcode::kWrite;
  FlushLevel level = FlushLevel::kPersistent;
  bool local_protection = false;  // a slice is outside its region or domain: fails when its turn comes
  uint32_t slice_count = 0;
  uint32_t length = 0;  // bytes to move
  uint64_t value = 0;   // of an ATOMIC WRITE
  RemoteSlice remote;
  std::array<BoundSlice, kGatherMax> slices;

  void fill(uint64_t id, Opcode operation, RemoteSlice target);
  // Binds `slice` if `domain` has it with `wanted` rights; else marks the request.
  void bind(const SoftwareDomain& domain, LocalSlice slice, Access wanted);
  // Makes it an ATOMIC WRITE of `stored`.
  void fill_atomic_write(uint64_t id, uint64_t stored, RemoteSlice target);
  // Lets the registrations go when the request is done.
  void release();
};

// The argument checks of post_write(), post_read() and post_flush(), see QueuePair: EINVAL.
Result<> check_remote(const RemoteSlice& remote, uint64_t needed);
// Those of post_atomic_write(): EINVAL.
Result<> check_atomic_write(const RemoteSlice& target);
// Sum of the slices' lengths. EINVAL over kGatherMax slices or 4 GiB-1.
Result<uint32_t> gather_length(std::span<const LocalSlice> slices);

}  // namespace pnfsrdma::rdma
