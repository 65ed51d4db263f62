// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/reclaimer.h"

#include <algorithm>
#include <vector>

#include "shared/base/log.h"

namespace pnfsrdma::fuse_client {

using nfs4::Status;

// No answer, here and below: the connection is lost again. Nothing is known of the opens then, and all of it
// will be repeated.
void Reclaimer::reclaim() {
  size_t reclaimed = 0;
  refused_.clear();
  std::vector<std::shared_ptr<Inode>> delegated = delegations_.server_lost();
  for (const std::shared_ptr<Inode>& inode : inodes_.open_ones()) {
    const auto open = inode->to_reclaim();
    if (!open) continue;
    const Result<Reopened> opened = open_again(*inode, *open, true);
    if (!opened) return;
    if (!*opened) {
      refused_.push_back(inode);
      continue;
    }
    const nfs4::Stateid& stateid = (*opened)->stateid;
    if (stateid.other != open->stateid.other) lost_opens_.add(open->stateid);
    inode->reclaimed(stateid);
    if (take_delegation(*inode, *open, **opened)) std::erase(delegated, inode);
    if (!locks_.reclaim(*inode, stateid, true)) return;
    ++reclaimed;
  }
  // Of what is refused, reopen() says more.
  for (const std::shared_ptr<Inode>& inode : delegated) {
    if (std::ranges::find(refused_, inode) == refused_.end()) delegations_.end(inode);
  }
  if (reclaimed > 0) log_info("fuse", "opens-reclaimed count={}", reclaimed);
}

// The lease ran out and the server lives on, or it has another opinion of what we held.
void Reclaimer::reopen() {
  size_t reopened = 0, lost = 0;
  for (const std::shared_ptr<Inode>& inode : refused_) {
    const auto open = inode->to_reclaim();
    if (!open) continue;
    const Result<Reopened> opened = open_again(*inode, *open, false);
    if (!opened) return;
    const bool same =
        *opened && (*opened)->stateid.other == open->stateid.other;  // another state was in doubt
    if (!same) {
      lost_opens_.add(open->stateid);
      locks_.lose(*inode);
    }
    if (*opened) {
      inode->reclaimed((*opened)->stateid);
      ++reopened;
    } else {
      inode->reclaim_failed();
      ++lost;
      log_warning("fuse", "open-lost inode={} status={}", inode->id, nfs4::to_string(opened->error()));
    }
    delegations_.end(inode);
  }
  if (reopened + lost > 0) log_info("fuse", "opens-renewed count={} lost={}", reopened, lost);
  refused_.clear();
}

// False: there is none any more. Others may have had what is locked here, as it was revoked before.
bool Reclaimer::take_delegation(Inode& inode, const OpenToReclaim& open, const Opened& opened) {
  if (!open.with_write_delegation) return false;
  if (opened.write_delegation) {
    inode.delegation_reclaimed(*opened.write_delegation);
  } else {
    locks_.lose(inode);
  }
  return opened.write_delegation.has_value();
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
  initiator::CallOptions options;
  options.cache_reply = true;
  options.recovery = true;
  Reopened reopened = std::unexpected(Status::kStale);
  for (const OpenToReclaim::Part& part : open.parts) {
    const bool delegated = open.with_write_delegation && &part == &open.parts.back();
    const auto claimed = delegated ? nfs4::DelegationType::kWrite : nfs4::DelegationType::kNone;
    arguments.claim = previous ? nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(claimed)
                               : nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>();
    arguments.share_access = part.share_access | nfs4::kShareAccessWantNoDelegation;
    TRY_ASSIGN(const auto reply, session_.call({nfs4::PutFileHandleArguments{inode.handle}, arguments},
                                               part.credential, options));
    const auto* result = reply.result<nfs4::OpenResponse>(1);
    if (result == nullptr) return Reopened(std::unexpected(reply.status));
    reopened = Opened{.stateid = result->stateid, .write_delegation = {}};
    if (const auto* given = result->delegation.get_if<nfs4::DelegationType::kWrite>())
      reopened->write_delegation = given->stateid;
  }
  return reopened;
}

}  // namespace pnfsrdma::fuse_client
