// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/lock_hand_over.h"

#include <algorithm>
#include <utility>

#include "fuse-client/lock_calls.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {
namespace {

using nfs4::Status;

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

// What is in `unconfirmed` was given, and is to be confirmed by a later TEST_STATEID.
struct LockHandOver::Work {
  Inode& inode;
  std::vector<std::pair<LockOwner, FileLocks::Held>>& owners;
  std::list<Ask> left;
  std::set<size_t> unconfirmed;
  // The end of the lease when the server began to say DELAY, and nothing else since: it moves on with each answer.
  std::optional<SteadyTime> delayed;
};

void LockHandOver::run(Inode& inode, const std::function<void()>& between) const {
  std::optional<SteadyTime> delayed;
  while (auto locks = inode.locks().begin_hand_over()) {
    Work work{.inode = inode, .owners = locks->owners, .left = {}, .unconfirmed = {}, .delayed = delayed};
    give_all(work, between);
    delayed = work.delayed;
    const auto lost = inode.locks().end_hand_over(*std::move(locks));
    // The server has lost its state meanwhile, and they are here still: again, to its successor.
    if (!lost) continue;
    if (*lost > 0) log_lost(inode, *lost);
    return;
  }
}

// The first of each owner first: the next ones are asked for by the stateid that it has from then on.
void LockHandOver::give_all(Work& work, const std::function<void()>& between) const {
  for (size_t owner = 0; owner < work.owners.size(); ++owner) {
    work.owners[owner].second.lost = false;
    work.left.push_back({owner, work.owners[owner].second.ranges.all().front()});
  }
  for (size_t owner = 0; owner < work.owners.size(); ++owner) {
    const auto& ranges = work.owners[owner].second.ranges.all();
    std::for_each(ranges.begin() + 1, ranges.end(),
                  [&](const nfs4::LockRange& range) { work.left.push_back({owner, range}); });
  }
  while (!work.left.empty() || !work.unconfirmed.empty()) {
    give(work, next(work));
    between();
  }
}

// Of one user; of an owner that has no stateid one. None: they are given, and only to be confirmed.
std::vector<LockHandOver::Ask> LockHandOver::next(Work& work) const {
  // Beside SEQUENCE, PUTFH and TEST_STATEID.
  const size_t most = std::max<size_t>(session_.operations_max(), 4) - 3;
  std::vector<Ask> asks;
  std::set<size_t> fresh;
  for (auto at = work.left.begin(); at != work.left.end() && asks.size() < most; ++at) {
    const FileLocks::Held& held = work.owners[at->owner].second;
    if (held.credential != work.owners[work.left.front().owner].second.credential) continue;
    if (!held.stateid && !fresh.insert(at->owner).second) continue;
    asks.push_back(*at);
  }
  return asks;
}

// PUTFH, LOCK, LOCK, ..., TEST_STATEID.
void LockHandOver::give(Work& work, const std::vector<Ask>& asks) const {
  const auto delegation = work.inode.delegation();
  initiator::Session::Operations operations{nfs4::PutFileHandleArguments{work.inode.handle}};
  for (const Ask& ask : asks) {
    const auto open = work.inode.open_state(ask.range.exclusive);
    if (!open || !delegation) return lose(work, ask.owner);
    const auto& [owner, held] = work.owners[ask.owner];
    const auto type = ask.range.exclusive ? nfs4::LockType::kWrite : nfs4::LockType::kRead;
    operations.emplace_back(lock_arguments(ask.range, type, owner, held.stateid, open->stateid));
  }
  const size_t any = asks.empty() ? *work.unconfirmed.begin() : asks.front().owner;
  if (!delegation) return lose(work, any);
  nfs4::TestStateidArguments test;
  test.stateids.push_back(*delegation);
  operations.emplace_back(test);
  initiator::CallOptions options = urgent();
  options.return_delay = true;
  const auto reply = session_.call(std::move(operations), work.owners[any].second.credential, options);
  // Whatever it has given of them is taken back: it is not known.
  if (!reply) {
    lose(work, any);
    for (const Ask& ask : asks) lose(work, ask.owner);
    return;
  }
  size_t given = 0;
  for (; given < asks.size(); ++given) {
    const auto* lock = reply->result<nfs4::LockResponse>(1 + given);
    if (lock == nullptr) break;
    const Ask& ask = asks[given];
    work.owners[ask.owner].second.stateid = lock->lock_stateid;
    work.unconfirmed.insert(ask.owner);
    work.left.erase(std::ranges::find_if(
        work.left, [&](const Ask& left) { return left.owner == ask.owner && left.range == ask.range; }));
    work.delayed.reset();
  }
  if (reply->status == Status::kDelay || reply->status == Status::kGrace) {
    // A grace period ends by itself, and nothing is revoked in it.
    const SteadyTime now = session_.lease_end();
    if (reply->status == Status::kGrace || !work.delayed) work.delayed = now;
    if (now - *work.delayed < session_.lease() / 2) return sleep_for(kRepeatAfter);
  }
  if (given < asks.size()) return lose(work, asks[given].owner);
  const auto* tested = reply->result<nfs4::TestStateidResponse>(1 + given);
  const bool confirmed =
      tested != nullptr && tested->statuses.size() == 1 && tested->statuses[0] == Status::kOk;
  if (confirmed) return work.unconfirmed.clear();
  // It is in force no more: others may have what is not confirmed.
  while (!work.unconfirmed.empty()) lose(work, *work.unconfirmed.begin());
  while (!work.left.empty()) lose(work, work.left.front().owner);
}

// Once.
void LockHandOver::lose(Work& work, size_t owner) const {
  FileLocks::Held& held = work.owners[owner].second;
  if (!std::exchange(held.lost, true)) take_back(work.inode, held);
  work.unconfirmed.erase(owner);
  work.left.remove_if([owner](const Ask& ask) { return ask.owner == owner; });
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
