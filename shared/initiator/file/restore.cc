// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/cancellation.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/file_table.h"
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
  services.files->commit_growth();
  const SteadyTime began = services.now();
  const SteadyTime deadline = services.io_deadline();
  KeptMemory& memory = services.kept_memory;
  while (!memory.wait_for_room(std::min(deadline, services.now() + Milliseconds(100)))) {
    if (services.aborted || CancellationScope::cancelled() || services.now() >= deadline) return false;
    if (services.now() - began >= kLongWait && !services.room_shortage_logged.exchange(true)) {
      log_warning(
          "initiator",
          "growth-waits used={} limit={}: writes that make files grow wait until the server has taken "
          "the growth of before (LAYOUTCOMMIT)",
          memory.used(), memory.limit());
    }
  }
  if (services.room_shortage_logged.exchange(false)) log_info("initiator", "growth-goes-on");
  return true;
}

void FileIo::Parts::commit_growth_early() {
  const uint64_t used = services.kept_memory.used();
  if (used < services.kept_memory.limit() / 2) return;
  if (kept.bytes() >= used / 4) return start_commit_of_growth();
  if (services.commit_growth_posted.exchange(true)) return;
  services.background->post([&shared = services] {
    shared.commit_growth_posted = false;
    shared.files->commit_growth();
  });
}

void FileIo::Parts::start_commit_of_growth() {
  {
    std::lock_guard lock(commit_mutex);
    if (committing) return;
    committing = true;
    last_commit = services.now();
  }
  send_commit();
}

Result<> FileIo::Parts::restore_growth() {
  // Nobody writes meanwhile: an old copy must not come over a newer write. I/O that meets the closed gate
  // goes through the MDS, and there waits for the end of this commit first.
  const FileRange everything{0, UINT64_MAX};
  cache.close_gate(everything);
  Result<> outcome;
  while (!cache.drain(everything, services.now() + std::chrono::seconds(1), false)) {
    if (services.aborted) outcome = fail(ESHUTDOWN, "restore: the mount ends");
    if (CancellationScope::cancelled()) outcome = fail(EINTR, "restore");
    if (!outcome) break;
  }
  if (outcome) outcome = write_kept();
  cache.open_gate(nfs4::IoMode::kAny, everything);
  return outcome;
}

Result<> FileIo::Parts::write_kept() {
  TRY_ASSIGN(const BufferPool::Taken buffer, services.buffers->take());
  const BufferSlice all = buffer->slice(0, std::min(buffer->size(), services.mds.io_size_max()));
  uint64_t bytes = 0;
  // Only what is growth still: of what has become part of the file meanwhile a copy may be left, an old one.
  for (FileRange rest : dirty.growth()) {
    const uint64_t end = rest.end();
    while (const auto range = kept.first(rest, all.bytes())) {
      TRY(end_unknown(*range, true));  // else the next one who asks tries again
      const auto written = write_through_mds(range->offset, all.slice(0, range->length));
      if (!written) {
        const int number = written.error().number();
        // No answer: then the next one who asks tries again.
        if (number != EINTR && number != ESHUTDOWN && number != ETIMEDOUT) growth_lost(written.error());
        return std::unexpected(written.error());
      }
      bytes += range->length;
      rest = {range->end(), end - range->end()};
    }
  }
  kept.clear();
  if (dirty.restored()) services.statistics.lost_writes.add();
  services.statistics.restorations.add();
  services.statistics.restored_bytes.add(bytes);
  log_info("initiator", "growth-restored bytes={} size={}", bytes, dirty.server_size());
  return {};
}

void FileIo::Parts::growth_lost(const Error& error) {
  services.statistics.lost_writes.add();
  log_warning("initiator", "write-lost size={} cause=\"{}\"", dirty.size(), error.to_string());
  kept.clear();
  dirty.growth_lost();
}

}  // namespace pnfsrdma::initiator
