// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <sstream>

#include "cli/doctor/checks.h"
#include "shared/rpc/dial.h"

namespace pnfsrdma::cli {
namespace {

constexpr uint32_t kCapNetBindService = 10;
constexpr const char* kFix =
    "mount as root of the host, or on the server: pnfsrdma export edit PATH --insecure --all-squash (the "
    "server then ignores which user a client claims to be)";

// user_namespaces(7): in the first one every user is himself.
bool in_user_namespace(const Host& host) {
  const auto map = host.read("/proc/self/uid_map");
  if (!map) return false;
  std::istringstream words(*map);
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  words >> inside >> outside >> count;
  return inside != 0 || outside != 0 || count != UINT32_MAX;
}

bool has_capability(const Host& host, uint32_t capability) {
  const std::string status = host.read("/proc/self/status").value_or("");
  const size_t line = status.find("CapEff:");
  if (line == std::string::npos) return false;
  uint64_t effective = 0;
  std::istringstream(status.substr(line + sizeof "CapEff:" - 1)) >> std::hex >> effective;
  return (effective >> capability & 1) != 0;
}

bool may_bind_reserved(const Host& host) {
  if (host.user() == 0 || has_capability(host, kCapNetBindService)) return true;
  const auto first = host.read("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  uint32_t port = 1024;
  if (first) std::istringstream(*first) >> port;
  return port <= rpc::kReservedPortFirst;
}

}  // namespace

Findings check_source_port(const Host& host) {
  if (in_user_namespace(host)) {
    return {{"source port", Verdict::kWarning,
             "root of this container is an ordinary user of the host: servers see its calls come from ports "
             "above 1023 and refuse them, unless the export is insecure",
             kFix}};
  }
  if (!may_bind_reserved(host)) {
    return {{"source port", Verdict::kWarning,
             "this user may not call from a port below 1024: servers refuse his mounts, unless the export is "
             "insecure",
             kFix}};
  }
  return {
      {"source port", Verdict::kOk,
       "calls come from a port below 1024, as exports that are not insecure require (behind NAT the server "
       "may see another)",
       ""}};
}

}  // namespace pnfsrdma::cli
