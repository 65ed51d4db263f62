// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace pnfsrdma::rpc {

// Where a stream socket listens or connects: IPv4, IPv6, or a path in the file system (Unix). A value.
class SocketAddress {
 public:
  SocketAddress() = default;

  // "127.0.0.1:2049", "[::1]:2049", "host.example:2049", ":2049" (any address), "/run/x.sock" or
  // "unix:/run/x.sock". A port missing is `default_port`. Looks names up (getaddrinfo(3)), so may block: not
  // for the control loop unless the host is numeric.
  static Result<SocketAddress> parse(std::string_view text, uint16_t default_port = 0);
  // The host in such a text, as it stands there: "host.example", "::1"; empty where there is none.
  static std::string host_in(std::string_view text);
  static Result<SocketAddress> unix_path(std::string_view path);
  // What the kernel says: getsockname(2), getpeername(2).
  static Result<SocketAddress> local_of(int fd);
  static Result<SocketAddress> peer_of(int fd);

  int family() const { return storage_.ss_family; }
  bool is_unix() const { return family() == AF_UNIX; }
  // Of an IPv4 or IPv6 address; 0 else.
  uint16_t port() const;
  // "127.0.0.1", "::1", or the path.
  std::string host() const;
  // What parse() takes.
  std::string to_string() const;

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace pnfsrdma::rpc
