// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/rdma_memory/queue_pair.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/sync.h"

namespace pnfsrdma::rdma::memory {

Result<> MemoryQueuePair::post_write(uint64_t work_id, std::span<const LocalSlice> source,
                                     RemoteSlice target) {
  TRY_ASSIGN(uint32_t length, gather_length(source));
  TRY(check_remote(target, length));
  WorkRequest request;
  request.fill(work_id, Opcode::kWrite, target);
  for (const LocalSlice& slice : source) request.bind(*end().domain, slice, Access::kLocalRead);
  return wire_->post(side_, std::move(request));
}

Result<> MemoryQueuePair::post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) {
  TRY(check_remote(source, sink.length));
  WorkRequest request;
  request.fill(work_id, Opcode::kRead, source);
  request.bind(*end().domain, sink, Access::kLocalWrite);
  return wire_->post(side_, std::move(request));
}

Result<> MemoryQueuePair::post_send(uint64_t work_id, std::span<const LocalSlice> message) {
  TRY_ASSIGN(uint32_t length, gather_length(message));
  if (length > limits().message_size_max) {
    return pnfsrdma::fail(EMSGSIZE, "longer than the longest message");
  }
  WorkRequest request;
  request.fill(work_id, Opcode::kSend, {});
  for (const LocalSlice& slice : message) request.bind(*end().domain, slice, Access::kLocalRead);
  return wire_->post(side_, std::move(request));
}

Result<> MemoryQueuePair::post_receive(uint64_t work_id, LocalSlice buffer) {
  return wire_->post_receive(side_, work_id, buffer);
}

Result<> MemoryQueuePair::post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) {
  if (!limits().native_flush) {
    return pnfsrdma::fail(EOPNOTSUPP, "native flush was not agreed on with the peer");
  }
  TRY(check_remote(target, 0));
  WorkRequest request;
  request.fill(work_id, Opcode::kFlush, target);
  request.level = level;
  return wire_->post(side_, std::move(request));
}

Result<> MemoryQueuePair::post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) {
  if (!limits().atomic_write) {
    return pnfsrdma::fail(EOPNOTSUPP, "atomic write was not agreed on with the peer");
  }
  TRY(check_atomic_write(target));
  WorkRequest request;
  request.fill_atomic_write(work_id, value, target);
  return wire_->post(side_, std::move(request));
}

size_t MemoryQueuePair::poll(std::span<Completion> completions) {
  wire_->submit(side_);
  return wire_->take(side_, completions);
}

bool MemoryQueuePair::wait(SteadyTime deadline) {
  while (!wire_->ready(side_)) {
    auto left = std::chrono::ceil<Milliseconds>(
        std::min<SteadyTime::duration>(deadline - steady_now(), std::chrono::hours(1)));
    if (left <= Milliseconds(0)) return false;
    pollfd entry{fd(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
  }
  return true;
}

}  // namespace pnfsrdma::rdma::memory
