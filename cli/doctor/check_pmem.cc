// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>

#include "cli/doctor/checks.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

constexpr const char* kDaxDevices = "/sys/bus/dax/devices/";
constexpr const char* kNamespaces = "/sys/bus/nd/devices/";

uint64_t number_in(const Host& host, const std::string& path) {
  const auto text = host.read(path);
  uint64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

Finding device_dax(const Host& host, const std::string& name) {
  const std::string node = "/dev/" + name;
  const std::string size = bytes_text(double(number_in(host, kDaxDevices + name + "/size")));
  Finding finding{"dax " + name, Verdict::kOk, fmt::format("{}, {}", node, size), ""};
  const std::string driver = host.link(kDaxDevices + name + "/driver");
  if (driver.ends_with("/kmem")) {
    finding.verdict = Verdict::kWarning;
    finding.what += "; it is used as ordinary memory (system-ram), not as a pool";
    finding.fix = "daxctl reconfigure-device --mode=devdax " + name;
  } else if (!host.exists(node)) {
    finding.verdict = Verdict::kProblem;
    finding.what += "; there is no device node";
    finding.fix = "modprobe device_dax; udevadm trigger";
  } else if (!host.may_open(node)) {
    finding.verdict = Verdict::kWarning;
    finding.what += "; this user may not open it";
    finding.fix = "run the brick as a user that may, e.g. chgrp pnfsrdma " + node + "; chmod 660 " + node;
  }
  return finding;
}

// A namespace that is not device DAX: its pages cannot be pinned for RDMA.
Findings other_namespaces(const Host& host) {
  Findings findings;
  for (const std::string& name : host.list(kNamespaces)) {
    if (!name.starts_with("namespace")) continue;
    const auto mode = host.read(kNamespaces + name + "/mode");
    const auto size = number_in(host, kNamespaces + name + "/size");
    if (!mode || size == 0 || *mode == "dax" || *mode == "devdax") continue;
    findings.push_back(
        {"pmem " + name, Verdict::kWarning,
         fmt::format("{} in mode {}: RDMA devices cannot pin its pages; such a pool serves iWARP alone",
                     bytes_text(double(size)), *mode),
         "ndctl create-namespace -f -e " + name + " -m devdax   (destroys what is on it)"});
  }
  return findings;
}

Finding flush_instructions(const Host& host) {
  const auto text = host.read("/proc/cpuinfo");
  for (const char* name : {"clwb", "clflushopt", "clflush"}) {
    if (text && text->find(std::string(" ") + name) != std::string::npos) {
      return {"cpu flush", Verdict::kOk, std::string(name) + " flushes PMEM by cache line", ""};
    }
  }
  return {"cpu flush", Verdict::kOk, "no x86 flush instruction listed; libpmem2 uses what the CPU has", ""};
}

}  // namespace

Findings check_pmem(const Host& host) {
  Findings findings;
  for (const std::string& name : host.list(kDaxDevices)) findings.push_back(device_dax(host, name));
  if (findings.empty()) {
    findings.push_back({"device dax", Verdict::kOk,
                        "none; only a brick needs it (a pool may be a file: durable, but over iWARP alone)",
                        ""});
  }
  for (Finding& finding : other_namespaces(host)) findings.push_back(std::move(finding));
  findings.push_back(flush_instructions(host));
  return findings;
}

}  // namespace pnfsrdma::cli
