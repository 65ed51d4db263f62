// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/rdma_socket.h"

#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/nfs4/data_items.h"
#include "shared/rpc/message.h"
#include "shared/rpc/record.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::initiator {
namespace {

constexpr rpc_rdma::UpperLayer kNfs{.argument_items = nfs4::argument_data_items,
                                    .result_items = nfs4::result_data_items,
                                    .result_bound = nfs4::result_bound,
                                    .restored_items = nfs4::restored_data_items};

// Bytes of a call's RPC header; all of a reply's.
Result<size_t> head_size(ByteSpan message) {
  const auto start = rpc::peek_message(message);
  if (!start) return fail(EINVAL, "the outgoing data is not an RPC message");
  if (start->type == rpc::MessageType::kReply) return message.size();
  xdr::Decoder decoder(message);
  rpc::CallHeader header;
  if (!xdr::decode(decoder, header)) return fail(EINVAL, "the outgoing data is not an RPC call");
  return decoder.position();
}

}  // namespace

Result<std::shared_ptr<SessionSocket>> SessionRdmaSocket::connect(
    std::span<const std::shared_ptr<rdma::Transport>> transports, const rpc::SocketAddress& address,
    Milliseconds timeout, size_t record_bytes_max, Counters& counters, DeferredDestruction& destruction) {
  Error last(ENODEV, "no RDMA transport");
  for (const auto& transport : transports) {
    const SteadyTime deadline = steady_now() + timeout;
    auto endpoint = rpc_rdma::connect(transport, address.to_string(), deadline, kNfs, record_bytes_max);
    if (!endpoint) {
      last = endpoint.error().in("RPC-over-RDMA over " + transport->name());
      continue;
    }
    log_info("session", "rdma-connected server={} transport={} inline_send={} inline_receive={}",
             address.to_string(), transport->name(), (*endpoint)->thresholds().send,
             (*endpoint)->thresholds().receive);
    return destruction.adopt(std::make_unique<SessionRdmaSocket>(*std::move(endpoint), counters));
  }
  return std::unexpected(std::move(last));
}

SessionRdmaSocket::SessionRdmaSocket(std::unique_ptr<rpc_rdma::Endpoint> endpoint, Counters& counters)
    : endpoint_(std::move(endpoint)), queue_pair_(endpoint_->queue_pair()), counters_(counters) {}

Result<> SessionRdmaSocket::send(ByteSpan record, Milliseconds /*patience*/) {
  const ByteSpan message = record.subspan(rpc::kMarkSize);
  TRY_ASSIGN(const size_t split, head_size(message));
  Bytes head(message.begin(), message.begin() + static_cast<ptrdiff_t>(split));
  auto body = std::make_shared<const Bytes>(message.begin() + static_cast<ptrdiff_t>(split), message.end());
  counters_.sends.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  TRY(endpoint_->send(std::move(head), std::move(body)));
  return endpoint_->flush();
}

Result<> SessionRdmaSocket::receive(bool wait, std::vector<Bytes>& records) {
  counters_.receives.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    TRY(endpoint_->progress(records));
  }
  if (!wait || !records.empty()) return {};
  queue_pair_.wait(steady_now() + kSlice);
  const std::lock_guard lock(mutex_);
  return endpoint_->progress(records);
}

}  // namespace pnfsrdma::initiator
