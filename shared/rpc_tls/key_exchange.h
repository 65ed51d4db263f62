// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include "shared/rpc_tls/credentials.h"

namespace pnfsrdma::rpc_tls {

// Has the sessions of `context` agree by the SharedKey of their Credentials, which are the SSL's ex_data of
// credentials_index(). False: no memory.
bool use_shared_keys(SSL_CTX* context, Role role);
int credentials_index();

}  // namespace pnfsrdma::rpc_tls
