// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/transports.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "shared/base/log_observer.h"
#include "shared/initiator/buffer.h"

namespace pnfsrdma::fuse_client {
namespace {

// An RDMA device that has nothing but its name.
class NamedDevice final : public rdma::Transport {
 public:
  explicit NamedDevice(std::string device) : device_(std::move(device)) {}
  std::string name() const override { return "verbs"; }
  std::string device() const override { return device_; }
  std::shared_ptr<rdma::ProtectionDomain> make_protection_domain() override { return nullptr; }
  Result<std::unique_ptr<rdma::Region>> register_region(std::shared_ptr<rdma::ProtectionDomain>,
                                                        MutableByteSpan, rdma::Access,
                                                        rdma::Flusher*) override {
    return fail(EOPNOTSUPP, "name only");
  }
  Result<rdma::Connected> connect(const std::string&, std::shared_ptr<rdma::ProtectionDomain>,
                                  const rdma::ConnectOptions&) override {
    return fail(EOPNOTSUPP, "name only");
  }
  Result<std::unique_ptr<rdma::Listener>> listen(
      const std::string&, std::function<void(std::unique_ptr<rdma::ConnectionRequest>)>) override {
    return fail(EOPNOTSUPP, "name only");
  }

 private:
  const std::string device_;
};

std::string said_of(size_t devices, Transports& transports) {
  for (size_t i = 0; i < devices; ++i)
    transports.push_back(std::make_shared<NamedDevice>("mlx5_" + std::to_string(i)));
  std::string said;
  observe_log([&](LogLevel level, std::string_view, std::string_view text) {
    if (level == LogLevel::kWarning) said += text;
  });
  leave_out_surplus(transports);
  observe_log(nullptr);
  return said;
}

TEST(Transports, AHostOfTenDevicesUsesThemAll) {
  Transports transports;
  EXPECT_EQ(said_of(10, transports), "");
  EXPECT_EQ(transports.size(), 10u);
}

TEST(Transports, DevicesThatAreLeftOutAreNamed) {
  Transports transports;
  const std::string said = said_of(initiator::kTransportsMax + 1, transports);
  EXPECT_EQ(transports.size(), initiator::kTransportsMax - 1) << "iwarp has room";
  EXPECT_NE(said.find("devices-left-out"), std::string::npos) << said;
  EXPECT_NE(said.find("mlx5_15,mlx5_16"), std::string::npos) << said;
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
