// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/restorer.h"

#include <algorithm>

#include "shared/base/log.h"

// Growth that a restart of a server must not cost. A layout that is lost takes with it what was written
// beyond the server's end of file; so copies of that are kept until LAYOUTCOMMIT, and then written again,
// through the MDS: it needs no layout, and the new size is told by the WRITE itself.
namespace pnfsrdma::initiator {

Result<> Restorer::restore_growth() {
  // I/O that meets the closed gate goes through the MDS, and there waits for the end of this commit first.
  return behind_gate([this] { return write_kept(); });
}

Result<> Restorer::write_kept() {
  TRY_ASSIGN(const BufferPool::Taken buffer, buffers_.take());
  const BufferSlice all = buffer->slice(0, std::min(buffer->size(), file_.mds.io_size_max()));
  uint64_t bytes = 0;
  // Only what is growth still: of what has become part of the file meanwhile a copy may be left, an old one.
  for (FileRange rest : file_.dirty.growth()) {
    const uint64_t end = rest.end();
    while (const auto range = file_.kept.first(rest, all.bytes())) {
      TRY(barrier_.end_unknown(*range, true));  // else the next one who asks tries again
      const auto written =
          through_mds_.send_writes(range->offset, all.slice(0, range->length), ThroughMds::Until::kDurable);
      if (!written) {
        // Else the next one who asks tries again.
        if (is_answer(written.error())) growth_lost(written.error());
        return std::unexpected(written.error());
      }
      bytes += range->length;
      rest = {range->end(), end - range->end()};
    }
  }
  file_.kept.clear();
  if (file_.dirty.restored()) file_.fabric.statistics.lost_writes.add();
  file_.fabric.statistics.restorations.add();
  file_.fabric.statistics.restored_bytes.add(bytes);
  log_info("initiator", "growth-restored bytes={} size={}", bytes, file_.dirty.server_size());
  return {};
}

void Restorer::growth_lost(const Error& error) {
  file_.fabric.statistics.lost_writes.add();
  log_warning("initiator", "write-lost size={} cause=\"{}\"", file_.dirty.size(), error.to_string());
  file_.kept.clear();
  file_.dirty.growth_lost();
}

Result<> Restorer::send_again(std::span<const FileRange> ranges) {
  const Result<> outcome = send_all(ranges, ThroughMds::Until::kCopied, ThroughMds::Under::kOpen);
  if (outcome) {
    log_info("initiator", "unstable-resent size={} cause=\"the server has another write verifier\"",
             file_.dirty.server_size());
  }
  return outcome;
}

Result<> Restorer::send_held(std::span<const FileRange> ranges) {
  const bool is_one = ranges.size() == 1 && ranges.front().length <= file_.mds.io_size_max();
  return send_all(ranges, is_one ? ThroughMds::Until::kDurable : ThroughMds::Until::kCopied,
                  ThroughMds::Under::kDelegation);
}

Result<> Restorer::send_all(std::span<const FileRange> ranges, ThroughMds::Until until,
                            ThroughMds::Under under) {
  TRY_ASSIGN(const BufferPool::Taken buffer, buffers_.take());
  const BufferSlice all = buffer->slice(0, std::min(buffer->size(), file_.mds.io_size_max()));
  TRY(file_.mds_writes.enter_alone([this] { return file_.patience.still_wanted("WRITE"); }));
  const Result<> outcome = behind_gate([&]() -> Result<> {
    for (const FileRange& range : ranges) TRY(send_copies(range, all, until, under));
    return {};
  });
  file_.mds_writes.leave_alone();
  return outcome;
}

Result<> Restorer::send_copies(FileRange rest, BufferSlice buffer, ThroughMds::Until until,
                               ThroughMds::Under under) {
  const uint64_t end = rest.end();
  while (const auto range = file_.dirty.first_copy(rest, buffer.bytes())) {
    const auto written =
        through_mds_.send_writes(range->offset, buffer.slice(0, range->length), until, under);
    if (!written) {
      // Else the next flush tries again.
      if (is_answer(written.error())) {
        file_.fabric.statistics.lost_writes.add();
        log_warning("initiator", "write-lost size={} cause=\"{}\"", file_.dirty.size(),
                    written.error().to_string());
        file_.dirty.lost_at_mds(rest);
      }
      return std::unexpected(written.error());
    }
    if (under == ThroughMds::Under::kOpen) {
      file_.fabric.statistics.resent_writes.add();
      file_.fabric.statistics.resent_bytes.add(range->length);
    }
    rest = {range->end(), end - range->end()};
  }
  return {};
}

Result<> Restorer::behind_gate(const std::function<Result<>()>& work) {
  const FileRange everything{0, UINT64_MAX};
  file_.cache.close_gate(everything);
  Result<> outcome;
  while (outcome && !file_.drain(everything, file_.fabric.now() + std::chrono::seconds(1), false)) {
    outcome = file_.patience.still_wanted("restore");
  }
  if (outcome) outcome = work();
  file_.cache.open_gate(nfs4::IoMode::kAny, everything);
  return outcome;
}

}  // namespace pnfsrdma::initiator
