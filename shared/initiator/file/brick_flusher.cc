// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/brick_flusher.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pnfsrdma::initiator {

namespace {

// A connection may die under a flush this often before the MDS has to carry it.
constexpr int kFlushAttemptsMax = 3;
constexpr uint64_t kFlushBytesMax = uint64_t{2} << 30;
constexpr size_t kMessageRangesMax = brick::kPersistRangesPerMessage;

}  // namespace

struct BrickFlusher::Target {
  uint64_t grant = 0;
  uint64_t offset = 0;  // in the grant
  uint64_t length = 0;
  rdma::RemoteSlice memory;  // of the grant
};

// One device's part of a flush: what is asked of it, one batch after the other, beside those of the others.
struct BrickFlusher::Job {
  Device* device = nullptr;
  std::vector<LayoutSegment> pieces;
  std::shared_ptr<Connection> connection;
  std::vector<Target> targets;     // that are not asked for yet
  std::vector<WorkItem> items;     // of the batch
  std::optional<WorkBatch> batch;  // between start and finish
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

Result<> BrickFlusher::flush(const Flush& flush, bool through_gate) {
  std::vector<FileRange> ranges(flush.by_rdma.ranges().begin(), flush.by_rdma.ranges().end());
  std::vector<FileRange> missing;
  std::vector<const Device*> answered;  // behind their part of the flush, under a verifier
  for (int attempt = 0; attempt < kFlushAttemptsMax && !ranges.empty(); ++attempt) {
    FlushPin pin;
    file_.cache.enter(pin, ranges, through_gate, file_.layouts.epoch);
    missing.insert(missing.end(), pin.missing.begin(), pin.missing.end());
    ranges.clear();
    // By address: SharedQueuePair::start() wants one order.
    Jobs jobs;
    for (const LayoutSegment& piece : pin.pieces) {
      Job& job = jobs[piece.device];
      job.device = piece.device;
      job.pieces.push_back(piece);
    }
    const Result<> outcome = flush_devices(jobs, flush);
    file_.cache.leave(pin);
    TRY(outcome);
    for (const auto& [device, job] : jobs) {
      if (job.answered) answered.push_back(device);
      auto& rest = job.again ? ranges : missing;
      rest.insert(rest.end(), job.failed.begin(), job.failed.end());
    }
  }
  missing.insert(missing.end(), ranges.begin(), ranges.end());
  if (!missing.empty()) {
    TRY(through_mds_.commit(missing));
    answered.clear();
  }
  return verifiers_.ask_the_others(flush, answered);
}

// The usual flush is one round trip, however many bricks: all are asked before the first one is waited for.
Result<> BrickFlusher::flush_devices(Jobs& jobs, const Flush& flush) {
  for (auto& [device, job] : jobs) TRY(prepare(job, flush));
  Result<> outcome;
  for (bool more = true; more && outcome;) {
    more = false;
    const SteadyTime deadline = file_.fabric.io_deadline();
    for (auto& [device, job] : jobs) more = start(job, deadline) || more;
    if (std::exchange(more, false)) file_.fabric.statistics.rdma_round_trips.add();
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

Result<> BrickFlusher::prepare(Job& job, const Flush& flush) {
  const auto connected = job.device->connect();
  if (!connected) {
    job.give_up(false);
    return {};
  }
  job.connection = *connected;
  verifiers_.verify(flush, job.device, job.connection->hello.verifier);
  if (!file_.dirty.pending(flush, job.device)) {
    job.answered = true;
    return {};
  }
  for (const LayoutSegment& piece : job.pieces) {
    Target target{.grant = piece.write.grant, .offset = piece.skip, .length = piece.length};
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
      file_.fabric.statistics.flushes_native.add();
      return {};
    case FlushMethod::kCommitMessage:
      file_.fabric.statistics.flushes_commit_message.add();
      return {};
    case FlushMethod::kLayoutCommit:
      break;
  }
  return flush_by_layout_commit(job);
}

void BrickFlusher::add_target(Job& job, Target target) {
  // A FLUSH names its length in 32 bits.
  for (; job.native() && target.length > kFlushBytesMax;
       target.offset += kFlushBytesMax, target.length -= kFlushBytesMax) {
    job.targets.push_back(target);
    job.targets.back().length = kFlushBytesMax;
  }
  job.targets.push_back(target);
}

Result<> BrickFlusher::flush_by_layout_commit(Job& job) {
  file_.fabric.statistics.flushes_layoutcommit.add();
  std::vector<nfs4::PersistRange> persist;
  for (const LayoutSegment& piece : job.pieces) persist.push_back({piece.offset, piece.length});
  job.targets.clear();
  Result<> told = committer_.commit_now(std::move(persist));
  if (!told && told.error().number() == ESTALE) {
    // The layout is gone: the MDS flushes by file, not by layout.
    job.give_up(false);
    return {};
  }
  return told;
}

// One doorbell for as many as the send queue, or a message, takes; the usual fsync has one.
bool BrickFlusher::start(Job& job, SteadyTime deadline) {
  if (job.targets.empty()) return false;
  const size_t count = std::min(job.targets_per_batch(), job.targets.size());
  const std::span<const Target> now = std::span(job.targets).first(count);
  brick::PersistCall call;
  job.items.assign(job.native() ? count : 1, WorkItem{});
  for (size_t i = 0; i < count; ++i) {
    const Target& target = now[i];
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
Result<> BrickFlusher::finish_native(Job& job) {
  if (job.batch->succeeded()) {
    job.answered = job.targets.empty();
  } else {
    job.device->lost(job.connection);
    job.give_up(true);
  }
  return {};
}

Result<> BrickFlusher::finish_message(Job& job, const Flush& flush) {
  const std::optional<brick::PersistReply> reply = job.batch->reply();
  if (outdated(*job.connection, reply)) job.device->lost(job.connection);
  // Before the status: a flush that failed has changed the verifier.
  if (reply) verifiers_.verify(flush, job.device, reply->verifier);
  if (reply && !file_.dirty.pending(flush, job.device)) {
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

}  // namespace pnfsrdma::initiator
