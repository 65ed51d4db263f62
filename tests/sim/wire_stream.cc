// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/wire_stream.h"

#include <cerrno>

#include "shared/base/sync.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::sim {

void WireStream::arrived(Bytes record) {
  waiting_.push_back(std::move(record));
  deliver();
}

void WireStream::deliver() {
  while (handlers_ && !paused_ && !waiting_.empty()) {
    Bytes record = std::move(waiting_.front());
    waiting_.pop_front();
    const auto on_message = handlers_->on_message;
    on_message(std::move(record));
  }
}

void WireStream::closed() {
  if (!handlers_) return;
  const auto on_failed = handlers_->on_failed;
  on_failed(Error(ECONNRESET, "the client has closed the connection"));
}

void WireStream::send(Bytes head, std::shared_ptr<const Bytes> body) {
  if (body) head.insert(head.end(), body->begin(), body->end());
  if (on_send) on_send(head);
  const auto start = rpc::peek_message(head);
  const auto withheld = wire_->network.callbacks_withheld_until(wire_->client);
  if (start && start->type == rpc::MessageType::kCall && withheld && steady_now() < *withheld) return;
  wire_->to_client(std::move(head));
}

void WireStream::resume() {
  paused_ = false;
  loop_.post([self = shared_from_this()] { self->deliver(); });
}

void WireStream::close() {
  if (!handlers_) return;
  handlers_.reset();
  wire_->close_server();
}

}  // namespace pnfsrdma::sim
