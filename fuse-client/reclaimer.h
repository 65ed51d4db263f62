// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuse-client/delegations.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/lock_calls.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/file/lost_stateids.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// Makes the mount's opens good after the server lost them: CLAIM_PREVIOUS in its grace period, a new OPEN by
// filehandle when there is none. Byte-range locks are reclaimed in grace; without it they are lost. Of delegations
// those are reclaimed under which locks are decided here, which then stay; the others are given anew where they are
// of use. Runs on the session's background thread; takes inode locks only briefly, never across a call.
class Reclaimer final : public initiator::RecoveryHandler {
 public:
  Reclaimer(initiator::Session& session, initiator::DataPath& data_path, InodeTable& inodes, LockCalls& locks,
            Delegations& delegations, initiator::LostStateids& revoked_delegations)
      : session_(session),
        data_path_(data_path),
        inodes_(inodes),
        locks_(locks),
        delegations_(delegations),
        revoked_delegations_(revoked_delegations) {}

  void layouts_lost() override { data_path_.layouts_lost(); }
  void session_renewed() override { data_path_.session_renewed(); }
  void state_revoked() override;
  void reclaim() override;
  void reopen() override;
  std::vector<nfs4::Stateid> stateids_in_doubt() override;
  void stateid_gone(const nfs4::Stateid& stateid) override;

 private:
  // The new stateids, or why the server gives none. Error: no answer.
  struct Opened {
    nfs4::Stateid stateid;
    std::optional<nfs4::Stateid> write_delegation;
  };
  using Reopened = std::expected<Opened, nfs4::Status>;
  Result<Reopened> open_again(const Inode& inode, const OpenToReclaim& open, bool previous);
  bool take_delegation(Inode& inode, const OpenToReclaim& open, const Opened& opened);

  initiator::Session& session_;
  initiator::DataPath& data_path_;
  InodeTable& inodes_;
  LockCalls& locks_;
  Delegations& delegations_;
  initiator::LostStateids& revoked_delegations_;
  // Not to be reclaimed: what reopen() sees to.
  std::vector<std::shared_ptr<Inode>> refused_;
  // Opens that were replaced by a new OPEN.
  initiator::LostStateids lost_opens_;
};

}  // namespace pnfsrdma::fuse_client
