// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/x509.h>

#include "shared/rpc/tls.h"

namespace pnfsrdma::rpc_tls {

// What a certificate says of its owner.
rpc::TlsPeer peer_of(const X509* certificate);

}  // namespace pnfsrdma::rpc_tls
