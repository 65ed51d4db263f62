// SPDX-License-Identifier: Apache-2.0
#include "shared/client/connect_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <expected>
#include <utility>

#include "shared/base/random.h"
#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::client {
namespace {

using initiator::Persistence;

// Options that only set something.
bool take_flag(std::string_view name, ConnectOptions& options) {
  struct Flag {
    std::string_view name;
    Persistence persistence;
  };
  static constexpr std::array kFlags = {Flag{"hard", Persistence::kHard}, Flag{"soft", Persistence::kSoft},
                                        Flag{"softerr", Persistence::kSoftError}};
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return options.persistence = flag.persistence, true;
  }
  return false;
}

Result<bool> take_version(const Option& option, ConnectOptions& options) {
  if (option.name == "minorversion") {
    TRY_ASSIGN(options.minor_version, number(option, 1, 2));
    return true;
  }
  if (option.name != "vers" && option.name != "nfsvers") return false;
  TRY(one_of(option, {"4", "4.1", "4.2"}, "this client speaks 4.1 and 4.2"));
  options.minor_version = *option.value == "4.1" ? 1 : 2;
  return true;
}

// Options that this client can only do in one way: said so instead of ignoring another wish.
Result<bool> take_fixed(const Option& option, ConnectOptions& options) {
  if (option.name == "proto") {
    TRY(one_of(option, {"tcp", "tcp6", "rdma", "rdma6", "iwarp"},
               "tcp (calls by TCP), rdma (calls and data by an RDMA device or not at all) or iwarp (both by "
               "iWARP in user space)"));
    const bool device = option.value->starts_with("rdma");
    options.calls_by_rdma = device || *option.value == "iwarp";
    options.data_transports = device ? DataTransports::kRdma : DataTransports::kTcp;
  } else if (option.name == "sec") {
    TRY(one_of(option, {"sys"}, "only sec=sys is supported"));
  } else if (option.name == "xprtsec") {
    TRY(one_of(option, {"none"}, "only xprtsec=none is supported"));
  } else if (option.name == "require_durability") {
    TRY(one_of(option, {"persistent", "power", "none"}, "persistent or none"));
    options.require_persistent = *option.value != "none";
  } else {
    return false;
  }
  return true;
}

Result<bool> take_number(const Option& option, ConnectOptions& options) {
  if (option.name == "port") {
    TRY_ASSIGN(const uint32_t port, number(option, 1, 65535));
    options.port = static_cast<uint16_t>(port);
    options.port_given = true;
  } else if (option.name == "timeo") {
    TRY_ASSIGN(options.timeout_deciseconds, number(option, 1, 36000));
  } else if (option.name == "retrans") {
    TRY_ASSIGN(options.retransmissions, number(option, 0, 100));
  } else if (option.name == "layoutstats_timer") {
    TRY_ASSIGN(options.layoutstats_timer_seconds, number(option, 0, 3600));
  } else if (option.name == "flush_after") {
    TRY_ASSIGN(options.flush_after_seconds, number(option, 0, 3600));
  } else {
    return false;
  }
  return true;
}

// The first host of `rest`, which then begins behind it, or what is missing.
std::expected<std::string, std::string_view> take_host(std::string_view& rest) {
  const bool bracket = rest.starts_with('[');
  const size_t begin = bracket ? 1 : 0;
  const size_t end = rest.find_first_of(bracket ? "]" : ",:");
  if (end == std::string_view::npos)
    return std::unexpected(bracket ? "no ']' behind the address" : "no ':' between server and path");
  if (end == begin) return std::unexpected("no server");
  std::string host(rest.substr(begin, end - begin));
  rest.remove_prefix(bracket ? end + 1 : end);
  return host;
}

}  // namespace

Result<> parse_source(std::string_view source, ConnectOptions& options) {
  const auto wrong = [&](std::string_view why) {
    return fail(EINVAL, fmt::format("{}: {}; write server:/path, server:port:/path, [v6-address]:/path or, "
                                    "where one server has several addresses, server,server:/path",
                                    source, why));
  };
  std::vector<std::string> hosts;
  std::string_view rest = source;
  do {
    if (!hosts.empty()) rest.remove_prefix(1);
    const auto host = take_host(rest);
    if (!host) return wrong(host.error());
    hosts.push_back(*host);
  } while (rest.starts_with(','));
  if (!rest.starts_with(':')) return wrong("no ':' behind the server");
  rest.remove_prefix(1);
  options.host = std::move(hosts.front());
  options.other_hosts.assign(hosts.begin() + 1, hosts.end());
  if (!rest.starts_with('/')) {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return wrong("the path does not begin with '/'");
    TRY_ASSIGN(const uint32_t port, number({"port", rest.substr(0, colon)}, 1, 65535));
    options.port = static_cast<uint16_t>(port);
    options.port_given = true;
    rest.remove_prefix(colon + 1);
  }
  if (!rest.starts_with('/')) return wrong("the path does not begin with '/'");
  options.path = rest;
  return {};
}

Result<bool> take_connect_option(const Option& option, ConnectOptions& options) {
  if (!option.value && take_flag(option.name, options)) return true;
  TRY_ASSIGN(bool taken, take_version(option, options));
  if (!taken) {
    TRY_ASSIGN(taken, take_fixed(option, options));
  }
  if (!taken) {
    TRY_ASSIGN(taken, take_number(option, options));
  }
  return taken;
}

initiator::SessionOptions session_options(const ConnectOptions& options, std::string owner) {
  initiator::SessionOptions session;
  session.host = options.host;
  session.other_hosts = options.other_hosts;
  // nfs(5): RPC-over-RDMA has a port of its own.
  session.port = options.calls_by_rdma && !options.port_given ? rpc_rdma::kPort : options.port;
  session.owner = std::move(owner);
  session.persistence = options.persistence;
  session.timeout = Milliseconds(options.timeout_deciseconds * 100);
  session.retransmissions = options.retransmissions;
  session.minor_version = options.minor_version;
  return session;
}

std::string make_owner() {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  std::array<std::byte, 16> random;
  SystemRandom().fill(random);
  return fmt::format("pnfsrdma-{}-{}", host.data(), to_hex(random));
}

}  // namespace pnfsrdma::client
