// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <map>
#include <set>

#include "cli/doctor/host.h"

namespace pnfsrdma::cli {

// A host out of texts: a healthy Debian 12 without RDMA until a test says otherwise.
class FakeHost final : public Host {
 public:
  std::map<std::string, std::string> files = {
      {"/proc/meminfo",
       "MemTotal: 1 kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB"},
      {"/proc/cpuinfo", "flags : fpu clflush clwb"},
      {"/proc/self/status", "Name:\tpnfsrdma\nCapEff:\t0000000000000000"},
      {"/dev/fuse", ""},
      {"/sbin/mount.pnfsrdma", ""},
      {"/etc/fuse.conf", "# nothing"},
  };
  std::map<std::string, std::string> links;
  std::map<std::string, uint32_t> modes = {{"/usr/bin/fusermount3", 04755}};
  std::map<std::string, std::string, std::less<>> programs = {{"fusermount3", "/usr/bin/fusermount3"}};
  std::set<std::string> closed;  // files this user may not open
  uint32_t uid = 0;
  std::string release = "6.1.0-18-amd64";
  Limit memlock{uint64_t{8} << 20, std::nullopt};
  std::vector<InterfaceAddress> interface_addresses;
  ClockState clock_state{true, std::chrono::milliseconds(12)};
  std::string libibverbs = "/usr/lib/libibverbs.so.1.14.44.0";
  Result<std::vector<std::string>> rdma_devices = std::vector<std::string>{};
  Result<> reached;
  Result<std::string> output;

  Result<std::string> read(const std::string& path) const override {
    const auto found = files.find(path);
    if (found == files.end()) return fail(ENOENT, "open " + path);
    return found->second;
  }
  std::vector<std::string> list(const std::string& path) const override {
    const std::string folder = path.ends_with('/') ? path : path + "/";
    std::set<std::string> names;
    const auto add = [&](const std::string& name) {
      if (name.starts_with(folder))
        names.insert(name.substr(folder.size(), name.find('/', folder.size()) - folder.size()));
    };
    for (const auto& [name, text] : files) add(name);
    for (const auto& [name, target] : links) add(name);
    return {names.begin(), names.end()};
  }
  std::string link(const std::string& path) const override {
    const auto found = links.find(path);
    return found == links.end() ? std::string() : found->second;
  }
  bool exists(const std::string& path) const override { return files.contains(path); }
  bool may_open(const std::string& path) const override { return exists(path) && !closed.contains(path); }
  uint32_t mode(const std::string& path) const override {
    const auto found = modes.find(path);
    return found == modes.end() ? 0 : found->second;
  }
  uint32_t user() const override { return uid; }
  std::string kernel_release() const override { return release; }
  Limit locked_memory() const override { return memlock; }
  std::vector<InterfaceAddress> addresses() const override { return interface_addresses; }
  ClockState clock() const override { return clock_state; }
  std::string program(std::string_view name) const override {
    const auto found = programs.find(name);
    return found == programs.end() ? std::string() : found->second;
  }
  std::string library(const std::string&) const override { return libibverbs; }
  Result<std::vector<std::string>> open_rdma_devices() const override { return rdma_devices; }
  Result<std::string> run(const std::vector<std::string>& words) const override {
    asked_program = words;
    return output;
  }
  Result<> reach(const std::string& address, Milliseconds) const override {
    asked_address = address;
    return reached;
  }

  mutable std::string asked_address;
  mutable std::vector<std::string> asked_program;
};

}  // namespace pnfsrdma::cli
