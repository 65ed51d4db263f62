// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/initiator/cancellation.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/parts.h"

// Durability (DESIGN.md section 5). fdatasync of an overwrite waits for one network round trip: the native
// FLUSHes, or the commit message, or the LAYOUTCOMMIT. fsync has its mtime travel beside that. Only a new
// size costs a second wait, behind the flush (RFC 8881, 12.5.4).
namespace pnfsrdma::initiator {

namespace {

constexpr int kAttemptsMax = 3;
constexpr uint64_t kFlushBytesMax = uint64_t{2} << 30;
constexpr size_t kMessageRangesMax = brick::kPersistRangesPerMessage;

}  // namespace

struct FileIo::Parts::FlushTarget {
  uint64_t grant = 0;
  uint64_t offset = 0;  // in the grant
  uint64_t length = 0;
  rdma::RemoteSlice memory;  // of the grant
};

// One device's part of a flush: what is asked of it, one batch after the other, beside those of the others.
struct FileIo::Parts::FlushJob {
  Device* device = nullptr;
  std::vector<LayoutSegment> pieces;
  std::shared_ptr<Connection> connection;
  std::vector<FlushTarget> targets;  // that are not asked for yet
  std::vector<WorkItem> items;       // of the batch
  std::optional<WorkBatch> batch;    // between start and finish
  // Its brick has spoken behind the flush: the verifier is the same, or the writes are in doubt.
  bool answered = false;
  // What could not be flushed here: the MDS does it, or (`again`: the connection died) another try.
  std::vector<FileRange> failed;
  bool again = false;

