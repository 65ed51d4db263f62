// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shared/base/result.h"
#include "shared/rpc/socket_address.h"

// Universal addresses (RFC 5665, 5.2.3.3 and 5.2.3.4): the host, then the port's two bytes, all with dots:
// "127.0.0.1.78.82" is 127.0.0.1:20050, "::1.8.1" is [::1]:2049.
namespace pnfsrdma::rpc {

// Of an IPv4 or IPv6 address; empty else.
std::string to_universal_address(const SocketAddress& address);
// "tcp" or "tcp6"; with `rdma` "rdma" or "rdma6" (RFC 8166, 9).
std::string netid_of(const SocketAddress& address, bool rdma = false);

// EINVAL if it is not a universal address with a numeric host. Never blocks.
Result<SocketAddress> from_universal_address(std::string_view text);

}  // namespace pnfsrdma::rpc
