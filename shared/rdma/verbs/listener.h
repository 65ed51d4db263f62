// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shared/base/sync.h"
#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/device.h"
#include "shared/rdma/verbs/event_channel.h"

namespace pnfsrdma::rdma::verbs {

// A listening identifier and the one thread that takes connection requests from it. Requests that arrive on
// another device (a wildcard address listens on all) are rejected.
class VerbsListener final : public Listener {
 public:
  using OnRequest = std::function<void(std::unique_ptr<ConnectionRequest>)>;

  // EADDRNOTAVAIL when the address is not one of this device's; EADDRINUSE.
  static Result<std::unique_ptr<Listener>> make(std::shared_ptr<Device> device, const std::string& address,
                                                OnRequest on_request);
  ~VerbsListener() override;
  std::string address() const override { return address_; }

 private:
  VerbsListener(std::shared_ptr<Device> device, ConnectionEvents events, Identifier identifier,
                std::string address, FileDescriptor stop, OnRequest on_request);
  void run();
  void take(const ConnectionEvent& event);

  const std::shared_ptr<Device> device_;
  const OnRequest on_request_;
  const std::string address_;
  ConnectionEvents events_;
  Identifier identifier_;
  FileDescriptor stop_;
  Thread thread_;  // last: uses all of the above
};

}  // namespace pnfsrdma::rdma::verbs
