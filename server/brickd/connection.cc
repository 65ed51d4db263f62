// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/connection.h"

#include <pthread.h>

#include "shared/base/sync.h"
#include "shared/brick/session_codec.h"

namespace pnfsrdma::brick {

Result<> Connection::ConnectionFlusher::flush(MutableByteSpan memory) {
  const ByteSpan range = memory;
  return gate_.persist_under(std::span(&range, 1), verifier_);
}

Connection::Connection(rdma::Transport& transport, bool native_flush, uint32_t number, Shared shared,
                       std::shared_ptr<ReplayRecord> record, std::shared_ptr<void> place)
    : place_(std::move(place)),
      record_(std::move(record)),
      transport_(transport),
      native_flush_(native_flush),
      number_(number),
      shared_(shared),
      flusher_(shared.gate),
      domain_(transport.make_protection_domain()) {}

Connection::~Connection() {
  end();
  exposures_.take_all().clear();
  server_.reset();
  queue_pair_.reset();
}

Result<rdma::RemoteSlice> Connection::expose(uint64_t grant, MutableByteSpan memory, bool writable) {
  rdma::Access access = rdma::Access::kRemoteRead;
  if (writable) access = access | rdma::Access::kRemoteWrite;
  if (writable && native_flush_) access = access | rdma::Access::kRemoteFlush;
  TRY_ASSIGN(auto region,
             transport_.register_region(domain_, memory, access, native_flush_ ? &flusher_ : nullptr));
  const rdma::RemoteSlice remote = region->remote();
  exposures_.add(grant, std::move(region), writable);
  return remote;
}

std::unique_ptr<rdma::Region> Connection::withdraw(uint64_t grant) {
  auto region = exposures_.take(grant);
  shared_.watchers.grant_ended(inbox_, grant);
  return region;
}

Result<> Connection::accept(rdma::ConnectionRequest& request, std::function<void()> on_ended) {
  rdma::QueuePairLimits limits;
  limits.send_depth = 32;
  limits.receive_depth = 32;
  limits.message_size_max = kSessionMessageMax;
  limits.native_flush = native_flush_;
  const Bytes said = encode_accept({.understands = SessionServer::kUnderstands, .record = record_->number()});
  TRY_ASSIGN(queue_pair_, request.accept(domain_, said, limits));
  TRY_ASSIGN(server_,
             SessionServer::make(transport_, domain_, *queue_pair_,
                                 {exposures_, shared_.gate, shared_.counters, shared_.watchers, inbox_},
                                 number_, record_));
  thread_ = Thread([this, server = server_.get(), on_ended = std::move(on_ended)] {
    server->run();
    shared_.watchers.connection_ended(inbox_);
    on_ended();
  });
  pthread_setname_np(thread_.native_handle(), "brick-data");
  return {};
}

void Connection::fail() {
  if (queue_pair_) queue_pair_->fail();
}

void Connection::end() {
  fail();
  if (thread_.joinable()) thread_.join();
}

rdma::TransportCounters Connection::counters() const {
  return queue_pair_ ? queue_pair_->counters() : rdma::TransportCounters{};
}

}  // namespace pnfsrdma::brick