  bool native() const { return connection->flush == FlushMethod::kNative; }
  size_t targets_per_batch() const {
    return native() ? connection->queue_pair.items_max() : kMessageRangesMax;
  }
  void give_up(bool worth_another_try) {
    failed.clear();
    for (const LayoutSegment& piece : pieces) failed.push_back({piece.offset, piece.length});
    targets.clear();
    again = worth_another_try;
  }
};

Result<> FileIo::Parts::sync(bool data_only, ErrorCursor& cursor) {
  (data_only ? fabric.statistics.fdatasyncs : fabric.statistics.fsyncs).add();
  Result<> outcome;
  for (int turn = 0; turn < kRestorationsMax; ++turn) {
    // What was lost with its layouts is written again before the flush.
    if (growth_void()) outcome = commit_as_mounted();
    if (!outcome) break;
    const uint64_t restorations = dirty.restorations();
    if (!dirty.grew() && !data_only && dirty.anything_uncommitted()) commit_beside();
    outcome = patience.as_mounted([&] { return flush(false); });
    if (outcome && dirty.grew()) outcome = commit_as_mounted();
    if (outcome) outcome = check_server();
    // Lost and written again at the commit: that is not flushed yet.
    if (!outcome || dirty.restorations() == restorations) return report_once(cursor, std::move(outcome));
  }
  if (outcome) outcome = fail(EIO, "layouts are lost again and again");
  return report_once(cursor, std::move(outcome));
}

Result<> FileIo::Parts::check_server() {
  const uint64_t written = written_by_mds;
  if (!fabric.options.require_power || written == checked_by_mds) return {};
  const auto least = mds.get_device_info(nfs4::kEveryDevice);
  if (!least && least.error().status != nfs4::Status::kNoEnt)
    return fail(least.error().to_errno(), "GETDEVICEINFO of all devices");
  const bool weak = !least || least->durability != Durability::kPower;
  if (mount.told.server_too_weak.exchange(weak) != weak && weak) {
    log_error(
        "initiator",
        "server-too-weak durability={} cause=\"require_durability=persistent, and a brick of this server "
        "has memory that does not survive a loss of power: an fsync of what went through the MDS is "
        "EIO\" fix=\"remove the brick, put its pool on PMEM or a disk file, or mount without "
        "require_durability\"",
        least ? to_string(least->durability) : "unknown");
  }
  if (weak) return fail(EIO, "a brick of the server has memory that does not survive a loss of power");
  checked_by_mds = written;
  return {};
}

Result<> FileIo::Parts::report_once(ErrorCursor& cursor, Result<> outcome) {
  // Whoever asked is gone, and the descriptor may be another process's too: that one has heard nothing.
  if (!outcome && outcome.error().number() == EINTR) return outcome;
  const uint64_t losses = dirty.losses();
  const bool news = cursor.take(losses);
  if (news) dirty.heard(losses);
  return report(news, std::move(outcome));
}

Result<> FileIo::Parts::report(bool lost, Result<> outcome) {
  if (outcome && lost) outcome = fail(EIO, "writes were lost: the brick restarted before they were flushed");
  if (!outcome && outcome.error().number() != EINTR) {
    log_warning("initiator", "sync-failed size={} error=\"{}\"", dirty.size(), outcome.error().to_string());
  }
  return outcome;
}

bool FileIo::Parts::to_be_flushed() {
  std::lock_guard lock(flush_mutex);
  return flushing || dirty.anything_unflushed();
}

Result<> FileIo::Parts::flush(bool through_gate) {
  std::unique_lock lock(flush_mutex);
  // Whoever comes meanwhile waits: what it wrote may be in the hands of that flush, which ends as calls do.
  // If it found its brick silent, they need not find that out one after the other.
  const uint64_t silent_before = silent_flushes;
  while (flushing) {
    TRY(patience.still_wanted("flush"));
    // That one may wait for a WRITE or truncation, and that for this recall. What went through the MDS needs no
    // layout.
    if (through_gate && sending_again)
      return fail(EAGAIN, "flush: what the server has lost is written again");
    flushed.wait_for(lock, std::chrono::seconds(1));
    if (silent_flushes != silent_before) return fail(kBrickSilent, "the brick does not answer");
  }
  if (!dirty.anything_unflushed()) return {};
  flushing = true;
  lock.unlock();
  Result<> outcome = flush_claimed(through_gate);
  lock.lock();
  flushing = false;
  if (!outcome && outcome.error().number() == kBrickSilent) ++silent_flushes;
  flushed.notify_all();
  return outcome;
}

Result<> FileIo::Parts::flush_claimed(bool through_gate) {
  for (int turn = 0; turn < kRestorationsMax; ++turn) {
    const Flush flush = dirty.begin_flush();
    bool sent_again = false;
    const Result<> outcome = flush_all(flush, through_gate, sent_again);
    dirty.end_flush(flush, outcome.has_value() && !sent_again);
    if (!outcome || !sent_again) return outcome;
  }
  return fail(EIO, "the server loses its uncommitted writes again and again");
}

void FileIo::Parts::set_sending_again(bool sending) {
  std::lock_guard lock(flush_mutex);
  sending_again = sending;
  flushed.notify_all();
}

void FileIo::Parts::flush_beside() {
  if (flush_posted.exchange(true)) return;
  mount.closing.post([this, alive = shared_from_this()] {
    flush_posted = false;
    // An error comes up again where the application asks for it.
    (void)flush(false);
  });
}

void FileIo::Parts::flush_if_old() {
  if (!std::exchange(was_unflushed, dirty.anything_unflushed()) || !was_unflushed) return;
  if (dirty.unflushed_on_resting_device()) return;
  // What went wrong is said to the next fsync, which finds it again.
  if (flush(false) && dirty.grew()) (void)commit_now();
}

Result<> FileIo::Parts::flush_all(const Flush& flush, bool through_gate, bool& sent_again) {
  const Result<> by_rdma = flush.by_rdma.empty() ? Result<>() : flush_rdma(flush, through_gate);
  const Result<> by_mds = flush.by_mds.empty() ? Result<>() : flush_mds(flush, through_gate, sent_again);
  return by_rdma ? by_mds : by_rdma;
}

Result<> FileIo::Parts::flush_mds(const Flush& flush, bool through_gate, bool& sent_again) {
  const uint64_t epoch = layouts.epoch;
  TRY_ASSIGN(const WriteVerifier verifier, flush_by_mds(flush.by_mds.ranges()));
  const DirtyList::Gone gone = dirty.gone_from_mds(flush, verifier);
  if (gone.lost) fabric.statistics.lost_writes.add();
  sent_again = !gone.copied.empty();
  if (!sent_again) unstable_epoch = epoch;
  if (!sent_again) return {};
  if (through_gate) return fail(EAGAIN, "flush: the server has lost uncommitted writes");
  set_sending_again(true);
  const Result<> outcome = send_again(gone.copied);
  set_sending_again(false);
  return outcome;
}

Result<> FileIo::Parts::flush_rdma(const Flush& flush, bool through_gate) {
  std::vector<FileRange> ranges(flush.by_rdma.ranges().begin(), flush.by_rdma.ranges().end());
  std::vector<FileRange> missing;
  std::vector<const Device*> answered;  // behind their part of the flush, under a verifier
  for (int attempt = 0; attempt < kAttemptsMax && !ranges.empty(); ++attempt) {
    FlushPin pin;
    cache.enter(pin, ranges, through_gate, layouts.epoch);
    missing.insert(missing.end(), pin.missing.begin(), pin.missing.end());
    ranges.clear();
    // By address: SharedQueuePair::start() wants one order.
    std::map<Device*, FlushJob, std::less<>> jobs;
    for (const LayoutSegment& piece : pin.pieces) {
      FlushJob& job = jobs[piece.device];
      job.device = piece.device;
      job.pieces.push_back(piece);
    }
    const Result<> outcome = flush_devices(jobs, flush);
    cache.leave(pin);
    TRY(outcome);
    for (const auto& [device, job] : jobs) {
      if (job.answered) answered.push_back(device);
      auto& rest = job.again ? ranges : missing;
      rest.insert(rest.end(), job.failed.begin(), job.failed.end());
    }
  }
  missing.insert(missing.end(), ranges.begin(), ranges.end());
  if (!missing.empty()) {
    TRY(flush_by_mds(missing));
    answered.clear();
  }
  return ask_the_others(flush, answered);
}

// The usual flush is one round trip, however many bricks: all are asked before the first one is waited for.
Result<> FileIo::Parts::flush_devices(std::map<Device*, FlushJob, std::less<>>& jobs, const Flush& flush) {
  for (auto& [device, job] : jobs) TRY(prepare_flush(job, flush));
  Result<> outcome;
  for (bool more = true; more && outcome;) {
    more = false;
    const SteadyTime deadline = fabric.io_deadline();
    for (auto& [device, job] : jobs) more = start_flush(job, deadline) || more;
    if (std::exchange(more, false)) fabric.statistics.rdma_round_trips.add();
    for (auto& [device, job] : jobs) {
      if (!job.batch) continue;
      job.connection->queue_pair.finish(*job.batch, deadline);
      const Result<> one = job.native() ? finish_native(job) : finish_message(job, flush);
      job.batch.reset();
      if (outcome) outcome = one;
      more = more || !job.targets.empty();
    }
  }
  return outcome;
}

Result<> FileIo::Parts::prepare_flush(FlushJob& job, const Flush& flush) {
  const auto connected = job.device->connect();
  if (!connected) {
    job.give_up(false);
    return {};
  }
  job.connection = *connected;
  verify(flush, job.device, job.connection->hello.verifier);
  if (!dirty.pending(flush, job.device)) {
    job.answered = true;
    return {};
  }
  for (const LayoutSegment& piece : job.pieces) {
    FlushTarget target{.grant = piece.write.grant, .offset = piece.skip, .length = piece.length};
    const bool live = piece.incarnation == job.connection->incarnation &&
                      job.connection->resolve(piece.generation, piece.write, piece.skip + piece.length,
                                              target.memory) == Connection::Lookup::kFound;
    if (live) {
      add_target(job, target);
    } else {
      job.failed.push_back({piece.offset, piece.length});
    }
  }
  if (job.targets.empty()) return {};
  switch (job.connection->flush) {
    case FlushMethod::kNative:
      fabric.statistics.flushes_native.add();
      return {};
    case FlushMethod::kCommitMessage:
      fabric.statistics.flushes_commit_message.add();
      return {};
    case FlushMethod::kLayoutCommit:
      break;
  }
  return flush_by_layout_commit(job);
}

void FileIo::Parts::add_target(FlushJob& job, FlushTarget target) {
  // A FLUSH names its length in 32 bits.
  for (; job.native() && target.length > kFlushBytesMax;
       target.offset += kFlushBytesMax, target.length -= kFlushBytesMax) {
    job.targets.push_back(target);
    job.targets.back().length = kFlushBytesMax;
  }
  job.targets.push_back(target);
}

Result<> FileIo::Parts::flush_by_layout_commit(FlushJob& job) {
  fabric.statistics.flushes_layoutcommit.add();
  std::vector<nfs4::PersistRange> persist;
  for (const LayoutSegment& piece : job.pieces) persist.push_back({piece.offset, piece.length});
  job.targets.clear();
  Result<> told = commit_now(std::move(persist));
  if (!told && told.error().number() == ESTALE) {
    // The layout is gone: the MDS flushes by file, not by layout.
    job.give_up(false);
    return {};
  }
  return told;
}

// One doorbell for as many as the send queue, or a message, takes; the usual fsync has one.
bool FileIo::Parts::start_flush(FlushJob& job, SteadyTime deadline) {
  if (job.targets.empty()) return false;
  const size_t count = std::min(job.targets_per_batch(), job.targets.size());
  const std::span<const FlushTarget> now = std::span(job.targets).first(count);
  brick::PersistCall call;
  job.items.assign(job.native() ? count : 1, WorkItem{});
  for (size_t i = 0; i < count; ++i) {
    const FlushTarget& target = now[i];
    if (job.native()) {
      job.items[i] = WorkItem{.opcode = rdma::Opcode::kFlush,
                              .remote = target.memory.slice(target.offset, target.length)};
    } else {
      call.ranges.push_back({target.grant, target.offset, target.length});
    }
  }
  job.targets.erase(job.targets.begin(), job.targets.begin() + static_cast<ptrdiff_t>(count));
  job.batch.emplace(job.items);
  if (job.native()) {
    job.connection->queue_pair.start(*job.batch, deadline);
  } else {
    job.connection->queue_pair.start(*job.batch, std::move(call), deadline);
  }
  return true;
}

// It fails when the verifier has changed since the connection was made.
Result<> FileIo::Parts::finish_native(FlushJob& job) {
  if (job.batch->succeeded()) {
    job.answered = job.targets.empty();
  } else {
    job.device->lost(job.connection);
    job.give_up(true);
  }
  return {};
}

Result<> FileIo::Parts::finish_message(FlushJob& job, const Flush& flush) {
  const std::optional<brick::PersistReply> reply = job.batch->reply();
  if (outdated(*job.connection, reply)) job.device->lost(job.connection);
  // Before the status: a flush that failed has changed the verifier.
  if (reply) verify(flush, job.device, reply->verifier);
  if (reply && !dirty.pending(flush, job.device)) {
    job.targets.clear();
  } else if (!reply || reply->status == brick::PersistStatus::kUnknownGrant) {
    job.give_up(!reply);
    return {};
  } else if (reply->status != brick::PersistStatus::kOk) {
    return fail(EIO, "the brick could not make the data durable");
  }
  job.answered = job.targets.empty();
  return {};
}

// Where no layout can be used the brick's memory is as it was: the MDS can have it flushed, behind the end of
// the file as well. Whether the brick still is the one that took the writes is for the verifier to say,
// behind that.
Result<WriteVerifier> FileIo::Parts::flush_by_mds(std::span<const FileRange> ranges) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const FileRange& range : ranges) {
    first = std::min(first, range.offset);
    last = std::max(last, range.end());
  }
  fabric.statistics.flushes_mds_commit.add();
  // Count 0 is "to the end of the file": for what does not fit 32 bits.
  const uint64_t length = last - first;
  const auto verifier =
      mds.commit(reference(true), {first, length > UINT32_MAX ? 0 : static_cast<uint32_t>(length)});
  if (!verifier) return fail(verifier.error().to_errno(), "COMMIT");
  return *verifier;
}

}  // namespace pnfsrdma::initiator
