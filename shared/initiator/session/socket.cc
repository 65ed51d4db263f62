// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/socket.h"

#include <fmt/format.h>

#include "shared/initiator/session/options.h"
#include "shared/initiator/session/rdma_socket.h"
#include "shared/initiator/session/tcp_socket.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::initiator {

Result<std::shared_ptr<SessionSocket>> SessionSocket::connect(const SessionOptions& options,
                                                              std::string_view host, Milliseconds timeout,
                                                              size_t record_bytes_max, Counters& counters,
                                                              DeferredDestruction& destruction) {
  const bool is_v6 = host.find(':') != std::string_view::npos;
  TRY_ASSIGN(const rpc::SocketAddress address,
             rpc::SocketAddress::parse(is_v6 ? fmt::format("[{}]:{}", host, options.port)
                                             : fmt::format("{}:{}", host, options.port)));
  if (options.rdma_transports.empty()) {
    return SessionTcpSocket::connect(address, timeout, record_bytes_max, counters);
  }
  return SessionRdmaSocket::connect(options.rdma_transports, address, timeout, record_bytes_max, counters,
                                    destruction);
}

}  // namespace pnfsrdma::initiator
