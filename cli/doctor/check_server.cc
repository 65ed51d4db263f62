// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>

#include "cli/doctor/checks.h"
#include "shared/nfs4/limits.h"

namespace pnfsrdma::cli {
namespace {

constexpr Milliseconds kPatience = std::chrono::seconds(5);

// "host" -> "host:2049"; "[::1]" and "host:port" keep what they have.
std::string with_port(const std::string& server) {
  const size_t close = server.rfind(']');
  const size_t colon = server.find(':', close == std::string::npos ? 0 : close);
  return colon == std::string::npos ? fmt::format("{}:{}", server, nfs4::kPort) : server;
}

std::string fix_for(int number, const std::string& address) {
  if (number == ECONNREFUSED)
    return "start pnfsrdma-mdsd there; its \"listen\" must name an address clients reach";
  if (number == ETIMEDOUT) return "let the firewalls on the way pass TCP to " + address;
  if (number == ENXIO || number == EAGAIN)
    return "check the spelling; getent hosts NAME shows what this host knows";
  return "check the route: ip route get ADDRESS";
}

}  // namespace

Findings check_server(const Host& host, const std::string& server) {
  const std::string address = with_port(server);
  const auto reached = host.reach(address, kPatience);
  if (reached) return {{"server", Verdict::kOk, address + " accepts connections", ""}};
  return {
      {"server", Verdict::kProblem, reached.error().to_string(), fix_for(reached.error().number(), address)}};
}

}  // namespace pnfsrdma::cli
