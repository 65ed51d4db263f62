// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "cli/api/api_client.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"

namespace pnfsrdma::cli {

// The doctor's checks; one file each, none changes anything. They say what is the case on this host for a
// client and for a server; what is merely absent and optional is a warning at most.

Findings check_kernel(const Host& host);
Findings check_memory(const Host& host);  // locked memory, huge pages
Findings check_pmem(const Host& host);    // device DAX, namespaces in other modes, flush instructions
Findings check_rdma(const Host& host);    // devices, ports, addresses, MTU, permissions, libraries
Findings check_ports(const Host& host);   // who listens where pnfsrdma wants to
Findings check_fuse(const Host& host);    // the device, fusermount3, the mount helper
// Whether a mount of this user is served where exports are not "insecure".
Findings check_source_port(const Host& host);
Findings check_clock(const Host& host);
// Of a metadata server that shares a log in etcd: nothing else is looked at elsewhere. Takes four seconds there.
Findings check_cluster(const Host& host);
// Who may control the bricks of this host, and with what its metadata server reaches others'.
Findings check_control(const Host& host);
// `server`: "host" or "host:port" of an MDS.
Findings check_server(const Host& host, const std::string& server);
// A server by its console: what it says of its own health, and how far its clock is from `now`.
Findings check_console(ApiClient& client, std::chrono::system_clock::time_point now);

}  // namespace pnfsrdma::cli
