// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/device_path.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pnfsrdma::initiator {
namespace {

// A transport that has nothing but its name.
class NamedTransport final : public rdma::Transport {
 public:
  explicit NamedTransport(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
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
  const std::string name_;
};

TransportDomain named(const char* name) {
  return {std::make_shared<NamedTransport>(name), nullptr};
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
