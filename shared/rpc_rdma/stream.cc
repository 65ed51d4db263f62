// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/stream.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "shared/base/log.h"
#include "shared/rpc/message.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc_rdma {

Stream::Stream(EventLoop& loop, std::shared_ptr<Endpoint> endpoint)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      fd_(endpoint_->queue_pair().fd()),
      peer_(endpoint_->queue_pair().peer()),
      transport_("rdma-" + std::string(endpoint_->transport().name())) {}

Stream::~Stream() = default;

void Stream::start(Handlers handlers) {
  const auto kept = std::make_shared<const Handlers>(std::move(handlers));
  handlers_ = kept;
  loop_.watch(fd_, EPOLLIN, [self = shared_from_this(), kept](uint32_t) { self->progress(); });
  // What came before anybody watched.
  loop_.at_turn_end([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->progress();
  });
}

void Stream::progress() {
  if (!endpoint_) return;
  std::vector<Bytes> messages;
  const Result<bool> more = endpoint_->progress_a_turn(messages);
  for (Bytes& message : messages) messages_.push_back(std::move(message));
  deliver();
  if (!more) return fail_with(more.error());
  report_sent();
  if (*more) progress_next_turn();
}

void Stream::progress_next_turn() {
  if (std::exchange(progress_scheduled_, true)) return;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->progress_scheduled_ = false;
    self->progress();
  });
}

void Stream::deliver() {
  const auto handlers = handlers_.lock();
  if (!handlers || delivering_) return;
  delivering_ = true;
  while (endpoint_ && !paused_ && !messages_.empty()) {
    Bytes message = std::move(messages_.front());
    messages_.pop_front();
    handlers->on_message(std::move(message));
  }
  delivering_ = false;
}

void Stream::deliver_at_turn_end() {
  loop_.at_turn_end([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->deliver();
  });
}

void Stream::resume() {
  paused_ = false;
  if (!messages_.empty()) deliver_at_turn_end();
}

void Stream::send(Bytes head, std::shared_ptr<const Bytes> body) {
  if (!endpoint_) return;
  const auto start = rpc::peek_message(head);
  if (const auto sent = endpoint_->send(std::move(head), std::move(body)); !sent) {
    log_warning("rpc-rdma", "message-refused peer={} why={}", peer_, sent.error().to_string());
    if (!start || start->type != rpc::MessageType::kCall) return;
    // Whoever called hears it as from a peer that could not take the call.
    const auto refusal = rpc::ReplyHeader::refusal(start->xid, rpc::AcceptStatus::kSystemError);
    messages_.push_back(xdr::encode_to_bytes(refusal));
    return deliver_at_turn_end();
  }
  if (std::exchange(flush_scheduled_, true)) return;
  loop_.at_turn_end([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void Stream::flush() {
  if (!endpoint_) return;
  unsent_before_ = endpoint_->waiting_bytes();
  if (const auto flushed = endpoint_->flush(); !flushed) return fail_with(flushed.error());
  // SENDs may have completed in there, which no readable fd will tell: their buffers are for what still
  // waits.
  if (endpoint_->waiting_bytes() > 0) return progress();
  report_sent();
}

void Stream::report_sent() {
  if (!endpoint_) return;
  const size_t now = endpoint_->waiting_bytes();
  const auto handlers = handlers_.lock();
  if (now < std::exchange(unsent_before_, now) && handlers) handlers->on_sent();
}

void Stream::forget_call(uint32_t xid) {
  if (endpoint_) endpoint_->forget_call(xid);
}

void Stream::forget_reply(uint32_t xid) {
  if (endpoint_) endpoint_->forget_reply(xid);
}

void Stream::close() {
  if (!endpoint_) return;
  const auto self = shared_from_this();
  if (!handlers_.expired()) loop_.unwatch(fd_);
  handlers_.reset();
  messages_.clear();
  // Not from inside of it: close() may be called while it delivers.
  loop_.at_turn_end([endpoint = std::move(endpoint_)] { endpoint->queue_pair().fail(); });
}

void Stream::fail_with(Error reason) {
  if (!endpoint_) return;
  const auto self = shared_from_this();
  const auto handlers = handlers_.lock();
  close();
  if (handlers) handlers->on_failed(std::move(reason));
}

}  // namespace pnfsrdma::rpc_rdma
