// SPDX-License-Identifier: Apache-2.0
#include "library/connection.h"

#include "library/mounted/mount_connection.h"
#include "library/session/client.h"

namespace pnfsrdma::library {

Result<std::unique_ptr<Connection>> Connection::connect(std::string_view source, std::string_view options) {
  if (source.starts_with('/')) return mounted::MountConnection::connect(source, options);
  return session::Client::connect(source, options);
}

}  // namespace pnfsrdma::library
