// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_watch.h"

#include <algorithm>
#include <mutex>

namespace pnfsrdma::fuse_client {

PageWatch::PageWatch(const Clock& clock, Milliseconds patience, Ask ask, Drop drop)
    : clock_(clock), patience_(patience), ask_(std::move(ask)), drop_(std::move(drop)) {}

void PageWatch::start() {
  thread_ = Thread([this] { run(); });
}

void PageWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PageWatch::add(const std::shared_ptr<Inode>& file) {
  std::shared_ptr<Inode> oldest;
  {
    const std::lock_guard lock(mutex_);
    const auto known = places_.find(file.get());
    if (known != places_.end()) {
      if (!known->second->file.expired()) return;
      files_.erase(known->second);  // another one, which lay at the same address
      places_.erase(known);
    }
    if (files_.size() >= kFilesMax) {
      oldest = files_.front().file.lock();
      places_.erase(files_.front().address);
      files_.pop_front();
    }
    places_[file.get()] = files_.insert(files_.end(), Entry{file.get(), file});
    if (files_.size() == 1) changed_.notify_all();
  }
  if (oldest) drop_(oldest);
}

size_t PageWatch::size() const {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

void PageWatch::drop_all() {
  Entries files;
  {
    const std::lock_guard lock(mutex_);
    files.swap(files_);
    places_.clear();
  }
  for (const Entry& entry : files) {
    if (const auto file = entry.file.lock()) drop_(file);
  }
}

// Those that have to be asked for now; the list loses what is closed, gone, or without pages.
std::vector<std::shared_ptr<Inode>> PageWatch::due() {
  const SteadyTime now = clock_.now();
  std::vector<std::shared_ptr<Inode>> due;
  const std::lock_guard lock(mutex_);
  for (auto place = places_.begin(); place != places_.end();) {
    auto file = place->second->file.lock();
    if (!file || !file->is_open() || !file->pages.handed_out()) {
      files_.erase(place->second);
      place = places_.erase(place);
      continue;
    }
    ++place;
    if (now - file->pages.checked_at() >= patience_ / 2) due.push_back(std::move(file));
  }
  return due;
}

void PageWatch::turn() {
  const auto files = due();
  const SteadyTime deadline = clock_.now() + patience_ / kTurns;
  for (Files left = files; !left.empty() && clock_.now() < deadline;) {
    const Files next = left.first(std::min(left.size(), kFilesAtOnce));
    left = left.subspan(next.size());
    ask_(next, deadline);
  }
  for (const auto& file : files) {
    // The next turn may end too late.
    const auto age = clock_.now() - file->pages.checked_at();
    if (file->pages.handed_out() && age >= patience_ * 3 / 4) drop_(file);
  }
}

void PageWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (files_.empty()) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, patience_ / kTurns);
    if (stopping_) return;
    lock.unlock();
    turn();
    lock.lock();
  }
}

}  // namespace pnfsrdma::fuse_client
