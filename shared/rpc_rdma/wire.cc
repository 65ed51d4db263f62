// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/wire.h"

#include <array>
#include <cerrno>

#include "shared/base/check.h"

namespace pnfsrdma::rpc_rdma {
namespace {

// Work ids: what it was, and which.
enum class Kind : uint64_t { kReceive, kSend, kWrite, kRead };
constexpr unsigned kKindShift = 60;
constexpr uint64_t work_id(Kind kind, uint64_t which) {
  return (static_cast<uint64_t>(kind) << kKindShift) | which;
}
constexpr Kind kind_of(uint64_t id) {
  return static_cast<Kind>(id >> kKindShift);
}
constexpr uint64_t which_of(uint64_t id) {
  return id & ((uint64_t{1} << kKindShift) - 1);
}

}  // namespace

Result<MessageBuffers> MessageBuffers::make(rdma::Transport& transport,
                                            std::shared_ptr<rdma::ProtectionDomain> domain) {
  constexpr size_t kSize = size_t{kReceives + kSendBuffers} * kInlineThreshold;
  MessageBuffers buffers;
  buffers.memory_ = std::make_unique<std::byte[]>(kSize);
  TRY_ASSIGN(buffers.region_,
             transport.register_region(std::move(domain), MutableByteSpan(buffers.memory_.get(), kSize),
                                       rdma::Access::kLocalWrite));
  return buffers;
}

rdma::QueuePairLimits queue_pair_limits() {
  return {.send_depth = kSendDepth,
          .receive_depth = MessageBuffers::kReceives,
          .read_depth = kReadDepth,
          .message_size_max = kInlineThreshold};
}

Result<std::unique_ptr<Wire>> Wire::make(std::shared_ptr<rdma::Transport> transport,
                                         std::shared_ptr<rdma::ProtectionDomain> domain,
                                         MessageBuffers buffers,
                                         std::unique_ptr<rdma::QueuePair> queue_pair) {
  std::unique_ptr<Wire> wire(
      new Wire(std::move(transport), std::move(domain), std::move(buffers), std::move(queue_pair)));
  if (wire->depth_ < kWorkRequestsMax) return fail(ENOBUFS, "the device's queue pairs are too small");
  for (uint32_t i = 0; i < MessageBuffers::kReceives; ++i) TRY(wire->give_back(i));
  wire->submit();
  return wire;
}

Wire::Wire(std::shared_ptr<rdma::Transport> transport, std::shared_ptr<rdma::ProtectionDomain> domain,
           MessageBuffers buffers, std::unique_ptr<rdma::QueuePair> queue_pair)
    : transport_(std::move(transport)),
      domain_(std::move(domain)),
      buffers_(std::move(buffers)),
      kept_(kSendBuffers),
      depth_(queue_pair->limits().send_depth),
      queue_pair_(std::move(queue_pair)) {
  for (uint32_t i = kSendBuffers; i-- > 0;) free_buffers_.push_back(i);
}

uint32_t Wire::take_buffer() {
  CHECK(!free_buffers_.empty());
  const uint32_t index = free_buffers_.back();
  free_buffers_.pop_back();
  return index;
}

Result<> Wire::post_send(uint32_t index, uint32_t length, std::shared_ptr<void> kept) {
  kept_[index] = std::move(kept);
  const rdma::LocalSlice slice = buffers_.send(index, length);
  TRY(queue_pair_->post_send(work_id(Kind::kSend, index), {&slice, 1}));
  ++posted_;
  return {};
}

Result<> Wire::post_write(std::span<const rdma::LocalSlice> source, rdma::RemoteSlice target) {
  TRY(queue_pair_->post_write(work_id(Kind::kWrite, 0), source, target));
  ++posted_;
  return {};
}

Result<> Wire::post_read(rdma::LocalSlice sink, rdma::RemoteSlice source, uint64_t token) {
  TRY(queue_pair_->post_read(work_id(Kind::kRead, token), sink, source));
  ++posted_;
  return {};
}

Result<> Wire::give_back(uint32_t buffer) {
  return queue_pair_->post_receive(work_id(Kind::kReceive, buffer), buffers_.receive(buffer));
}

Result<size_t> Wire::poll(std::vector<Event>& events) {
  std::array<rdma::Completion, 64> completions;
  const size_t count = queue_pair_->poll(completions);
  if (count == 0 && !queue_pair_->connected()) return fail(ECONNRESET, "the RDMA connection has ended");
  for (const rdma::Completion& done : std::span(completions).first(count)) {
    const Kind kind = kind_of(done.work_id);
    if (kind != Kind::kReceive) --posted_;
    if (done.outcome != rdma::Outcome::kSuccess) {
      // Reliable-connected: whatever it was, the connection is gone with it.
      const bool ended =
          done.outcome == rdma::Outcome::kFlushed || done.outcome == rdma::Outcome::kConnectionLost;
      return fail(ended ? ECONNRESET : EPROTO,
                  std::string("the RDMA connection has ended: ") + rdma::to_string(done.outcome));
    }
    const uint64_t which = which_of(done.work_id);
    if (kind == Kind::kSend) {
      kept_[which].reset();
      free_buffers_.push_back(static_cast<uint32_t>(which));
    } else if (kind == Kind::kReceive) {
      const auto index = static_cast<uint32_t>(which);
      const ByteSpan message(buffers_.receive(index).address, done.length);
      events.push_back({.received = Received{message, index}, .read = std::nullopt});
    } else if (kind == Kind::kRead) {
      events.push_back({.received = std::nullopt, .read = ReadDone{which}});
    }
  }
  return count;
}

}  // namespace pnfsrdma::rpc_rdma
