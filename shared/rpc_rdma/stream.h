// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "shared/base/event_loop.h"
#include "shared/rpc/message_stream.h"
#include "shared/rpc_rdma/endpoint.h"

namespace pnfsrdma::rpc_rdma {

// An endpoint in an EventLoop, as the stream of an rpc::Connection. What one turn of the loop queues goes out
// with one doorbell at its end.
class Stream final : public rpc::MessageStream, public std::enable_shared_from_this<Stream> {
 public:
  // Shared because nobody's end may hold up the loop: whoever made the endpoint says where it ends.
  Stream(EventLoop& loop, std::shared_ptr<Endpoint> endpoint);
  ~Stream() override;

  void start(Handlers handlers) override;
  void send(Bytes head, std::shared_ptr<const Bytes> body) override;
  void forget_call(uint32_t xid) override;
  void forget_reply(uint32_t xid) override;
  void pause() override { paused_ = true; }
  void resume() override;
  void close() override;
  size_t unsent_bytes() const override { return endpoint_ ? endpoint_->waiting_bytes() : 0; }
  const std::string& peer() const override { return peer_; }
  std::string transport() const override { return transport_; }
  bool is_rdma() const override { return true; }

 private:
  void progress();
  void progress_next_turn();
  void flush();
  void deliver();
  void deliver_at_turn_end();
  void report_sent();
  void fail_with(Error reason);

  EventLoop& loop_;
  std::shared_ptr<Endpoint> endpoint_;  // null: closed
  int fd_ = -1;
  std::string peer_;
  std::string transport_;
  std::weak_ptr<const Handlers> handlers_;  // the loop owns them
  std::deque<Bytes> messages_;              // come and not delivered
  size_t unsent_before_ = 0;
  bool flush_scheduled_ = false;
  bool progress_scheduled_ = false;
  bool delivering_ = false;
  bool paused_ = false;
};

}  // namespace pnfsrdma::rpc_rdma
