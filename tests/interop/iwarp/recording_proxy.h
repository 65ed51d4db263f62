// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <thread>

#include "shared/base/bytes.h"
#include "shared/base/owned.h"

namespace pnfsrdma::rdma::iwarp::testing {

// Stands between two ends of one TCP connection and writes what passes as a packet capture (pcap, raw IPv4),
// so that no privilege to capture is needed and nothing is lost.
class RecordingProxy {
 public:
  RecordingProxy(const std::string& target, const std::string& file)
      : target_(target), file_(file, std::ios::binary) {
    listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 1);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~RecordingProxy() { finish(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Waits until both ends have hung up and the file is complete.
  void finish() {
    if (thread_.joinable()) thread_.join();
    file_.close();
  }

 private:
  static constexpr uint16_t kClientPort = 40000;
  static constexpr uint16_t kServerPort = 20051;
  static constexpr uint8_t kSyn = 0x02, kAck = 0x10, kPush = 0x08, kFin = 0x01;

  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void run() {
    FileDescriptor client(::accept(listener_.get(), nullptr, nullptr));
    FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(static_cast<uint16_t>(std::stoi(target_.substr(target_.rfind(':') + 1))));
    if (!client || ::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      return;
    write_header();
    write_packet(0, kSyn, {});
    write_packet(1, kSyn | kAck, {});
    write_packet(0, kAck, {});
    const int sockets[2] = {client.get(), server.get()};
    bool open[2] = {true, true};
    while (open[0] || open[1]) {
      pollfd entries[2] = {{open[0] ? sockets[0] : -1, POLLIN, 0}, {open[1] ? sockets[1] : -1, POLLIN, 0}};
      if (::poll(entries, 2, 20000) <= 0) return;
      for (int side = 0; side < 2; ++side) {
        if (entries[side].revents != 0) open[side] = forward(side, sockets[side], sockets[1 - side]);
      }
    }
  }

  bool forward(int side, int from, int to) {
    Bytes bytes(16384);
    ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      write_packet(side, kFin | kAck, {});
      ::shutdown(to, SHUT_WR);
      return false;
    }
    bytes.resize(static_cast<size_t>(count));
    write_packet(side, kPush | kAck, bytes);
    for (size_t sent = 0; sent < bytes.size();) {
      ssize_t step = ::send(to, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (step <= 0) return false;
      sent += static_cast<size_t>(step);
    }
    return true;
  }

  template <typename T>
  void put_little(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) file_.put(static_cast<char>(value >> (8 * i)));
  }
  template <typename T>
  void put_big(T value) {
    for (size_t i = sizeof(T); i-- > 0;) file_.put(static_cast<char>(value >> (8 * i)));
  }

  void write_header() {
    put_little(uint32_t{0xa1b2c3d4});
    put_little(uint16_t{2});
    put_little(uint16_t{4});
    put_little(uint32_t{0});
    put_little(uint32_t{0});
    put_little(uint32_t{262144});
    put_little(uint32_t{101});  // LINKTYPE_RAW
  }

  void write_packet(int side, uint8_t flags, ByteSpan payload) {
    const auto total = static_cast<uint32_t>(40 + payload.size());
    put_little(time_ / 1000000);
    put_little(time_++ % 1000000);
    put_little(total);
    put_little(total);
    put_big(uint32_t{0x45000000 | total});  // version, header length, total length
    put_big(uint32_t{0});
    put_big(uint32_t{0x40060000});  // TTL 64, TCP
    put_big(uint32_t{side == 0 ? 0x7f000001u : 0x7f000002u});
    put_big(uint32_t{side == 0 ? 0x7f000002u : 0x7f000001u});
    put_big(side == 0 ? kClientPort : kServerPort);
    put_big(side == 0 ? kServerPort : kClientPort);
    put_big(sequence_[side]);
    put_big((flags & kAck) != 0 ? sequence_[1 - side] : uint32_t{0});
    put_big(uint32_t{0x50000000u | uint32_t{flags} << 16 | 0xffff});
    put_big(uint32_t{0});
    file_.write(reinterpret_cast<const char*>(payload.data()), static_cast<std::streamsize>(payload.size()));
    sequence_[side] += static_cast<uint32_t>(payload.size()) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
  }

  const std::string target_;
  std::ofstream file_;
  FileDescriptor listener_;
  uint16_t port_ = 0;
  uint32_t time_ = 0;
  uint32_t sequence_[2] = {1000, 5000};
  std::thread thread_;
};

}  // namespace pnfsrdma::rdma::iwarp::testing
