// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/through_mds.h"

#include <algorithm>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::initiator {

Result<size_t> ThroughMds::read(uint64_t offset, BufferSlice sink) {
  size_t done = 0;
  int tries = 0;
  while (done < sink.size()) {
    nfs4::Stateid stateid;
    bool open = false;
    const FileReference file = file_.reference(false, &stateid, &open);
    if (!open) return fail(EBADF, "READ: not open for reading");
    const size_t count = std::min(sink.size() - done, file_.mds.io_size_max());
    const auto answer = file_.mds.read(file, stateid, offset + done, sink.bytes().subspan(done, count));
    if (!answer) {
      if (is_lost_state(answer.error().status) && file_.renew_open(false, stateid, tries)) continue;
      return fail(answer.error().to_errno(), "READ through the MDS");
    }
    const size_t read = answer->data.size();
    done += read;
    file_.fabric.statistics.mds_reads.add();
    file_.fabric.statistics.mds_read_bytes.add(read);
    if (answer->end_of_file || read == 0) break;
  }
  return done;
}

Result<size_t> ThroughMds::write(uint64_t offset, BufferSlice source, Stability stability) {
  TRY(file_.mds_writes.enter([this] { return file_.patience.still_wanted("WRITE"); }));
  const bool durable = first_.exchange(false) || stability == Stability::kDataSync;
  const bool one = source.size() <= file_.mds.io_size_max();
  const auto written = send_writes(offset, source, durable && one ? Until::kDurable : Until::kCopied);
  file_.mds_writes.leave();
  // When much is kept it is flushed without being asked.
  if (unstable_memory_.used() >= unstable_memory_.limit() / 2) all_files_.flush_unstable_soon();
  return written;
}

// Whoever ends the delegation flushes behind that: it finds what was kept before it ended. What was kept behind that is
// written as if it had not been.
Result<bool> ThroughMds::hold(uint64_t offset, BufferSlice source) {
  if (!file_.may_hold()) return false;
  UnstableCopy copy = unstable_memory_.copy(source.bytes());
  if (!copy) return false;
  const FileRange range{offset, source.size()};
  TRY(file_.mds_writes.enter([this] { return file_.patience.still_wanted("WRITE"); }));
  file_.dirty.hold(range, std::move(copy), file_.fabric.clock.wall_now());
  const bool holds = file_.may_hold();
  if (!holds) file_.dirty.unhold(range);
  file_.mds_writes.leave();
  if (!holds) return false;
  file_.fabric.statistics.held_writes.add();
  all_files_.flush_held_later();
  return true;
}

Result<size_t> ThroughMds::send_writes(uint64_t offset, BufferSlice source, Until until, Under under) {
  size_t done = 0;
  while (done < source.size()) {
    const size_t count = std::min(source.size() - done, file_.mds.io_size_max());
    TRY_ASSIGN(const uint32_t written, send_write(offset + done, source.slice(done, count), until, under));
    done += written;
  }
  return done;
}

bool ThroughMds::find_stateid(Under under, FileReference& file, nfs4::Stateid& stateid) {
  if (under == Under::kDelegation) return file_.held_reference(file, stateid);
  bool open = false;
  file = file_.reference(true, &stateid, &open);
  return open;
}

// A delegation that was reclaimed has another stateid.
bool ThroughMds::renew_stateid(Under under, const nfs4::Stateid& refused, int& tries) {
  if (!file_.renew_open(true, refused, tries)) return false;
  if (under == Under::kOpen) return true;
  FileReference file;
  nfs4::Stateid now;
  return file_.held_reference(file, now) && now.other != refused.other;
}

Result<uint32_t> ThroughMds::send_write(uint64_t offset, BufferSlice source, Until until, Under under) {
  UnstableCopy copy = until == Until::kCopied ? unstable_memory_.copy(source.bytes()) : nullptr;
  const auto stable = copy ? nfs4::StableHow::kUnstable : nfs4::StableHow::kFileSync;
  if (!file_.dirty.keeps_copies()) file_.unstable_session = file_.layouts.session.load();
  for (int tries = 0;;) {
    FileReference file;
    nfs4::Stateid stateid;
    if (!find_stateid(under, file, stateid)) {
      if (under == Under::kDelegation) return fail(EIO, "WRITE: the delegation is gone");
      return fail(EBADF, "WRITE: not open for writing");
    }
    const uint64_t holdings = file_.cache.holdings();
    const auto answer = file_.mds.write(file, stateid, offset, source.bytes(), stable);
    if (!answer) {
      if (is_lost_state(answer.error().status) && renew_stateid(under, stateid, tries)) continue;
      return fail(answer.error().to_errno(),
                  "WRITE through the MDS (" + std::string(nfs4::to_string(answer.error().status)) + ")");
    }
    if (answer->count == 0) return fail(EIO, "WRITE through the MDS: nothing written");
    file_.cache.learn_size(offset + answer->count, holdings);
    file_.dirty.wrote_through_mds(offset, *answer, std::move(copy));
    ++written_;
    file_.kept.forget(offset, answer->count);
    file_.fabric.statistics.mds_writes.add();
    file_.fabric.statistics.mds_write_bytes.add(answer->count);
    return answer->count;
  }
}

// Where no layout can be used the brick's memory is as it was: the MDS can have it flushed, behind the end of
// the file as well. Whether the brick still is the one that took the writes is for the verifier to say,
// behind that.
Result<WriteVerifier> ThroughMds::commit(std::span<const FileRange> ranges) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const FileRange& range : ranges) {
    first = std::min(first, range.offset);
    last = std::max(last, range.end());
  }
  file_.fabric.statistics.flushes_mds_commit.add();
  // Count 0 is "to the end of the file": for what does not fit 32 bits.
  const uint64_t length = last - first;
  const auto verifier = file_.mds.commit(file_.reference(true),
                                         {first, length > UINT32_MAX ? 0 : static_cast<uint32_t>(length)});
  if (!verifier) return fail(verifier.error().to_errno(), "COMMIT");
  return *verifier;
}

Result<> ThroughMds::check_server() {
  const uint64_t written = written_;
  if (!file_.fabric.options.require_power || written == checked_) return {};
  const auto least = file_.mds.get_device_info(nfs4::kEveryDevice);
  if (!least && least.error().status != nfs4::Status::kNoEnt)
    return fail(least.error().to_errno(), "GETDEVICEINFO of all devices");
  const bool weak = !least || least->durability != Durability::kPower;
  if (told_.server_too_weak.exchange(weak) != weak && weak) {
    log_error(
        "initiator",
        "server-too-weak durability={} cause=\"require_durability=persistent, and a brick of this server "
        "has memory that does not survive a loss of power: fsync of data written through the MDS "
        "fails with EIO\" fix=\"remove the brick, put its pool on PMEM or a disk file, or mount without "
        "require_durability\"",
        least ? to_string(least->durability) : "unknown");
  }
  if (weak) return fail(EIO, "a brick of the server has memory that does not survive a loss of power");
  checked_ = written;
  return {};
}

}  // namespace pnfsrdma::initiator
