// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/lock_hand_over.h"

#include <utility>

#include "fuse-client/lock_calls.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {
namespace {

// Behind a DELAY.
constexpr Milliseconds kRepeatAfter{50};

// A recall ends by them.
initiator::CallOptions urgent() {
  initiator::CallOptions options;
  options.cache_reply = true;
  options.urgency = initiator::Urgency::kReserved;
  return options;
}

}  // namespace

void LockHandOver::run(Inode& inode) const {
  Delayed delayed;
  while (auto work = inode.locks().begin_hand_over()) {
    for (auto& [owner, held] : work->owners) held.lost = !give_all(inode, owner, held, delayed);
    const auto lost = inode.locks().end_hand_over(*std::move(work));
    // The server has lost its state meanwhile, and they are here still: again, to its successor.
    if (!lost) continue;
    if (*lost > 0) log_lost(inode, *lost);
    return;
  }
}

bool LockHandOver::give_all(Inode& inode, LockOwner owner, FileLocks::Held& held, Delayed& delayed) const {
  for (const nfs4::LockRange& range : held.ranges.all()) {
    if (give(inode, owner, range, held, delayed)) continue;
    take_back(inode, held);
    return false;
  }
  return true;
}

bool LockHandOver::give(Inode& inode, LockOwner owner, const nfs4::LockRange& range, FileLocks::Held& held,
                        Delayed& delayed) const {
  const auto open = inode.open_state(range.exclusive);
  const auto delegation = inode.delegation();
  if (!open || !delegation) return false;
  const auto type = range.exclusive ? nfs4::LockType::kWrite : nfs4::LockType::kRead;
  const auto reply = send(inode, lock_arguments(range, type, owner, held.stateid, open->stateid), *delegation,
                          held.credential, delayed);
  const auto* given = reply ? reply->result<nfs4::LockResponse>(1) : nullptr;
  if (given == nullptr) return false;
  held.stateid = given->lock_stateid;
  const auto* tested = reply->result<nfs4::TestStateidResponse>(2);
  return tested != nullptr && tested->statuses.size() == 1 && tested->statuses[0] == nfs4::Status::kOk;
}

// PUTFH, LOCK, TEST_STATEID.
Result<initiator::CompoundReply> LockHandOver::send(const Inode& inode, const nfs4::LockArguments& lock,
                                                    const nfs4::Stateid& delegation,
                                                    const initiator::Credential& credential,
                                                    Delayed& delayed) const {
  nfs4::TestStateidArguments test;
  test.stateids.push_back(delegation);
  initiator::CallOptions options = urgent();
  options.return_delay = true;
  for (;;) {
    auto reply = session_.call({nfs4::PutFileHandleArguments{inode.handle}, lock, test}, credential, options);
    if (!reply || (reply->status != nfs4::Status::kDelay && reply->status != nfs4::Status::kGrace))
      return reply;
    // A grace period ends by itself, and nothing is revoked in it.
    const SteadyTime now = session_.lease_end();
    if (reply->status == nfs4::Status::kGrace || !delayed) delayed = now;
    if (now - *delayed >= session_.lease() / 2) return reply;
    sleep_for(kRepeatAfter);
  }
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
