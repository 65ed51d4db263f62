// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "shared/initiator/brick/buffer.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::initiator {

// A way to a device that one of our transports can go.
struct UsablePath {
  size_t transport = 0;  // index in the data path's list
  std::string address;   // "host:port"
};
// The paths we can use (those whose universal address is none are not), best transport first, in the server's
// order within one transport.
std::vector<UsablePath> usable_paths(std::span<const nfs4::DevicePath> paths,
                                     std::span<const TransportDomain> transports);

// How many addresses these paths name, counted for each kind of transport. Only one device leads to each; the
// others say so at once (EXDEV).
size_t addresses_of(std::span<const UsablePath> paths, std::span<const TransportDomain> transports);
// The address of this path has failed, and not with EXDEV: drops the later paths there, by other devices.
// Another kind of transport may come through, to the same host and port, too.
void drop_address(std::vector<UsablePath>& paths, size_t failed, std::span<const TransportDomain> transports);

// Why the path `chosen` of `paths` is the one in use, for people: the first that both sides can go, or what
// stands in the way of a better one. `failure`: of the last path tried before it.
std::string why_chosen(std::span<const UsablePath> paths, size_t chosen,
                       std::span<const nfs4::DevicePath> offered, std::span<const TransportDomain> transports,
                       const Error& failure);

}  // namespace pnfsrdma::initiator
