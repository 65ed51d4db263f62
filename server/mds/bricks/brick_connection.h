// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shared/brick/client.h"
#include "shared/brick/control.h"

namespace pnfsrdma::mds {

// The way to one brick's control socket; destroying it ends the connection. Made by whoever knows sockets:
// main(), or a test. Control loop only.
class BrickConnection {
 public:
  virtual ~BrickConnection() = default;
  virtual brick::Control& control() = 0;
  // BrickClient::silence().
  virtual Milliseconds silence() const = 0;
};

// `address` as in BrickRecord. The events come from the loop, never from inside the call.
using ConnectBrick = std::function<std::unique_ptr<BrickConnection>(const std::string& address,
                                                                    brick::BrickClient::Events events)>;

}  // namespace pnfsrdma::mds
