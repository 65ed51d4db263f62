// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::client {

// proto=: what the data may travel over. The best that works: an RDMA device, else iWARP in user space.
enum class DataTransports : uint8_t { kBest, kRdma, kTcp };

using Transports = std::vector<std::shared_ptr<rdma::Transport>>;

// What the data can travel over on this host, best first: RDMA devices that take our buffers, then iWARP in
// user space, as far as `wanted` lets them. A device that is there and not used is said in the log; with
// kRdma it is the error. Raises the soft limit of locked memory to the hard one. `random` outlives the
// transports.
Result<Transports> make_transports(DataTransports wanted, Random& random);

// A client uses at most initiator::kTransportsMax transports, iWARP among them: RDMA devices beyond that are
// left out, and named in the log.
void leave_out_surplus(Transports& devices);

// "verbs/iwarp"
std::string names_of(const Transports& transports);

}  // namespace pnfsrdma::client
