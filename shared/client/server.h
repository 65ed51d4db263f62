// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shared/base/result.h"
#include "shared/client/connect_options.h"
#include "shared/client/file_attributes.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::client {

// The directory that a client was pointed to.
struct Root {
  nfs4::FileHandle handle;
  FileAttributes attributes;
  SteadyTime asked_at;
  bool layouts = false;  // the server's files may have layouts of our type
  // The server is of ours and knows the attributes of POSIX ACLs, and mode_umask.
  bool posix_acls = false;
};

// PUTROOTFH, a LOOKUP per component, GETFH, GETATTR; waits 30 s at most. The error names cause and fix, for a
// user.
Result<Root> find_root(initiator::Session& session, const std::string& path);

// The durability class a server tells in its implementation name ("… durability=process"); "unknown" if it
// does not.
std::string durability_told(std::string_view implementation);

// Whether a server says in the name of its implementation that its RENAME knows the words of
// shared/nfs4/rename_wish.h.
bool knows_rename_words(std::string_view implementation);

// EPERM, and what to do, if `options` ask for more.
Result<> check_durability(const ConnectOptions& options, const std::string& durability);

}  // namespace pnfsrdma::client
