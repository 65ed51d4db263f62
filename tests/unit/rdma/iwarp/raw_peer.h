// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "shared/base/crc32c.h"
#include "shared/base/random.h"
#include "shared/rdma/iwarp/mpa_frame.h"
#include "shared/rdma/iwarp/negotiation.h"
#include "shared/rdma/iwarp/tcp_stream.h"
#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/iwarp/wire_format.h"

namespace pnfsrdma::rdma::iwarp::testing {

inline SteadyTime soon(Milliseconds in = Milliseconds(5000)) {
  return std::chrono::steady_clock::now() + in;
}

// A peer made by hand: bytes on a socket.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : socket_(*connect_tcp(address, 0, soon())) {}

  void send(ByteSpan bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
  }
  // Up to `count` bytes; fewer when the other side hangs up or says nothing for long.
  Bytes receive(size_t count) {
    Bytes bytes(count);
    size_t have = 0;
    while (have < count && wait_for_events(socket_.get(), POLLIN, soon())) {
      ssize_t got = ::recv(socket_.get(), bytes.data() + have, count - have, 0);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }
  bool hung_up() { return receive(1).empty(); }

  MpaFrame handshake(bool crc, bool flush = true) {
    send(encode_mpa_frame(make_request({.read_depth = 4, .native_flush = flush}, 2, crc, {})));
    return receive_reply();
  }
  MpaFrame receive_reply() {
    Bytes bytes = receive(kMpaHeader);
    if (bytes.size() != kMpaHeader) return {};
    auto header = decode_mpa_header(bytes, true);
    EXPECT_TRUE(header.has_value());
    Bytes body = receive(header->length);
    return *decode_mpa_body(*std::move(header), body);
  }
  // One FPDU off the wire, length word first, without padding and CRC.
  Bytes receive_frame() {
    Bytes frame = receive(2);
    if (frame.size() < 2) return {};
    size_t ulpdu = load_big_endian<uint16_t>(frame.data());
    Bytes rest = receive(ulpdu + padding_of(ulpdu) + kCrcSize);
    rest.resize(std::min(rest.size(), ulpdu));
    frame.insert(frame.end(), rest.begin(), rest.end());
    return frame;
  }

 private:
  FileDescriptor socket_;
};

// Pads a frame and puts its CRC behind it.
inline Bytes seal(Bytes frame, uint32_t crc_error = 0) {
  size_t ulpdu = load_big_endian<uint16_t>(frame.data());
  frame.resize(kLengthSize + ulpdu + padding_of(ulpdu));
  uint32_t crc = crc32c(frame) ^ crc_error;
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<std::byte>(crc >> (8 * i)));
  return frame;
}
inline Bytes tagged(Message message, bool last, uint32_t stag, uint64_t offset, ByteSpan payload) {
  Bytes frame(kTaggedHeader);
  encode_tagged(frame.data(), message, last, stag, offset, static_cast<uint32_t>(payload.size()));
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}
inline Bytes untagged(Message message, bool last, uint32_t queue, uint32_t sequence, uint32_t offset,
                      ByteSpan payload) {
  Bytes frame(kUntaggedHeader);
  encode_untagged(frame.data(), message, last, queue, sequence, offset,
                  static_cast<uint32_t>(payload.size()));
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}
inline Bytes read_request(uint32_t sequence, const ReadRequest& request) {
  Bytes frame(kReadRequestSize);
  encode_read_request(frame.data(), sequence, request);
  return frame;
}
inline Bytes flush_request(uint32_t sequence, const FlushRequest& request) {
  Bytes frame(kFlushRequestSize);
  encode_flush_request(frame.data(), sequence, request);
  return frame;
}

class NullFlusher final : public Flusher {
 public:
  Result<> flush(MutableByteSpan) override { return {}; }
};

// A real target with memory exposed to the peer and a thread that serves it.
class Target {
 public:
  explicit Target(const Options& options = {}) : transport(make_transport(options, random)) {
    domain = transport->make_protection_domain();
    region = *transport->register_region(
        domain, memory,
        Access::kLocalWrite | Access::kRemoteRead | Access::kRemoteWrite | Access::kRemoteFlush, &flusher);
    read_only = *transport->register_region(domain, memory, Access::kRemoteRead);
    inbox_region = *transport->register_region(domain, inbox, Access::kLocalWrite);
    listener = *transport->listen("127.0.0.1:0", [this](auto request) {
      std::lock_guard lock(mutex_);
      auto accepted = request->accept(domain, as_bytes("hello"),
                                      {.read_depth = 4, .native_flush = true, .atomic_write = true});
      if (!accepted) return;
      queue_pair = *std::move(accepted);
      EXPECT_TRUE(queue_pair->post_receive(1, inbox_region->slice(0, 64)));
      server_ = std::thread([this] {
        Completion none[4];
        while (queue_pair->connected()) {
          queue_pair->wait(soon(std::chrono::milliseconds(200)));
          queue_pair->poll(none);
        }
      });
    });
  }
  ~Target() {
    listener.reset();
    if (queue_pair) queue_pair->fail();
    if (server_.joinable()) server_.join();
  }

  // The listener's thread makes it: this waits until it has.
  QueuePair& accepted() {
    for (;; std::this_thread::yield()) {
      std::lock_guard lock(mutex_);
      if (queue_pair) return *queue_pair;
    }
  }

  SystemRandom random;
  NullFlusher flusher;
  Bytes memory = Bytes(1 << 20, std::byte{0x11});
  Bytes inbox = Bytes(4096);
  std::unique_ptr<Transport> transport;
  std::shared_ptr<ProtectionDomain> domain;
  std::unique_ptr<Region> region, read_only, inbox_region;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<QueuePair> queue_pair;

 private:
  std::mutex mutex_;
  std::thread server_;
};

}  // namespace pnfsrdma::rdma::iwarp::testing
