// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/lock_hand_over.h"

#include <utility>

#include "fuse-client/lock_calls.h"

namespace pnfsrdma::fuse_client {
namespace {

// A recall ends by them.
initiator::CallOptions urgent() {
  initiator::CallOptions options;
  options.cache_reply = true;
  options.urgency = initiator::Urgency::kReserved;
  return options;
}

}  // namespace

void LockHandOver::run(Inode& inode) const {
  while (auto work = inode.locks().begin_hand_over()) {
    for (auto& [owner, held] : work->owners) held.lost = !give_all(inode, owner, held);
    const auto lost = inode.locks().end_hand_over(*std::move(work));
    // The server has lost its state meanwhile, and they are here still: again, to its successor.
    if (!lost) continue;
    if (*lost > 0) log_lost(inode, *lost);
    return;
  }
}

bool LockHandOver::give_all(Inode& inode, LockOwner owner, FileLocks::Held& held) const {
  for (const nfs4::LockRange& range : held.ranges.all()) {
    if (give(inode, owner, range, held)) continue;
    take_back(inode, held);
    return false;
  }
  return true;
}

// PUTFH, LOCK, TEST_STATEID.
bool LockHandOver::give(Inode& inode, LockOwner owner, const nfs4::LockRange& range,
                        FileLocks::Held& held) const {
  const auto open = inode.open_state(range.exclusive);
  const auto delegation = inode.delegation();
  if (!open || !delegation) return false;
  const auto type = range.exclusive ? nfs4::LockType::kWrite : nfs4::LockType::kRead;
  nfs4::TestStateidArguments test;
  test.stateids.push_back(*delegation);
  const auto reply = session_.call({nfs4::PutFileHandleArguments{inode.handle},
                                    lock_arguments(range, type, owner, held.stateid, open->stateid), test},
                                   held.credential, urgent());
  const auto* given = reply ? reply->result<nfs4::LockResponse>(1) : nullptr;
  if (given == nullptr) return false;
  held.stateid = given->lock_stateid;
  const auto* tested = reply->result<nfs4::TestStateidResponse>(2);
  return tested != nullptr && tested->statuses.size() == 1 && tested->statuses[0] == nfs4::Status::kOk;
}

// What was given is of no use to one whose other locks are lost. Unanswered, it ends with the open.
void LockHandOver::take_back(const Inode& inode, FileLocks::Held& held) const {
  if (!held.stateid) return;
  nfs4::Stateid newest = *std::exchange(held.stateid, std::nullopt);
  newest.seqid = 0;
  (void)session_.call({nfs4::PutFileHandleArguments{inode.handle},
                       nfs4::UnlockArguments{nfs4::LockType::kWrite, 0, newest, 0, nfs4::kLengthToEnd},
                       nfs4::FreeStateidArguments{newest}},
                      held.credential, urgent());
}

}  // namespace pnfsrdma::fuse_client
