// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/device.h"

#include <cerrno>
#include <chrono>

#include "shared/rdma/iwarp/transport.h"
#include "shared/rdma/verbs/transport.h"

namespace pnfsrdma::bench {

Result<std::unique_ptr<rdma::Transport>> open_transport(const std::string& name, Random& random) {
  if (name == "iwarp") return rdma::iwarp::make_transport({}, random);
  TRY_ASSIGN(auto devices, rdma::verbs::make_transports());
  if (devices.empty()) return fail(ENODEV, "no RDMA device");
  return std::move(devices.front());
}

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace pnfsrdma::bench
