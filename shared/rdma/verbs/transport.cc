// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/transport.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "shared/rdma/verbs/address.h"
#include "shared/rdma/verbs/connector.h"
#include "shared/rdma/verbs/device.h"
#include "shared/rdma/verbs/domain.h"
#include "shared/rdma/verbs/listener.h"
#include "shared/rdma/verbs/region.h"

namespace pnfsrdma::rdma::verbs {
namespace {

using InterfaceList = Owned<ifaddrs, freeifaddrs>;

class VerbsTransport final : public Transport {
 public:
  explicit VerbsTransport(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return "verbs"; }
  std::string device() const override { return device_->name(); }
  std::shared_ptr<ProtectionDomain> make_protection_domain() override {
    return std::make_shared<VerbsDomain>(device_);
  }
  // A software responder would call the flusher; here the device flushes by itself or not at all.
  Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain> domain,
                                                  MutableByteSpan memory, Access access, Flusher*) override {
    TRY_ASSIGN(auto own, own_domain(std::move(domain), *device_));
    return verbs::register_region(std::move(own), memory, access);
  }
  Result<Connected> connect(const std::string& address, std::shared_ptr<ProtectionDomain> domain,
                            const ConnectOptions& options) override {
    TRY_ASSIGN(auto own, own_domain(std::move(domain), *device_));
    return verbs::connect(std::move(own), address, options);
  }
  Result<std::unique_ptr<Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<ConnectionRequest>)> on_request) override {
    return VerbsListener::make(device_, address, std::move(on_request));
  }

 private:
  const std::shared_ptr<Device> device_;
};

bool worth_trying(const ifaddrs& interface) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP)
    return false;
  if (interface.ifa_addr->sa_family == AF_INET) return true;
  if (interface.ifa_addr->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr)->sin6_addr);
}

// An address rdma_cm can bind to a device is one of a device.
bool has_device(rdma_event_channel* channel, Address address) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(channel, &raw, nullptr, RDMA_PS_TCP) != 0) return false;
  const Identifier identifier(raw);
  return rdma_bind_addr(raw, address.get()) == 0 && raw->verbs != nullptr;
}

}  // namespace

Result<std::vector<std::unique_ptr<Transport>>> make_transports() {
  TRY_ASSIGN(const auto devices, Device::open_all());
  std::vector<std::unique_ptr<Transport>> transports;
  for (const auto& device : devices) transports.push_back(std::make_unique<VerbsTransport>(device));
  return transports;
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* first = nullptr;
  auto events = ConnectionEvents::make();
  if (!events || ::getifaddrs(&first) != 0) return addresses;
  const InterfaceList owned(first);
  for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
    if (!worth_trying(*interface)) continue;
    const auto address = Address::from(interface->ifa_addr);
    if (!address || std::ranges::find(addresses, address->host()) != addresses.end()) continue;
    if (has_device(events->get(), *address)) addresses.push_back(address->host());
  }
  return addresses;
}

}  // namespace pnfsrdma::rdma::verbs
