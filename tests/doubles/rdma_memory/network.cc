// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/rdma_memory/network.h"

#include <cerrno>

namespace pnfsrdma::rdma::memory {

Result<std::string> Network::add_listener(const std::string& address, OnRequest on_request) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return fail(EINVAL, "\"" + address + "\" is not host:port");
  }
  auto state = state_.lock();
  std::string name = address;
  if (address.substr(colon) == ":0") {
    do {
      name = address.substr(0, colon + 1) + std::to_string(state->next_port++);
    } while (state->listeners.contains(name));
  }
  auto [entry, added] =
      state->listeners.try_emplace(name, std::make_shared<OnRequest>(std::move(on_request)));
  if (!added) return fail(EADDRINUSE, "listening on " + name);
  return name;
}

void Network::remove_listener(const std::string& address) {
  state_.lock()->listeners.erase(address);
}

Result<std::shared_ptr<Network::OnRequest>> Network::find_listener(const std::string& address) {
  auto state = state_.lock();
  auto found = state->listeners.find(address);
  if (found == state->listeners.end()) return fail(ECONNREFUSED, "nobody listens on " + address);
  return found->second;
}

}  // namespace pnfsrdma::rdma::memory
