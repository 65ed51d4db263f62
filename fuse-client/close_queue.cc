// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/close_queue.h"

#include <algorithm>
#include <mutex>

namespace pnfsrdma::fuse_client {

CloseQueue::CloseQueue(initiator::Session& session)
    : session_(session), locks_(session), thread_([this] { run(); }) {}

void CloseQueue::add(std::shared_ptr<Inode> inode, When when) {
  bool wakes = when == When::kAtOnce;
  {
    const std::lock_guard lock(mutex_);
    if (when == When::kAtOnce) {
      waiting_.push_front(std::move(inode));
      is_urgent_ = true;
    } else {
      waiting_.push_back(std::move(inode));
      // The first one starts the delay, a full batch ends it: two wake-ups for sixteen files.
      wakes = waiting_.size() == 1 || waiting_.size() == kBatch;
    }
  }
  if (wakes) changed_.notify_all();
}

void CloseQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

size_t CloseQueue::owed() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() + holding_.size() + under_way_;
}

void CloseQueue::run() {
  for (;;) {
    const auto due = take_due();
    if (due.empty()) return;
    send(due);
    const std::lock_guard lock(mutex_);
    under_way_ = 0;
    if (holding_.empty()) look_after_ = kHeldSoon;
  }
}

// Waits for some. None: it is over.
std::vector<std::shared_ptr<Inode>> CloseQueue::take_due() {
  std::unique_lock lock(mutex_);
  const auto any = [this] { return stopping_ || !waiting_.empty(); };
  if (holding_.empty()) {
    changed_.wait(lock, any);
  } else if (!changed_.wait_until(lock, steady_now() + look_after_, any)) {
    look_after_ = std::min(2 * look_after_, kHeldLater);
  }
  if (waiting_.empty()) {
    under_way_ = holding_.size();
    return std::exchange(holding_, {});
  }
  changed_.wait_until(lock, steady_now() + (holding_.empty() ? kDelay : look_after_),
                      [this] { return stopping_ || is_urgent_ || waiting_.size() >= kBatch; });
  // No more than go together: an open waits for the CLOSE of its own file, and not for those before it.
  const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(kBatch, waiting_.size()));
  std::vector<std::shared_ptr<Inode>> due = std::exchange(holding_, {});
  due.insert(due.end(), waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  is_urgent_ = is_urgent_ && !waiting_.empty();
  under_way_ = due.size();
  return due;
}

// Another thread sends what it holds: a silent brick holds up its own files.
void CloseQueue::hold_back(const std::shared_ptr<Inode>& inode) {
  if (const auto data = inode->data()) data->send_held_beside();
  const std::lock_guard lock(mutex_);
  // What is left then is what the servers did not take in all the time that an unmount gives them.
  if (!stopping_) holding_.push_back(inode);
}

void CloseQueue::send(const std::vector<std::shared_ptr<Inode>>& inodes) {
  std::vector<Step> steps;
  std::vector<Step> with_locks;
  for (const auto& inode : inodes) {
    // In this order: from its end on nothing more is held under it.
    const bool may_return = inode->delegation_has_ended();
    if (may_return && inode->holds_data()) {
      hold_back(inode);
      continue;
    }
    const auto owed = inode->begin_close(may_return);
    if (!owed) continue;
    const bool hands_over = owed->delegation && inode->locks().are_here();
    std::vector<Step>& of = hands_over ? with_locks : steps;
    if (owed->open) of.push_back({inode, owed->open->stateid, true, owed->open->credential});
    if (owed->delegation) of.push_back({inode, owed->delegation->stateid, false, owed->delegation->user});
  }
  send(steps);
  for (Step& step : with_locks) {
    if (step.is_open) continue;
    locks_.run(*step.inode, [this] { send_without_locks(); });
    // It may have been reclaimed meanwhile.
    step.stateid = step.inode->delegation().value_or(step.stateid);
  }
  send(with_locks);
}

void CloseQueue::send_without_locks() {
  std::vector<std::shared_ptr<Inode>> due;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waiting_.begin(); at != waiting_.end() && due.size() < kBatch;) {
      const bool hands_over = (*at)->locks().are_here();
      if (!hands_over) due.push_back(std::move(*at));
      at = hands_over ? std::next(at) : waiting_.erase(at);
    }
    is_urgent_ = is_urgent_ && !waiting_.empty();
  }
  if (!due.empty()) send(due);
}

void CloseQueue::send(std::span<const Step> steps) {
  const size_t most = std::clamp<size_t>((session_.operations_max() - 1) / 2, 1, kBatch);
  for (std::span<const Step> left = steps; !left.empty();) {
    const auto other = std::ranges::find_if(
        left, [&](const Step& step) { return step.credential != left.front().credential; });
    const auto same = static_cast<size_t>(other - left.begin());
    left = left.subspan(send_some(left.first(std::min(same, most))));
  }
}

// Errors are nobody's any more: data was committed at close(2), and a server that has lost the open has closed
// it. A COMPOUND ends with the operation that fails: those behind it are sent again.
size_t CloseQueue::send_some(std::span<const Step> steps) {
  initiator::Session::Operations operations;
  for (const Step& step : steps) {
    operations.emplace_back(nfs4::PutFileHandleArguments{step.inode->handle});
    if (step.is_open) {
      nfs4::CloseArguments close;
      close.open_stateid = step.stateid;
      operations.emplace_back(close);
    } else {
      operations.emplace_back(nfs4::DelegationReturnArguments{step.stateid});
    }
  }
  initiator::CallOptions options;
  options.cache_reply = true;
  // A recall ends by them.
  if (!std::ranges::all_of(steps, &Step::is_open)) options.urgency = initiator::Urgency::kReserved;
  const auto reply = session_.call(std::move(operations), steps.front().credential, options);
  const bool whole = !reply || reply->status == nfs4::Status::kOk || reply->results.empty();
  const size_t count = whole ? steps.size() : (reply->results.size() + 1) / 2;
  for (size_t at = 0; at < count; ++at) {
    const bool is_taken = reply && (reply->status == nfs4::Status::kOk || at + 1 < count);
    done(steps[at], !is_taken && !(reply && reply->status == nfs4::Status::kBadStateid));
  }
  return count;
}

void CloseQueue::done(const Step& step, bool is_kept_in_mind) {
  if (step.is_open) return step.inode->closed();
  // The server has revoked it, or will (as of a file whose handle has ended): until it is freed it is kept in mind
  // there.
  if (is_kept_in_mind) revoked_.add(step.stateid);
  if (step.inode->delegation_returned(step.stateid)) add(step.inode, When::kAtOnce);
}

}  // namespace pnfsrdma::fuse_client
