// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse-client/mount_options.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::fuse_client {

using Transports = std::vector<std::shared_ptr<rdma::Transport>>;

// What the data can travel over on this host, best first: RDMA devices that take our buffers, then iWARP in
// user space, as far as `wanted` lets them. A device that is there and not used is said in the log; with
// kRdma it is the error. Raises the soft limit of locked memory to the hard one. `random` outlives the
// transports.
Result<Transports> make_transports(DataTransports wanted, Random& random);

// A mount uses at most initiator::kTransportsMax transports, iWARP among them: RDMA devices beyond that are
// left out, and named in the log.
void leave_out_surplus(Transports& devices);

// "verbs/iwarp"
std::string names_of(const Transports& transports);

}  // namespace pnfsrdma::fuse_client
