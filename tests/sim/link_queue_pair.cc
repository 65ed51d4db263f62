// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/link_queue_pair.h"

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::sim {

namespace {

// As if the adapter had fetched it when the doorbell rang.
Bytes gather(std::span<const rdma::LocalSlice> slices) {
  Bytes bytes;
  for (const rdma::LocalSlice& slice : slices)
    bytes.insert(bytes.end(), slice.address, slice.address + slice.length);
  return bytes;
}

}  // namespace

Result<> LinkQueuePair::post(Link::Request request) {
  if (!link_->client_open) return pnfsrdma::fail(ENOTCONN, "the connection has ended");
  link_->posted.push_back(std::move(request));
  return {};
}

Result<> LinkQueuePair::post_write(uint64_t work_id, std::span<const rdma::LocalSlice> source,
                                   rdma::RemoteSlice target) {
  Bytes bytes = gather(source);
  target.length = bytes.size();
  return post(
      {.work_id = work_id, .opcode = rdma::Opcode::kWrite, .bytes = std::move(bytes), .remote = target});
}

Result<> LinkQueuePair::post_read(uint64_t work_id, rdma::LocalSlice sink, rdma::RemoteSlice source) {
  source.length = sink.length;
  return post({.work_id = work_id, .opcode = rdma::Opcode::kRead, .sink = sink, .remote = source});
}

Result<> LinkQueuePair::post_send(uint64_t work_id, std::span<const rdma::LocalSlice> message) {
  return post({.work_id = work_id, .opcode = rdma::Opcode::kSend, .bytes = gather(message)});
}

Result<> LinkQueuePair::post_receive(uint64_t work_id, rdma::LocalSlice buffer) {
  if (!link_->client_open) return pnfsrdma::fail(ENOTCONN, "the connection has ended");
  link_->receives.push_back({work_id, buffer});
  return {};
}

Result<> LinkQueuePair::post_flush(uint64_t work_id, rdma::RemoteSlice target, rdma::FlushLevel) {
  if (!limits().native_flush) return pnfsrdma::fail(EOPNOTSUPP, "native flush was not agreed on");
  return post({.work_id = work_id, .opcode = rdma::Opcode::kFlush, .remote = target});
}

Result<> LinkQueuePair::post_atomic_write(uint64_t, uint64_t, rdma::RemoteSlice) {
  return pnfsrdma::fail(EOPNOTSUPP, "atomic write was not agreed on");
}

size_t LinkQueuePair::poll(std::span<rdma::Completion> completions) {
  link_->submit();
  const size_t count = std::min(completions.size(), link_->finished.size());
  std::copy_n(link_->finished.begin(), count, completions.begin());
  link_->finished.erase(link_->finished.begin(),
                        link_->finished.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

bool LinkQueuePair::wait(SteadyTime deadline) {
  while (link_->finished.empty() && link_->client_open) {
    if (!link_->changed.wait(deadline, "a completion")) return false;
  }
  return true;
}

}  // namespace pnfsrdma::sim
