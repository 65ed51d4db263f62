// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/reclaimer.h"

#include "shared/base/log.h"

namespace pnfsrdma::fuse_client {

using nfs4::Status;

// No answer, here and below: the connection is lost again. Nothing is known of the opens then, and all of it
// will be repeated.
void Reclaimer::reclaim() {
  size_t reclaimed = 0;
  refused_.clear();
  delegations_.end_all();
  for (const std::shared_ptr<Inode>& inode : inodes_.open_ones()) {
    const auto open = inode->to_reclaim();
    if (!open) continue;
    const Result<Reopened> stateid = open_again(*inode, *open, true);
    if (!stateid) return;
    if (!*stateid) {
      refused_.push_back(inode);
      continue;
    }
    if ((*stateid)->other != open->stateid.other) lost_opens_.add(open->stateid);
    inode->reclaimed(**stateid);
    if (!locks_.reclaim(*inode, **stateid, true)) return;
    ++reclaimed;
  }
  if (reclaimed > 0) log_info("fuse", "opens-reclaimed count={}", reclaimed);
}

// The lease ran out and the server lives on, or it has another opinion of what we held.
void Reclaimer::reopen() {
  size_t reopened = 0, lost = 0;
  for (const std::shared_ptr<Inode>& inode : refused_) {
    const auto open = inode->to_reclaim();
    if (!open) continue;
    const Result<Reopened> stateid = open_again(*inode, *open, false);
    if (!stateid) return;
    const bool same = *stateid && (*stateid)->other == open->stateid.other;  // another state was in doubt
    if (!same) {
      lost_opens_.add(open->stateid);
      locks_.lose(*inode);
    }
    if (*stateid) {
      inode->reclaimed(**stateid);
      ++reopened;
    } else {
      inode->reclaim_failed();
      ++lost;
      log_warning("fuse", "open-lost inode={} status={}", inode->id, nfs4::to_string(stateid->error()));
    }
  }
  if (reopened + lost > 0) log_info("fuse", "opens-renewed count={} lost={}", reopened, lost);
  refused_.clear();
}

void Reclaimer::state_revoked() {
  delegations_.end_all();
  data_path_.layouts_in_doubt();
}

std::vector<nfs4::Stateid> Reclaimer::stateids_in_doubt() {
  std::vector<nfs4::Stateid> stateids = data_path_.layout_stateids();
  for (const nfs4::Stateid& open : lost_opens_.all()) stateids.push_back(open);
  for (const nfs4::Stateid& delegation : revoked_delegations_.all()) stateids.push_back(delegation);
  return stateids;
}

void Reclaimer::stateid_gone(const nfs4::Stateid& stateid) {
  lost_opens_.remove(stateid);
  revoked_delegations_.remove(stateid);
  data_path_.layout_stateid_gone(stateid);
}

Result<Reclaimer::Reopened> Reclaimer::open_again(const Inode& inode, const OpenToReclaim& open,
                                                  bool previous) {
  nfs4::OpenArguments arguments;
  arguments.owner.owner = nfs4::OwnerId(as_bytes("pnfsrdma-fuse"));
  arguments.claim = previous ? nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(nfs4::DelegationType::kNone)
                             : nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>();
  initiator::CallOptions options;
  options.cache_reply = true;
  options.recovery = true;
  Reopened reopened = std::unexpected(Status::kStale);
  for (const OpenToReclaim::Part& part : open.parts) {
    arguments.share_access = part.share_access | nfs4::kShareAccessWantNoDelegation;
    TRY_ASSIGN(const auto reply, session_.call({nfs4::PutFileHandleArguments{inode.handle}, arguments},
                                               part.credential, options));
    const auto* result = reply.result<nfs4::OpenResponse>(1);
    if (result == nullptr) return Reopened(std::unexpected(reply.status));
    reopened = result->stateid;
  }
  return reopened;
}

}  // namespace pnfsrdma::fuse_client
