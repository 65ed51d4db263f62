// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>

#include "shared/base/event_loop.h"
#include "shared/base/owned.h"
#include "shared/rpc/message_stream.h"
#include "shared/rpc/record.h"
#include "shared/rpc/tls.h"

namespace pnfsrdma::rpc {

// RPC messages over a stream socket (TCP or Unix) with record marking, as they are or within a TLS session.
//
// System calls: one recv(2) brings many small records; all output of one turn of the loop goes in one
// sendmsg(2), mark, head and body not joined. With TLS: one recv(2) brings up to 64 KiB of ciphertext, one send(2)
// takes as much. Encryption and decryption copy; besides them a byte is copied once more on its way in, and on its way
// out where a TLS record is made of several pieces.
class RecordStream final : public MessageStream, public std::enable_shared_from_this<RecordStream> {
 public:
  // Takes a connected stream socket.
  RecordStream(EventLoop& loop, FileDescriptor socket, size_t record_bytes_max);

  void start(Handlers handlers) override;
  void send(Bytes head, std::shared_ptr<const Bytes> body) override;
  bool start_tls(std::unique_ptr<TlsSession> session) override;
  const TlsPeer* tls_peer() const override { return secured_ ? &tls_->peer() : nullptr; }
  Result<> reassess_tls() const override { return secured_ ? tls_->reassess() : Result<>(); }
  void limit_reads(size_t bytes) override { read_bytes_max_ = bytes; }
  void count_in(std::shared_ptr<MemoryAccount> memory) override { memory_ = std::move(memory); }
  void pause() override;
  void resume() override;
  void close() override;
  // With what keeping them costs: a reply of 28 bytes takes 180. A message counts until all of it has gone.
  size_t unsent_bytes() const override {
    return outgoing_held_ + (tls_ ? tls_->output().size() - output_sent_ : 0);
  }
  size_t received_bytes() const override;
  bool mid_message() const override;
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
    // The object itself, what its bytes have reserved, and the allocations.
    size_t held() const {
      return sizeof(Outgoing) + head.capacity() + (body ? body->capacity() + sizeof(Bytes) : 0) + 3 * 16;
    }
  };

  bool is_open() const { return static_cast<bool>(socket_); }
  void handle_events(uint32_t events);
  void read_at_own_turn();
  void read_some(size_t long_share);
  void read_records(size_t long_share);
  void read_rest();
  // Input goes through the session, whose handshake is not over.
  bool in_handshake() const { return tls_ && !secured_; }
  void shake_hands();
  ssize_t receive(MutableByteSpan space, size_t& budget);
  ssize_t receive_protected(MutableByteSpan space, size_t& budget);
  void deliver_records();
  void deliver_next_turn();
  void flush();
  bool has_output() const;
  size_t flush_once();
  size_t flush_protected();
  Result<> encrypt_some();
  ByteSpan rest_of_front() const;
  void consume(size_t sent);
  void end_tls();
  void update_interest();
  void fail_with(Error reason);
  // Of a stream that is closed.
  struct Unsent {
    EventLoop& loop;
    std::deque<Outgoing> messages;
    size_t held;
    std::function<void(size_t left)> tell;  // may be empty
  };
  static void free_in_turns(const std::shared_ptr<Unsent>& unsent);

  EventLoop& loop_;
  FileDescriptor socket_;
  std::weak_ptr<const Handlers> handlers_;  // the loop owns them
  std::string peer_;
  bool is_unix_ = false;
  RecordReader reader_;

  std::deque<Outgoing> outgoing_;
  size_t sent_of_front_ = 0;  // bytes of outgoing_.front() the kernel has, or the session
  size_t outgoing_held_ = 0;
  size_t read_bytes_max_ = SIZE_MAX;
  std::shared_ptr<MemoryAccount> memory_;  // null: nobody counts
  bool flush_scheduled_ = false;
  bool wants_write_ = false;
  bool delivering_ = false;
  bool delivery_scheduled_ = false;
  bool paused_ = false;
  bool waits_for_turn_ = false;
  uint32_t interest_ = 0;

  std::unique_ptr<TlsSession> tls_;  // null: none
  bool secured_ = false;             // its handshake is over
  size_t output_sent_ = 0;           // bytes of its output the kernel has
  bool drained_ = false;             // the last receive() has left nothing in the socket, nor in the session
  std::optional<Error> failure_;     // why receive() has failed, if errno does not say it
};

}  // namespace pnfsrdma::rpc
