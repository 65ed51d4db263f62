// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/cancellation.h"
#include "shared/initiator/file/parts.h"

// Growth that a restart of a server must not cost. A layout that is lost takes with it what was written
// beyond the server's end of file; so copies of that are kept until LAYOUTCOMMIT, and then written again,
// through the MDS: it needs no layout, and the new size is told by the WRITE itself.
namespace pnfsrdma::initiator {

namespace {

// A write that waits this long for room is one that somebody asks about.
constexpr Milliseconds kLongWait{1000};

}  // namespace

std::optional<KeptWrites::Room> FileIo::Parts::room_for_copy(const LayoutPin& pin) {
  const uint64_t end = pin.offset + pin.length;
  const uint64_t from = std::max(pin.offset, pin.known_size);
  return from < end ? kept.set_aside(from, end - from) : KeptWrites::Room();
}

bool FileIo::Parts::make_room() {
  // An error comes up again where the application asks for it: at its fsync or close.
  if (kept.any()) return commit_now().has_value();
  all_files.commit_growth();
  const SteadyTime began = fabric.now();
  const SteadyTime deadline = fabric.io_deadline();
  KeptMemory& memory = mount.kept_memory;
  while (!memory.wait_for_room(std::min(deadline, fabric.now() + Milliseconds(100)))) {
    if (fabric.aborted || CancellationScope::cancelled() || fabric.now() >= deadline) return false;
    if (fabric.now() - began >= kLongWait && !mount.told.room_short.exchange(true)) {
      log_warning(
          "initiator",
          "growth-waits used={} limit={}: writes that make files grow wait until the server has taken "
          "the growth of before (LAYOUTCOMMIT)",
          memory.used(), memory.limit());
    }
  }
  if (mount.told.room_short.exchange(false)) log_info("initiator", "growth-goes-on");
  return true;
}

void FileIo::Parts::commit_growth_early() {
  const uint64_t used = mount.kept_memory.used();
  if (used < mount.kept_memory.limit() / 2) return;
  if (kept.bytes() >= used / 4) return start_commit_of_growth();
  all_files.commit_growth_soon();
}

void FileIo::Parts::start_commit_of_growth() {
  {
    std::lock_guard lock(commit_mutex);
    if (committing) return;
    committing = true;
    last_commit = fabric.now();
  }
  send_commit();
}

Result<> FileIo::Parts::restore_growth() {
  // I/O that meets the closed gate goes through the MDS, and there waits for the end of this commit first.
  return behind_gate([this] { return write_kept(); });
}

Result<> FileIo::Parts::behind_gate(const std::function<Result<>()>& work) {
  const FileRange everything{0, UINT64_MAX};
  cache.close_gate(everything);
  Result<> outcome;
  while (outcome && !cache.drain(everything, fabric.now() + std::chrono::seconds(1), false)) {
    outcome = patience.still_wanted("restore");
  }
  if (outcome) outcome = work();
  cache.open_gate(nfs4::IoMode::kAny, everything);
  return outcome;
}

Result<> FileIo::Parts::write_kept() {
  TRY_ASSIGN(const BufferPool::Taken buffer, mount.buffers.take());
  const BufferSlice all = buffer->slice(0, std::min(buffer->size(), mds.io_size_max()));
  uint64_t bytes = 0;
  // Only what is growth still: of what has become part of the file meanwhile a copy may be left, an old one.
  for (FileRange rest : dirty.growth()) {
    const uint64_t end = rest.end();
    while (const auto range = kept.first(rest, all.bytes())) {
      TRY(end_unknown(*range, true));  // else the next one who asks tries again
      const auto written = send_writes(range->offset, all.slice(0, range->length), false);
      if (!written) {
        // Else the next one who asks tries again.
        if (is_answer(written.error())) growth_lost(written.error());
        return std::unexpected(written.error());
      }
      bytes += range->length;
      rest = {range->end(), end - range->end()};
    }
  }
  kept.clear();
  if (dirty.restored()) fabric.statistics.lost_writes.add();
  fabric.statistics.restorations.add();
  fabric.statistics.restored_bytes.add(bytes);
  log_info("initiator", "growth-restored bytes={} size={}", bytes, dirty.server_size());
  return {};
}

void FileIo::Parts::growth_lost(const Error& error) {
  fabric.statistics.lost_writes.add();
  log_warning("initiator", "write-lost size={} cause=\"{}\"", dirty.size(), error.to_string());
  kept.clear();
  dirty.growth_lost();
}

Result<> FileIo::Parts::send_again(const std::vector<FileRange>& ranges) {
  TRY_ASSIGN(const BufferPool::Taken buffer, mount.buffers.take());
  const BufferSlice all = buffer->slice(0, std::min(buffer->size(), mds.io_size_max()));
  TRY(mds_writes.enter_alone([this] { return patience.still_wanted("WRITE"); }));
  const Result<> outcome = behind_gate([&]() -> Result<> {
    for (const FileRange& range : ranges) TRY(send_copies(range, all));
    return {};
  });
  mds_writes.leave_alone();
  if (outcome) {
    log_info("initiator", "unstable-resent size={} cause=\"the server has another write verifier\"",
             dirty.server_size());
  }
  return outcome;
}

Result<> FileIo::Parts::send_copies(FileRange rest, BufferSlice buffer) {
  const uint64_t end = rest.end();
  while (const auto range = dirty.first_copy(rest, buffer.bytes())) {
    const auto written = send_writes(range->offset, buffer.slice(0, range->length), true);
    if (!written) {
      // Else the next flush tries again.
      if (is_answer(written.error())) {
        fabric.statistics.lost_writes.add();
        log_warning("initiator", "write-lost size={} cause=\"{}\"", dirty.size(),
                    written.error().to_string());
        dirty.lost_at_mds(rest);
      }
      return std::unexpected(written.error());
    }
    fabric.statistics.resent_writes.add();
    fabric.statistics.resent_bytes.add(range->length);
    rest = {range->end(), end - range->end()};
  }
  return {};
}

Result<> FileIo::Parts::settle_doubt() {
  const Result<> outcome = patience.as_mounted([this] {
    Result<> flushed = flush(false);
    return unstable_in_doubt() ? flushed : Result<>();
  });
  // What else there is to say of the flush is fsync's.
  if (!outcome && !is_answer(outcome.error())) return outcome;
  return {};
}

void FileIo::Parts::flush_unstable_early() {
  const UnstableMemory& memory = mount.unstable_memory;
  if (memory.used() >= memory.limit() / 2) all_files.flush_unstable_soon();
}

}  // namespace pnfsrdma::initiator
