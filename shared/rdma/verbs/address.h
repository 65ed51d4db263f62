// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::rdma::verbs {

// An IPv4 or IPv6 address with a port, as librdmacm takes it: a value.
class Address {
 public:
  // "192.0.2.1:20052", "[2001:db8::1]:20052", "host:20052" (the first address of the name). EINVAL.
  static Result<Address> parse(const std::string& text);
  // EAFNOSUPPORT for anything but IPv4 and IPv6.
  static Result<Address> from(const sockaddr* address);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  // "192.0.2.1", without port and brackets.
  std::string host() const;
  uint16_t port() const;
  // As parse() takes it.
  std::string to_string() const;
  // 0.0.0.0 or ::
  bool wildcard() const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace pnfsrdma::rdma::verbs
