// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/device_path.h"

#include <gtest/gtest.h>

#include "tests/unit/rdma/named_transport.h"

namespace pnfsrdma::initiator {
namespace {

TransportDomain named(const char* name) {
  return {std::make_shared<rdma::testing::NamedTransport>(name), nullptr};
}

const std::vector<nfs4::DevicePath> kPaths = {{"tcp", "192.0.2.1.78.83"},
                                              {"rdma", "192.0.2.2.78.84"},
                                              {"rdma6", "2001:db8::2.78.84"},
                                              {"rdma", "nonsense"}};

TEST(DevicePath, TheBestTransportGoesFirstWhateverTheServersOrder) {
  const std::vector<TransportDomain> transports = {named("verbs"), named("iwarp")};
  const auto usable = usable_paths(kPaths, transports);
  ASSERT_EQ(usable.size(), 3u);
  EXPECT_EQ(usable[0].transport, 0u);
  EXPECT_EQ(usable[0].address, "192.0.2.2:20052");
  EXPECT_EQ(usable[1].transport, 0u);
  EXPECT_EQ(usable[1].address, "[2001:db8::2]:20052");
  EXPECT_EQ(usable[2].transport, 1u);
  EXPECT_EQ(usable[2].address, "192.0.2.1:20051");
}

TEST(DevicePath, AnAddressIsOneHoweverManyDevicesMayLeadThere) {
  const std::vector<TransportDomain> transports = {named("verbs"), named("verbs"), named("verbs"),
                                                   named("iwarp")};
  const auto usable = usable_paths(kPaths, transports);
  ASSERT_EQ(usable.size(), 7u);
  EXPECT_EQ(addresses_of(usable, transports), 3u);
  EXPECT_EQ(addresses_of(std::span(usable).subspan(5), transports), 2u);
  EXPECT_EQ(addresses_of(std::span(usable).subspan(6), transports), 1u);
}

TEST(DevicePath, AnAddressThatHasFailedIsNotTriedByTheOtherDevices) {
  const std::vector<TransportDomain> transports = {named("verbs"), named("verbs"), named("iwarp")};
  auto usable = usable_paths(kPaths, transports);
  ASSERT_EQ(usable.size(), 5u);
  drop_address(usable, 0, transports);
  ASSERT_EQ(usable.size(), 4u);
  EXPECT_EQ(usable[0].address, "192.0.2.2:20052");
  EXPECT_EQ(usable[1].address, "[2001:db8::2]:20052");
  EXPECT_EQ(usable[2].address, "[2001:db8::2]:20052");
  EXPECT_EQ(usable[2].transport, 1u);
  drop_address(usable, 1, transports);
  ASSERT_EQ(usable.size(), 3u);
  EXPECT_EQ(usable[2].address, "192.0.2.1:20051");
}

TEST(DevicePath, AnRdmaAddressThatHasFailedIsStillTriedByIwarp) {
  const std::vector<nfs4::DevicePath> paths = {{"rdma", "192.0.2.1.78.83"}, {"tcp", "192.0.2.1.78.83"}};
  const std::vector<TransportDomain> transports = {named("verbs"), named("verbs"), named("iwarp")};
  auto usable = usable_paths(paths, transports);
  ASSERT_EQ(usable.size(), 3u);
  EXPECT_EQ(addresses_of(usable, transports), 2u);  // half of the time is left for iWARP
  drop_address(usable, 0, transports);
  ASSERT_EQ(usable.size(), 2u);
  EXPECT_EQ(usable[1].transport, 2u);
}

TEST(DevicePath, EveryDeviceMayLeadToAnRdmaAddress) {
  const std::vector<TransportDomain> transports = {named("verbs"), named("verbs")};
  EXPECT_EQ(usable_paths(kPaths, transports).size(), 4u);
}

TEST(DevicePath, WithoutADeviceOnlyTcpIsLeft) {
  const std::vector<TransportDomain> transports = {named("iwarp")};
  const auto usable = usable_paths(kPaths, transports);
  ASSERT_EQ(usable.size(), 1u);
  EXPECT_EQ(usable[0].address, "192.0.2.1:20051");
}

std::string why(const std::vector<TransportDomain>& transports, size_t chosen,
                const std::vector<nfs4::DevicePath>& offered = kPaths) {
  return why_chosen(usable_paths(offered, transports), chosen, offered, transports,
                    Error(ECONNREFUSED, "connect"));
}

TEST(WhyChosen, TheFirstPathOfTheBestTransportNeedsNoExcuse) {
  EXPECT_EQ(why({named("verbs"), named("iwarp")}, 0), "the best transport of both sides");
  // The other address of the same transport is as good.
  EXPECT_EQ(why({named("verbs"), named("iwarp")}, 1), "the best transport of both sides");
}

TEST(WhyChosen, AFallBackNamesWhatFailed) {
  EXPECT_EQ(why({named("verbs"), named("iwarp")}, 2),
            "verbs 192.0.2.2:20052 failed: connect: Connection refused");
}

TEST(WhyChosen, WhichSideLacksTheBetterTransportIsSaid) {
  EXPECT_EQ(why({named("iwarp")}, 0), "the brick offers verbs, this mount has iwarp only");
  EXPECT_EQ(why({named("verbs"), named("iwarp")}, 0, {kPaths[0]}), "the brick offers no path by verbs");
  EXPECT_EQ(why({named("iwarp")}, 0, {kPaths[0]}), "the best transport of both sides");
}

}  // namespace
}  // namespace pnfsrdma::initiator
