// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/reclaimer.h"

#include "shared/base/log.h"

namespace pnfsrdma::fuse_client {

using nfs4::Status;

void Reclaimer::reclaim(bool grace) {
  size_t reclaimed = 0, lost = 0;
  for (const std::shared_ptr<Inode>& inode : inodes_.open_ones()) {
    const auto open = inode->to_reclaim();
    if (!open) continue;
    Result<Reopened> stateid = Reopened(std::unexpected(Status::kNoGrace));
    if (grace) stateid = reopen(*inode, *open, true);
    // The lease ran out and the server lives on, or it has another opinion of what we held.
    if (stateid && !*stateid) stateid = reopen(*inode, *open, false);
    // No answer: the connection again. Nothing is known of the opens then, and all of it will be repeated.
    if (!stateid) return;
    if (!*stateid || (*stateid)->other != open->stateid.other) lost_opens_.add(open->stateid);
    if (*stateid) {
      inode->reclaimed(**stateid);
      ++reclaimed;
    } else {
      inode->reclaim_failed();
      ++lost;
      log_warning("fuse", "open-lost inode={} status={}", inode->id, nfs4::to_string(stateid->error()));
    }
  }
  if (reclaimed + lost > 0) log_info("fuse", "opens-reclaimed count={} lost={}", reclaimed, lost);
}

std::vector<nfs4::Stateid> Reclaimer::stateids_in_doubt() {
  std::vector<nfs4::Stateid> stateids = data_path_.layout_stateids();
  for (const nfs4::Stateid& open : lost_opens_.all()) stateids.push_back(open);
  return stateids;
}

void Reclaimer::stateid_gone(const nfs4::Stateid& stateid) {
  lost_opens_.remove(stateid);
  data_path_.layout_stateid_gone(stateid);
}

Result<Reclaimer::Reopened> Reclaimer::reopen(const Inode& inode, const OpenToReclaim& open, bool previous) {
  nfs4::OpenArguments arguments;
  arguments.share_access = open.share_access | nfs4::kShareAccessWantNoDelegation;
  arguments.owner.owner = nfs4::OwnerId(as_bytes("pnfsrdma-fuse"));
  arguments.claim = previous ? nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(nfs4::DelegationType::kNone)
                             : nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>();
  initiator::CallOptions options;
  options.cache_reply = true;
  options.recovery = true;
  // GRACE to an ordinary OPEN: in the midst of the reclaim there is nobody who could wait for its end.
  options.return_delay = !previous;
  TRY_ASSIGN(const auto reply,
             session_.call({nfs4::PutFileHandleArguments{inode.handle}, std::move(arguments)},
                           open.credential, options));
  if (const auto* result = reply.result<nfs4::OpenResponse>(1)) return Reopened(result->stateid);
  return Reopened(std::unexpected(reply.status));
}

}  // namespace pnfsrdma::fuse_client
