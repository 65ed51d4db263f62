// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shared/rdma/transport.h"
#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::rpc_rdma {

// The registered buffers of a connection: kInlineThreshold bytes for each receive and each send. Owned by the
// Wire; made before it, so that receives can be posted as soon as there is a queue pair.
class MessageBuffers {
 public:
  static constexpr uint32_t kReceives = kCredits + kReverseCredits + kSpareReceives;

  static Result<MessageBuffers> make(rdma::Transport& transport,
                                     std::shared_ptr<rdma::ProtectionDomain> domain);

  rdma::LocalSlice receive(uint32_t index) const { return slice(index, kInlineThreshold); }
  rdma::LocalSlice send(uint32_t index, uint32_t length) const { return slice(kReceives + index, length); }

 private:
  rdma::LocalSlice slice(uint32_t index, uint32_t length) const {
    return region_->slice(size_t{index} * kInlineThreshold, length);
  }

  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<rdma::Region> region_;  // before the memory it covers
};

// What both ends ask of a queue pair.
rdma::QueuePairLimits queue_pair_limits();

// A queue pair with its message buffers: counts what is posted, so that nothing is refused for lack of room,
// and keeps what a message needs until its SEND has completed. Not thread-safe.
class Wire {
 public:
  // Posts all receives.
  static Result<std::unique_ptr<Wire>> make(std::shared_ptr<rdma::Transport> transport,
                                            std::shared_ptr<rdma::ProtectionDomain> domain,
                                            MessageBuffers buffers,
                                            std::unique_ptr<rdma::QueuePair> queue_pair);

  // What poll() reports.
  struct Received {
    ByteSpan message;  // valid until give_back()
    uint32_t buffer = 0;
  };
  struct ReadDone {
    uint64_t token = 0;
  };
  struct Event {
    std::optional<Received> received;
    std::optional<ReadDone> read;
  };

  // Is there room for `work_requests` that end in a SEND (`with_buffer`) or do not?
  bool has_room(size_t work_requests, bool with_buffer) const {
    return posted_ + work_requests <= depth_ && (!with_buffer || !free_buffers_.empty());
  }
  // A buffer to build a message in: kInlineThreshold bytes. has_room() said yes.
  uint32_t take_buffer();
  MutableByteSpan buffer(uint32_t index) {
    const rdma::LocalSlice slice = buffers_.send(index, kInlineThreshold);
    return {slice.address, slice.length};
  }
  rdma::LocalSlice slice(uint32_t index, uint32_t offset, uint32_t length) const {
    rdma::LocalSlice slice = buffers_.send(index, kInlineThreshold);
    return {slice.address + offset, length, slice.key};
  }
  // The first `length` bytes of the buffer. `kept` lives until it has completed, and all WRITEs before it.
  Result<> post_send(uint32_t index, uint32_t length, std::shared_ptr<void> kept);
  Result<> post_write(std::span<const rdma::LocalSlice> source, rdma::RemoteSlice target);
  // `token` comes back in ReadDone.
  Result<> post_read(rdma::LocalSlice sink, rdma::RemoteSlice source, uint64_t token);
  // The receive buffer may be written again.
  Result<> give_back(uint32_t buffer);
  void submit() { queue_pair_->submit(); }

  // Takes what has completed. An error: the connection is lost. Returns how many completions there were.
  Result<size_t> poll(std::vector<Event>& events);

  Result<std::unique_ptr<rdma::Region>> register_region(MutableByteSpan memory, rdma::Access access) {
    return transport_->register_region(domain_, memory, access);
  }
  rdma::QueuePair& queue_pair() { return *queue_pair_; }

 private:
  Wire(std::shared_ptr<rdma::Transport> transport, std::shared_ptr<rdma::ProtectionDomain> domain,
       MessageBuffers buffers, std::unique_ptr<rdma::QueuePair> queue_pair);

  std::shared_ptr<rdma::Transport> transport_;
  std::shared_ptr<rdma::ProtectionDomain> domain_;
  MessageBuffers buffers_;
  std::vector<uint32_t> free_buffers_;
  std::vector<std::shared_ptr<void>> kept_;  // by send buffer
  size_t depth_ = 0;
  size_t posted_ = 0;                            // sends, writes, reads
  std::unique_ptr<rdma::QueuePair> queue_pair_;  // ends first: what is kept may still be in its hands
};

}  // namespace pnfsrdma::rpc_rdma
