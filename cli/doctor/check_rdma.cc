// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "cli/doctor/checks.h"

namespace pnfsrdma::cli {
namespace {

constexpr const char* kDevices = "/sys/class/infiniband/";
// RDMA FLUSH is in rdma-core from here on.
constexpr int kFlushVersion = 45;
// RoCE moves at most 4096 bytes a packet, and needs room for its headers.
constexpr int kRoceMtu = 4200;

std::string text_in(const Host& host, const std::string& path) {
  return host.read(path).value_or("");
}

// "libibverbs.so.1.14.44.0" is of rdma-core 44.0; 0: it cannot be told.
int rdma_core_version(const std::string& file) {
  const size_t at = file.rfind("libibverbs.so.");
  if (at == std::string::npos) return 0;
  std::string rest = file.substr(at + std::string_view("libibverbs.so.").size());
  for (int i = 0; i < 2; ++i) {
    const size_t dot = rest.find('.');
    if (dot == std::string::npos) return 0;
    rest.erase(0, dot + 1);
  }
  int version = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), version);
  return version;
}

Finding libraries(const Host& host) {
  const std::string file = host.library("libibverbs.so.1");
  if (file.empty()) {
    return {"rdma-core", Verdict::kWarning, "libibverbs.so.1 is missing: no RDMA device can be used",
            "apt-get install rdma-core ibverbs-providers"};
  }
  const int version = rdma_core_version(file);
  if (version == 0) return {"rdma-core", Verdict::kOk, file, ""};
  Finding finding{"rdma-core", Verdict::kOk, fmt::format("version {}", version), ""};
  finding.what +=
      version >= kFlushVersion
          ? "; has RDMA FLUSH"
          : fmt::format("; no RDMA FLUSH before {} (the commit message is used: one round trip as well)",
                        kFlushVersion);
  return finding;
}

// The network interfaces behind a port's GIDs; of iWARP and IPoIB too.
std::set<std::string> interfaces_of(const Host& host, const std::string& device, const std::string& port) {
  std::set<std::string> names;
  const std::string folder = kDevices + device + "/ports/" + port + "/gid_attrs/ndevs/";
  for (const std::string& index : host.list(folder)) {
    // Reading an empty entry is EINVAL.
    if (const auto name = host.read(folder + index); name && !name->empty()) names.insert(*name);
  }
  for (const std::string& name : host.list(kDevices + device + "/device/net")) names.insert(name);
  return names;
}

std::string gid_types_of(const Host& host, const std::string& device, const std::string& port) {
  std::set<std::string> types;
  const std::string folder = kDevices + device + "/ports/" + port + "/gid_attrs/types/";
  for (const std::string& index : host.list(folder)) {
    if (const auto type = host.read(folder + index); type && !type->empty()) types.insert(*type);
  }
  std::string all;
  for (const std::string& type : types) all += (all.empty() ? "" : "/") + type;
  return all;
}

// What a port lacks, worst first: a verdict and what to do, or nothing.
void judge_port(const Host& host, const std::string& device, const std::string& port, Finding& finding) {
  const std::string folder = kDevices + device + "/ports/" + port + "/";
  const std::string state = text_in(host, folder + "state");  // "4: ACTIVE"
  const std::string layer = text_in(host, folder + "link_layer");
  const std::set<std::string> interfaces = interfaces_of(host, device, port);
  const std::string interface = interfaces.empty() ? "INTERFACE" : *interfaces.begin();
  std::string addresses;
  for (const InterfaceAddress& each : host.addresses()) {
    if (interfaces.contains(each.interface)) addresses += (addresses.empty() ? "" : ", ") + each.address;
  }
  finding.what =
      fmt::format("{}{}, {}", layer, layer == "Ethernet" ? " " + gid_types_of(host, device, port) : "",
                  state.empty() ? "state unknown" : state.substr(std::min(state.size(), size_t{3})));
  if (!interfaces.empty()) finding.what += " on " + interface;
  finding.what += addresses.empty() ? ", no IP address" : ", " + addresses;
  if (state.find("ACTIVE") == std::string::npos) {
    finding.verdict = Verdict::kProblem;
    finding.fix = layer == "InfiniBand" ? "check the cable; a subnet manager must run (opensm)"
                                        : fmt::format("ip link set dev {} up", interface);
  } else if (addresses.empty()) {
    finding.verdict = Verdict::kProblem;
    finding.what += ": no connection can be routed to it";
    finding.fix = fmt::format("ip address add 192.0.2.1/24 dev {}   (an address of your network)", interface);
  }
}

void judge_mtu(const Host& host, const std::string& device, const std::string& port, Finding& finding) {
  const std::string folder = kDevices + device + "/ports/" + port + "/";
  if (finding.verdict != Verdict::kOk || text_in(host, folder + "link_layer") != "Ethernet") return;
  for (const std::string& interface : interfaces_of(host, device, port)) {
    const std::string text = text_in(host, "/sys/class/net/" + interface + "/mtu");
    int mtu = 0;
    std::from_chars(text.data(), text.data() + text.size(), mtu);
    if (mtu == 0) continue;
    finding.what += fmt::format(", MTU {}", mtu);
    if (mtu < kRoceMtu) {
      finding.verdict = Verdict::kWarning;
      finding.what += ": packets of 1 KiB where RoCE could move 4";
      finding.fix =
          fmt::format("ip link set dev {} mtu 9000   (at both ends and on the switches between)", interface);
    }
    return;
  }
}

Findings devices(const Host& host) {
  Findings findings;
  for (const std::string& device : host.list(kDevices)) {
    for (const std::string& port : host.list(kDevices + device + "/ports")) {
      Finding finding{"rdma " + device + (port == "1" ? "" : "/" + port)};
      judge_port(host, device, port, finding);
      judge_mtu(host, device, port, finding);
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

// Whether a mount would get at them: opens them as it does.
Finding use_of_devices(const Host& host) {
  if (!host.exists("/dev/infiniband/rdma_cm")) {
    return {"rdma access", Verdict::kProblem, "there is no /dev/infiniband/rdma_cm",
            "modprobe -a rdma_ucm ib_uverbs"};
  }
  const auto opened = host.open_rdma_devices();
  if (opened) return {"rdma access", Verdict::kOk, fmt::format("{} can be used", opened->size()), ""};
  return {"rdma access", Verdict::kProblem, opened.error().to_string(),
          "chmod 666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs*   (rdma-core's udev rules do that)"};
}

}  // namespace

Findings check_rdma(const Host& host) {
  Findings findings = {libraries(host)};
  Findings found = devices(host);
  if (found.empty()) {
    findings.push_back(
        {"rdma device", Verdict::kWarning, "none: data goes by iWARP in user space",
         "with an Ethernet card: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev INTERFACE"});
    return findings;
  }
  for (Finding& finding : found) findings.push_back(std::move(finding));
  findings.push_back(use_of_devices(host));
  return findings;
}

}  // namespace pnfsrdma::cli
