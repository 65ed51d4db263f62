// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_table.h"

#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/inside.h"

namespace pnfsrdma::initiator {

FileTable::Entry FileTable::open(const nfs4::FileHandle& handle, OpenStateSource& source, uint64_t size) {
  std::lock_guard lock(mutex_);
  Entry& entry = files_[handle];
  if (!entry) {
    entry = std::make_shared<FileIo>(std::make_shared<FileInside>(mount_, *this, handle, size));
  } else if (!is_open(entry)) {
    // Nothing of ours is under way.
    entry->inside().dirty.server_size(size);
  }
  entry->inside().set_source(&source);
  return entry;
}

FileTable::Entry FileTable::find(const nfs4::FileHandle& handle) {
  std::lock_guard lock(mutex_);
  const auto found = files_.find(handle);
  return found == files_.end() ? nullptr : found->second;
}

std::vector<FileTable::Entry> FileTable::all() {
  std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  entries.reserve(files_.size());
  for (const auto& [handle, entry] : files_) entries.push_back(entry);
  return entries;
}

bool FileTable::is_open(const Entry& entry) {
  return entry->inside().is_open();
}

void FileTable::closed(FileState& file) {
  bool shrink_now = false;
  {
    std::lock_guard lock(mutex_);
    file.set_source(nullptr);
    file.closed_serial = next_serial_++;
    shrink_now = ++closed_count_ > closed_max_ && !std::exchange(shrinking_, true);
  }
  forget_if_idle(file.handle);
  if (shrink_now) {
    mount_.closing.post([this] { shrink(closed_max_ - closed_max_ / 8); });
  }
}

void FileTable::shrink(size_t keep) {
  std::vector<Entry> idle;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [handle, entry] : files_) {
      if (!is_open(entry)) idle.push_back(entry);
    }
    std::sort(idle.begin(), idle.end(), [](const Entry& a, const Entry& b) {
      return a->inside().closed_serial < b->inside().closed_serial;
    });
    closed_count_ = idle.size();
    idle.resize(idle.size() - std::min(idle.size(), keep));
  }
  for (const Entry& entry : idle) {
    if (mount_.fabric.aborted) break;
    if (entry->inside().dirty.unflushed_on_resting_device()) continue;
    // Reopened meanwhile: then it just asks for its layout again.
    entry->inside().returner.return_everything();
    forget_if_idle(entry->inside().handle);
  }
  std::lock_guard lock(mutex_);
  shrinking_ = false;
  const bool too_many = closed_count_ > closed_max_;
  if (std::exchange(too_many_, too_many) != too_many && too_many) {
    log_warning("initiator",
                "closed-files-unflushed count={} cause=\"their bricks do not answer, or their flush fails\"",
                closed_count_);
  }
}

void FileTable::flush_old() {
  for (const Entry& entry : all()) {
    if (mount_.fabric.aborted) return;
    entry->inside().flusher.flush_if_old();
    forget_if_idle(entry->inside().handle);
  }
}

void FileTable::flush_unstable() {
  for (const Entry& entry : all()) {
    if (mount_.fabric.aborted) return;
    if (!entry->inside().dirty.keeps_copies()) continue;
    // What went wrong is said to the next fsync, which finds it again.
    (void)entry->inside().flusher.flush(false);
    forget_if_idle(entry->inside().handle);
  }
}

void FileTable::tell_activity() {
  std::vector<LayoutReport> reports;
  for (const Entry& entry : all()) {
    FileInside& inside = entry->inside();
    const auto layout = inside.cache.stateid();
    if (layout && inside.tells_activity())
      reports.push_back({inside.reference(false), inside.activity.take(*layout)});
  }
  if (!reports.empty()) mount_.mds.start_layout_statistics(std::move(reports));
}

void FileTable::commit_growth() {
  for (const Entry& entry : all()) {
    if (entry->inside().kept.any()) entry->inside().committer.start_commit();
  }
}

void FileTable::commit_growth_soon() {
  if (commit_growth_posted_.exchange(true)) return;
  mount_.background.post([this] {
    commit_growth_posted_ = false;
    commit_growth();
  });
}

void FileTable::flush_unstable_soon() {
  if (flush_unstable_posted_.exchange(true)) return;
  mount_.closing.post([this] {
    flush_unstable_posted_ = false;
    flush_unstable();
  });
}

void FileTable::flush_held_later() {
  if (flush_held_posted_.exchange(true)) return;
  mount_.closing.after(kHeldAtMost, [this] {
    flush_held_posted_ = false;
    flush_held();
  });
}

// What went wrong is said to the next fsync or close.
void FileTable::flush_held() {
  for (const Entry& entry : all()) {
    if (mount_.fabric.aborted) return;
    if (entry->inside().dirty.holds()) (void)entry->inside().flusher.flush(false);
  }
}

void FileTable::forget_if_idle(const nfs4::FileHandle& handle) {
  std::lock_guard lock(mutex_);
  const auto found = files_.find(handle);
  if (found == files_.end() || is_open(found->second)) return;
  FileInside& inside = found->second->inside();
  // Who opens it next may fsync what was written before, and is to hear of what was lost.
  if (inside.flusher.to_be_flushed() || inside.dirty.losses() > inside.dirty.unheard_from()) return;
  if (inside.cache.holds_anything() || inside.dirty.anything_uncommitted()) return;
  files_.erase(found);
  if (closed_count_ > 0) --closed_count_;
}

}  // namespace pnfsrdma::initiator
