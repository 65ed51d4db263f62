// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "library/directory.h"
#include "library/session/client.h"

namespace pnfsrdma::library::session {

// Page by page from the server: one COMPOUND each, the first with open().
class SessionDirectory final : public Directory {
 public:
  // In the caller's name, the pages behind the first one, too.
  static Result<std::unique_ptr<SessionDirectory>> open(Client& client, std::string_view path);

  Result<bool> next(struct dirent& entry) override;

 private:
  // Where the reader stands: entries of one page, and what comes behind them.
  struct Page {
    std::vector<nfs4::DirectoryEntry> entries;
    size_t next = 0;
    uint64_t cookie = 0;
    nfs4::Verifier verifier{};
    bool is_last = false;
  };

  SessionDirectory(Client& client, nfs4::FileHandle handle, initiator::Credential who)
      : Directory(client), session_(client.session()), handle_(std::move(handle)), who_(std::move(who)) {}
  Result<> fetch();

  initiator::Session& session_;
  const nfs4::FileHandle handle_;
  const initiator::Credential who_;
  Page page_;
};

}  // namespace pnfsrdma::library::session
