// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/mds/state/client.h"
#include "shared/base/bytes.h"

namespace pnfsrdma::mds {

// The host a client runs on, as its co_ownerid says (ours: "pnfsrdma-HOST-32 hex digits", Linux: "Linux
// NFSv4.2 HOST"); else the address its calls come from; else "client". Letters, digits, '.', '_' and '-'.
std::string host_of_client(const Client& client);
// What people call a client: "HOST-1a2b3c". The six digits come from its co_ownerid: two mounts of a host
// differ, and one mount keeps its name when it comes back.
std::string client_name(const Client& client);
// Bytes a client has chosen, readable: others than printable ASCII as \xNN.
std::string printable(ByteSpan bytes);

}  // namespace pnfsrdma::mds
