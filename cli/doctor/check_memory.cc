// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "cli/doctor/checks.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

// A mount pins about 1 MiB per FUSE thread (16 of them) and buffers of its connections.
constexpr uint64_t kMountNeeds = uint64_t{64} << 20;
constexpr int kCapIpcLock = 14;

// CAP_IPC_LOCK in the effective set: the kernel then ignores the limit.
bool may_lock_anything(const Host& host) {
  const auto status = host.read("/proc/self/status");
  if (!status) return false;
  constexpr std::string_view kKey = "CapEff:\t";
  const size_t at = status->find(kKey);
  if (at == std::string::npos) return false;
  uint64_t capabilities = 0;
  const char* const begin = status->data() + at + kKey.size();
  std::from_chars(begin, status->data() + status->size(), capabilities, 16);
  return (capabilities >> kCapIpcLock & 1) != 0;
}

Finding locked_memory(const Host& host) {
  const Limit limit = host.locked_memory();
  const bool devices = !host.list("/sys/class/infiniband").empty();
  if (!limit.soft) return {"memlock", Verdict::kOk, "unlimited", ""};
  const std::string soft = bytes_text(double(*limit.soft));
  if (may_lock_anything(host)) return {"memlock", Verdict::kOk, soft + ", and CAP_IPC_LOCK lifts it", ""};
  // The mount raises the soft limit to the hard one by itself.
  if (!limit.hard || *limit.hard >= kMountNeeds) {
    const std::string hard = limit.hard ? bytes_text(double(*limit.hard)) : "unlimited";
    return {"memlock", Verdict::kOk, fmt::format("{}, and {} are available: enough for a mount", soft, hard),
            ""};
  }
  return {"memlock", devices ? Verdict::kProblem : Verdict::kWarning,
          fmt::format("{}; RDMA pins memory: a mount needs {}, a brick the whole pool", soft,
                      bytes_text(double(kMountNeeds))),
          "ulimit -l unlimited (LimitMEMLOCK=infinity in a systemd unit; for users: a line '* - memlock "
          "unlimited' "
          "in /etc/security/limits.d/90-pnfsrdma.conf)"};
}

uint64_t meminfo(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    std::istringstream words(line.substr(key.size() + 1));
    uint64_t value = 0;
    words >> value;
    return value;
  }
  return 0;
}

Finding huge_pages(const Host& host) {
  const auto text = host.read("/proc/meminfo");
  if (!text) return {"huge pages", Verdict::kWarning, text.error().to_string(), "mount -t proc proc /proc"};
  const uint64_t total = meminfo(*text, "HugePages_Total");
  const uint64_t free = meminfo(*text, "HugePages_Free");
  const uint64_t kibibytes = meminfo(*text, "Hugepagesize");
  const std::string size = bytes_text(double(kibibytes) * 1024);
  if (total == 0) {
    return {"huge pages", Verdict::kOk,
            fmt::format("none reserved ({} each); only a pool on hugetlbfs needs them", size), ""};
  }
  if (free == 0) {
    return {"huge pages", Verdict::kWarning, fmt::format("all {} of {} are in use", total, size),
            fmt::format("echo {} >/proc/sys/vm/nr_hugepages", total * 2)};
  }
  return {"huge pages", Verdict::kOk, fmt::format("{} of {} free ({} each)", free, total, size), ""};
}

}  // namespace

Findings check_memory(const Host& host) {
  return {locked_memory(host), huge_pages(host)};
}

}  // namespace pnfsrdma::cli
