// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>

#include "library/session/file_table.h"
#include "shared/initiator/callbacks.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/file/lost_stateids.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::library::session {

// Makes a connection's opens good after the server lost them: CLAIM_PREVIOUS in its grace period, a new OPEN by
// filehandle when there is none. Runs on the session's background thread. The others must outlive the session's
// threads.
class Recovery final : public initiator::RecoveryHandler {
 public:
  Recovery(initiator::Session& session, initiator::DataPath& data_path, FileTable& files)
      : session_(session), data_path_(data_path), files_(files) {}

  void layouts_lost() override { data_path_.layouts_lost(); }
  void session_renewed() override { data_path_.session_renewed(); }
  void state_revoked() override { data_path_.layouts_in_doubt(); }
  void reclaim() override;
  void reopen() override;
  std::vector<nfs4::Stateid> stateids_in_doubt() override;
  void stateid_gone(const nfs4::Stateid& stateid) override;

 private:
  struct Held {
    std::shared_ptr<File> file;
    std::shared_ptr<Open> open;
    Open before;
  };
  // The new stateid, or why the server gives none. Error: no answer.
  using Reopened = std::expected<nfs4::Stateid, nfs4::Status>;
  Result<Reopened> open_again(const Held& held, bool previous);

  initiator::Session& session_;
  initiator::DataPath& data_path_;
  FileTable& files_;
  std::vector<Held> refused_;           // not to be reclaimed: what reopen() sees to
  initiator::LostStateids lost_opens_;  // opens that were replaced by a new OPEN
};

}  // namespace pnfsrdma::library::session
