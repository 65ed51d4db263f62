// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <map>
#include <sstream>

#include "cli/doctor/checks.h"

namespace pnfsrdma::cli {
namespace {

struct Wanted {
  uint16_t port;
  const char* what_for;
  const char* program;  // ours that listens there; the name as /proc/PID/comm cuts it (15 characters)
  const char* setting;
};
constexpr std::array kWanted = {
    Wanted{2049, "NFS over TCP", "pnfsrdma-mdsd", "\"listen\" of the MDS"},
    Wanted{20049, "NFS over RDMA (iWARP in user space)", "pnfsrdma-mdsd", "\"rdma_listen\" of the MDS"},
    Wanted{20051, "data by iWARP in user space", "pnfsrdma-brickd", "\"data.listen\" of the brick"},
    Wanted{20052, "data by iWARP adapters", "pnfsrdma-brickd", "\"data.rdma\" of the brick"},
    Wanted{8443, "console and REST API", "pnfsrdma-mdsd", "\"console\" of the MDS"},
};

// Inode numbers of listening TCP sockets by port, out of /proc/net/tcp or tcp6 (proc(5)).
void add_listeners(const std::string& text, std::map<uint16_t, std::string>& inodes) {
  constexpr const char* kListening = "0A";
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // titles
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    const size_t colon = local.rfind(':');
    if (state != kListening || colon == std::string::npos) continue;
    uint16_t port = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), port, 16);
    inodes.emplace(port, inode);
  }
}

struct Owner {
  std::string process;  // its number
  std::string name;
};

// Whose socket it is; none: nobody's that we may look at, or the kernel's own, which no process has open.
Owner owner_of(const Host& host, const std::string& inode) {
  const std::string wanted = "socket:[" + inode + "]";
  for (const std::string& process : host.list("/proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string folder = "/proc/" + process + "/fd/";
    for (const std::string& descriptor : host.list(folder)) {
      if (host.link(folder + descriptor) != wanted) continue;
      return {process, host.read("/proc/" + process + "/comm").value_or("?")};
    }
  }
  return {};
}

Finding port(const Host& host, const Wanted& wanted, const std::map<uint16_t, std::string>& inodes) {
  Finding finding{fmt::format("port {}", wanted.port), Verdict::kOk,
                  fmt::format("free ({})", wanted.what_for), ""};
  const auto found = inodes.find(wanted.port);
  if (found == inodes.end()) return finding;
  const Owner owner = owner_of(host, found->second);
  if (owner.name == wanted.program) {
    finding.what = fmt::format("{} ({}) listens: {}", owner.name, owner.process, wanted.what_for);
  } else if (owner.name.empty() && host.user() != 0) {
    finding.verdict = Verdict::kWarning;
    finding.what =
        fmt::format("taken by a process that this user cannot see; wanted for {}", wanted.what_for);
    finding.fix = "ask as root: sudo pnfsrdma doctor";
  } else if (owner.name.empty()) {
    finding.verdict = Verdict::kProblem;
    finding.what = fmt::format("taken, but by no visible process: the kernel's NFS server? Wanted for {}",
                               wanted.what_for);
    finding.fix = fmt::format("systemctl disable --now nfs-server   (or another port: {})", wanted.setting);
  } else {
    finding.verdict = Verdict::kProblem;
    finding.what = fmt::format("taken by {} ({}); wanted for {}", owner.name, owner.process, wanted.what_for);
    finding.fix = fmt::format("end that program, or set another port: {}", wanted.setting);
  }
  return finding;
}

}  // namespace

Findings check_ports(const Host& host) {
  std::map<uint16_t, std::string> inodes;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    if (const auto text = host.read(path)) add_listeners(*text, inodes);
  }
  Findings findings;
  for (const Wanted& wanted : kWanted) findings.push_back(port(host, wanted, inodes));
  return findings;
}

}  // namespace pnfsrdma::cli
