// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shared/initiator/file/open_state.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::sim {

// The opens of a mount at a server that asks for them: one state for each file, by its filehandle, taken again
// when the server has forgotten it. As fuse-client has it.
class ClientOpens {
 public:
  ClientOpens();
  ~ClientOpens();

  // One more, or one less; the last one closes the file. On the caller's fiber, as long as it takes.
  void open(initiator::Session& session, size_t file, const nfs4::FileHandle& handle);
  void close(initiator::Session& session, size_t file);
  initiator::OpenStateSource& source(size_t file);
  // By the session, which is being recovered: first what can be reclaimed, then the rest anew.
  void reclaim(initiator::Session& session);
  void reopen(initiator::Session& session);

 private:
  struct File;
  static nfs4::OpenArguments arguments(nfs4::OpenClaim claim);
  static std::optional<bool> open_again(initiator::Session& session, File& file, nfs4::OpenClaim claim);

  std::map<size_t, std::unique_ptr<File>> files_;
  std::vector<File*> refused_;
};

}  // namespace pnfsrdma::sim
