// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/doctor/host.h"

namespace pnfsrdma::cli {

// This host.
class SystemHost final : public Host {
 public:
  Result<std::string> read(const std::string& path) const override;
  std::vector<std::string> list(const std::string& path) const override;
  std::string link(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool may_open(const std::string& path) const override;
  uint32_t mode(const std::string& path) const override;
  uint32_t user() const override;
  std::string kernel_release() const override;
  Limit locked_memory() const override;
  std::vector<InterfaceAddress> addresses() const override;
  ClockState clock() const override;
  std::string program(std::string_view name) const override;
  std::string library(const std::string& name) const override;
  Result<std::vector<std::string>> open_rdma_devices() const override;
  Result<std::string> run(const std::vector<std::string>& words) const override;
  Result<> reach(const std::string& address, Milliseconds patience) const override;
};

}  // namespace pnfsrdma::cli
