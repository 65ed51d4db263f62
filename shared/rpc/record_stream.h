// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>

#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/rpc/message_stream.h"
#include "shared/rpc/record.h"

namespace pnfsrdma::rpc {

// RPC messages over a stream socket (TCP or Unix) with record marking.
//
// System calls: one recv(2) brings many small records; all output of one turn of the loop goes in one
// sendmsg(2), mark, head and body not joined.
class RecordStream final : public MessageStream, public std::enable_shared_from_this<RecordStream> {
 public:
  // Takes a connected stream socket.
  RecordStream(EventLoop& loop, FileDescriptor socket, size_t record_bytes_max);

  void start(Handlers handlers) override;
  void send(Bytes head, std::shared_ptr<const Bytes> body) override;
  void pause() override;
  void resume() override;
  void close() override;
  // With what keeping them costs: a reply of 28 bytes takes 180.
  size_t unsent_bytes() const override { return unsent_bytes_ + outgoing_.size() * kOutgoingCost; }
  const std::string& peer() const override { return peer_; }
  std::string transport() const override { return is_unix_ ? "unix" : "tcp"; }
  bool is_unix() const override { return is_unix_; }
  std::optional<ucred> peer_credentials() const override;

 private:
  struct Outgoing {
    std::array<std::byte, kMarkSize> mark;
    Bytes head;
    std::shared_ptr<const Bytes> body;

    size_t size() const { return kMarkSize + head.size() + (body ? body->size() : 0); }
  };
  // The object itself, what encode_head() reserves, and two allocations.
  static constexpr size_t kOutgoingCost = sizeof(Outgoing) + 64 + 2 * 24;

  bool is_open() const { return static_cast<bool>(socket_); }
  void handle_events(uint32_t events);
  void read_some();
  void deliver_records();
  void flush();
  bool flush_once();
  void consume(size_t sent);
  void update_interest();
  void fail_with(Error reason);

  EventLoop& loop_;
  FileDescriptor socket_;
  std::weak_ptr<const Handlers> handlers_;  // the loop owns them
  std::string peer_;
  bool is_unix_ = false;
  RecordReader reader_;

  std::deque<Outgoing> outgoing_;
  size_t sent_of_front_ = 0;  // bytes of outgoing_.front() the kernel has
  size_t unsent_bytes_ = 0;
  bool flush_scheduled_ = false;
  bool wants_write_ = false;
  bool delivering_ = false;
  bool paused_ = false;
  uint32_t interest_ = 0;
};

}  // namespace pnfsrdma::rpc
