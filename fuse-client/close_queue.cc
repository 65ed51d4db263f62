// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/close_queue.h"

#include <algorithm>
#include <mutex>

namespace pnfsrdma::fuse_client {

CloseQueue::CloseQueue(initiator::Session& session) : session_(session), thread_([this] { run(); }) {}

void CloseQueue::add(std::shared_ptr<Inode> inode) {
  size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(inode));
    count = waiting_.size();
  }
  // The first one starts the delay, a full batch ends it: two wake-ups for sixteen files.
  if (count == 1 || count == kBatch) changed_.notify_all();
}

void CloseQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CloseQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    changed_.wait_until(lock, steady_now() + kDelay,
                        [this] { return stopping_ || waiting_.size() >= kBatch; });
    // No more than go together: an open waits for the CLOSE of its own file, and not for those before it.
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(kBatch, waiting_.size()));
    const std::vector<std::shared_ptr<Inode>> due(waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    lock.unlock();
    send(due);
    lock.lock();
  }
}

void CloseQueue::send(const std::vector<std::shared_ptr<Inode>>& inodes) {
  std::vector<Closing> closings;
  for (const auto& inode : inodes) {
    if (auto open = inode->begin_close()) closings.push_back({inode, *std::move(open)});
  }
  const size_t most = std::clamp<size_t>((session_.operations_max() - 1) / 2, 1, kBatch);
  for (std::span<const Closing> left = closings; !left.empty();) {
    const auto other = std::ranges::find_if(left, [&](const Closing& closing) {
      return closing.open.credential != left.front().open.credential;
    });
    const auto same = static_cast<size_t>(other - left.begin());
    left = left.subspan(send_some(left.first(std::min(same, most))));
  }
}

// Errors are nobody's any more: data was committed at close(2), and a server that has lost the open has closed
// it. A COMPOUND ends with the operation that fails: those behind it are sent again.
size_t CloseQueue::send_some(std::span<const Closing> closings) {
  initiator::Session::Operations operations;
  for (const Closing& closing : closings) {
    nfs4::CloseArguments close;
    close.open_stateid = closing.open.stateid;
    operations.emplace_back(nfs4::PutFileHandleArguments{closing.inode->handle});
    operations.emplace_back(close);
  }
  initiator::CallOptions options;
  options.cache_reply = true;
  const auto reply = session_.call(std::move(operations), closings.front().open.credential, options);
  const bool whole = !reply || reply->status == nfs4::Status::kOk || reply->results.empty();
  const size_t done = whole ? closings.size() : (reply->results.size() + 1) / 2;
  for (const Closing& closing : closings.first(done)) closing.inode->closed();
  return done;
}

}  // namespace pnfsrdma::fuse_client
