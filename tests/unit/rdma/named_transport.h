// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <functional>
#include <memory>
#include <string>

#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::testing {

// A transport that has nothing but its name, and perhaps its device's.
class NamedTransport final : public Transport {
 public:
  explicit NamedTransport(std::string name, std::string device = {})
      : name_(std::move(name)), device_(std::move(device)) {}
  std::string name() const override { return name_; }
  std::string device() const override { return device_; }
  std::shared_ptr<ProtectionDomain> make_protection_domain() override { return nullptr; }
  Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain>, MutableByteSpan, Access,
                                                  Flusher*) override {
    return fail(EOPNOTSUPP, "name only");
  }
  Result<Connected> connect(const std::string&, std::shared_ptr<ProtectionDomain>,
                            const ConnectOptions&) override {
    return fail(EOPNOTSUPP, "name only");
  }
  Result<std::unique_ptr<Listener>> listen(const std::string&,
                                           std::function<void(std::unique_ptr<ConnectionRequest>)>) override {
    return fail(EOPNOTSUPP, "name only");
  }

 private:
  const std::string name_, device_;
};

}  // namespace pnfsrdma::rdma::testing
