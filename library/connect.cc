// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>

#include "library/connection.h"

#include "library/mounted/mount_connection.h"
#include "library/session/client.h"

namespace pnfsrdma::library {

Result<std::unique_ptr<Connection>> Connection::connect(std::string_view source, std::string_view options) {
  if (source.starts_with('/')) return mounted::MountConnection::connect(source, options);
  if (!source.contains(':'))
    return fail(EINVAL, fmt::format("{}: neither a directory (\"/mnt/pmem\") nor a server (\"server:/path\")",
                                    source));
  return session::Client::connect(source, options);
}

}  // namespace pnfsrdma::library
