// SPDX-License-Identifier: Apache-2.0
#include "shared/client/transports.h"

#include <gtest/gtest.h>

#include "shared/base/log_observer.h"
#include "shared/initiator/brick/buffer.h"
#include "tests/unit/rdma/named_transport.h"

namespace pnfsrdma::client {
namespace {

std::string said_of(size_t devices, Transports& transports) {
  for (size_t i = 0; i < devices; ++i)
    transports.push_back(
        std::make_shared<rdma::testing::NamedTransport>("verbs", "mlx5_" + std::to_string(i)));
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
}  // namespace pnfsrdma::client
