// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_state.h"

namespace pnfsrdma::initiator {

namespace {

// From one poll to the next while a gate is drained.
constexpr Milliseconds kPollPause{1};

}  // namespace

void FileState::set_source(OpenStateSource* source) {
  std::lock_guard lock(source_mutex_);
  source_ = source;
}

bool FileState::is_open() {
  std::lock_guard lock(source_mutex_);
  return source_ != nullptr;
}

FileReference FileState::reference(bool for_write, nfs4::Stateid* open_stateid, bool* open) {
  FileReference file{handle, {}};
  std::lock_guard lock(source_mutex_);
  auto state = source_ != nullptr ? source_->open_state(for_write) : std::nullopt;
  // Any open does to speak of the file (LAYOUTCOMMIT, LAYOUTRETURN, COMMIT).
  const bool exact = state.has_value();
  if (!state && source_ != nullptr) state = source_->open_state(!for_write);
  if (state) last_credential_ = state->credential;
  file.credential = last_credential_;
  if (open != nullptr) *open = exact;
  if (open_stateid != nullptr && state) *open_stateid = state->stateid;
  return file;
}

bool FileState::may_hold() {
  if (fabric.now() >= mds.lease_end()) return false;
  std::lock_guard lock(source_mutex_);
  return source_ != nullptr && source_->may_hold();
}

bool FileState::held_reference(FileReference& file, nfs4::Stateid& stateid) {
  std::lock_guard lock(source_mutex_);
  const auto state = source_ != nullptr ? source_->write_delegation() : std::nullopt;
  if (!state) return false;
  file = {handle, state->credential};
  stateid = state->stateid;
  return true;
}

bool FileState::renew_open(bool for_write, const nfs4::Stateid& refused, int& tries) {
  nfs4::Stateid known;
  (void)reference(for_write, &known);
  if (known.other == refused.other) {
    if (++tries == kStateidTries) return false;
    mds.renew_opens();
  }
  std::lock_guard lock(source_mutex_);
  return source_ == nullptr || !source_->locks_lost();
}

bool FileState::drain(FileRange range, SteadyTime deadline, bool with_flushes) {
  while (fabric.completions.any()) {
    fabric.completions.poll();
    const SteadyTime now = fabric.now();
    if (cache.drain(range, std::min(deadline, now + kPollPause), with_flushes)) return true;
    if (now >= deadline) return false;
  }
  return cache.drain(range, deadline, with_flushes);
}

void FileState::forget_copies(std::span<const FileRange> ranges) {
  for (const FileRange& range : ranges) kept.forget(range.offset, range.length);
}

}  // namespace pnfsrdma::initiator
