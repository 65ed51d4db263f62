// SPDX-License-Identifier: Apache-2.0
#include "library/session/recovery.h"

#include "shared/base/log.h"

namespace pnfsrdma::library::session {

// No answer, here and below: the connection is lost again, and all of it will be repeated.
void Recovery::reclaim() {
  size_t reclaimed = 0;
  refused_.clear();
  for (const std::shared_ptr<File>& file : files_.all()) {
    for (const auto& [open, before] : file->opens()) {
      Held held{file, open, before};
      const Result<Reopened> stateid = open_again(held, true);
      if (!stateid) return;
      if (!*stateid) {
        refused_.push_back(std::move(held));
        continue;
      }
      if ((*stateid)->other != before.stateid.other) lost_opens_.add(before.stateid);
      file->renewed(*open, **stateid);
      if (!open->locks->reclaim(session_, *file, before, **stateid)) return;
      ++reclaimed;
    }
  }
  if (reclaimed > 0) log_info("library", "opens-reclaimed count={}", reclaimed);
}

void Recovery::reopen() {
  size_t reopened = 0, lost = 0;
  for (const Held& held : refused_) {
    const Result<Reopened> stateid = open_again(held, false);
    if (!stateid) return;
    // Else it was another state that was in doubt.
    if (!*stateid || (*stateid)->other != held.before.stateid.other) {
      lost_opens_.add(held.before.stateid);
      held.open->locks->lose();
    }
    if (*stateid) {
      held.file->renewed(*held.open, **stateid);
      ++reopened;
    } else {
      held.file->lost(*held.open);
      ++lost;
      log_warning("library", "open-lost status={}", nfs4::to_string(stateid->error()));
    }
  }
  if (reopened + lost > 0) log_info("library", "opens-renewed count={} lost={}", reopened, lost);
  refused_.clear();
}

std::vector<nfs4::Stateid> Recovery::stateids_in_doubt() {
  std::vector<nfs4::Stateid> stateids = data_path_.layout_stateids();
  for (const nfs4::Stateid& open : lost_opens_.all()) stateids.push_back(open);
  return stateids;
}

void Recovery::stateid_gone(const nfs4::Stateid& stateid) {
  lost_opens_.remove(stateid);
  data_path_.layout_stateid_gone(stateid);
}

Result<Recovery::Reopened> Recovery::open_again(const Held& held, bool previous) {
  nfs4::OpenArguments arguments;
  arguments.owner.owner = owner_id(held.before.owner);
  arguments.share_access = held.before.share_access | nfs4::kShareAccessWantNoDelegation;
  arguments.claim = previous ? nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(nfs4::DelegationType::kNone)
                             : nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>();
  TRY_ASSIGN(const auto reply,
             session_.call({nfs4::PutFileHandleArguments{held.file->handle}, arguments},
                           held.before.credential, {.cache_reply = true, .recovery = true}));
  const auto* result = reply.result<nfs4::OpenResponse>(1);
  if (result == nullptr) return Reopened(std::unexpected(reply.status));
  return Reopened(result->stateid);
}

}  // namespace pnfsrdma::library::session
