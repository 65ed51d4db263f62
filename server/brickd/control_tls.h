// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/brickd/config.h"
#include "shared/base/result.h"
#include "shared/rpc_tls/endpoint.h"

namespace pnfsrdma::brick {

// The certificates of control.tcp, as the configuration wants them. Control loop only.
class ControlTls {
 public:
  // EINVAL: a file cannot be used; says which, and why.
  static Result<ControlTls> open(const Config& config);
  // Reads the files again, those that are named now. An error changes nothing. Whether there is TLS at all only a
  // restart changes.
  Result<> reload(const Config& config);

  // Null: control.tcp is open to anybody.
  const std::shared_ptr<rpc_tls::Endpoint>& endpoint() const { return endpoint_; }

 private:
  std::shared_ptr<rpc_tls::Endpoint> endpoint_;
};

}  // namespace pnfsrdma::brick
