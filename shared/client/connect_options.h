// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"
#include "shared/client/option.h"
#include "shared/client/transports.h"
#include "shared/initiator/persistence.h"
#include "shared/initiator/session/options.h"

namespace pnfsrdma::client {

// Which server, and how to deal with it: what a mount and a program that uses the library say in the same
// words, those of nfs(5).
struct ConnectOptions {
  std::string host;
  std::vector<std::string> other_hosts;  // of the same server, in the order in which they are asked
  std::string path = "/";
  uint16_t port = 2049;
  bool port_given = false;
  bool calls_by_rdma = false;  // proto=rdma or iwarp: RPC-over-RDMA
  DataTransports data_transports = DataTransports::kBest;
  initiator::Persistence persistence = initiator::Persistence::kHard;
  uint32_t timeout_deciseconds = 600;
  uint32_t retransmissions = 2;
  uint32_t minor_version = 2;
  // What was done by layouts is told to the server so often; 0: never.
  uint32_t layoutstats_timer_seconds = 60;
  uint32_t flush_after_seconds = 5;  // what nobody has flushed is flushed then; 0: never
  bool require_persistent = false;   // require_durability=persistent
};

// "host:/path", "host:port:/path", "[::1]:/path", and "host,host,...:/path" where one server has several -> hosts,
// port, path. EINVAL says what is missing.
Result<> parse_source(std::string_view source, ConnectOptions& options);

// False: it is none of these. EINVAL names the option and what it may be.
Result<bool> take_connect_option(const Option& option, ConnectOptions& options);

// The session's share of them. Who makes the transports fills in rdma_transports.
initiator::SessionOptions session_options(const ConnectOptions& options, std::string owner);

// "pnfsrdma-<host name>-<128 random bits>": the client's name at the server for the life of its session.
std::string make_owner();

}  // namespace pnfsrdma::client
