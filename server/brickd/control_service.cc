// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/control_service.h"

#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::brick {

Status ControlService::check(uint64_t epoch) {
  const uint64_t claimed = parts_.pool.superblock().epoch();
  if (epoch < claimed) return Status::kStaleEpoch;
  if (epoch > claimed || epoch == 0) return Status::kInvalid;
  if (!in_force_) return Status::kLapsed;
  parts_.lease.renew();
  return Status::kOk;
}

void ControlService::renew_lease(uint64_t epoch) {
  if (in_force_ && epoch == parts_.pool.superblock().epoch()) parts_.lease.renew();
}

// Never from inside the call: callers may rely on it.
template <typename T>
void ControlService::answer(Done<T> done, T result) {
  parts_.loop.at_turn_end([done = std::move(done), result = std::move(result)] { done(result); });
}

ClaimResult ControlService::describe(Status status) const {
  const format::Superblock& content = parts_.pool.superblock().content();
  ClaimResult result;
  result.status = status;
  result.claimed_epoch = content.epoch;
  if (status != Status::kOk) return result;
  result.uuid = content.uuid;
  result.incarnation = advertised_.incarnation;
  result.verifier = parts_.gate.verifier();
  result.block_count = content.block_count;
  result.free_blocks = parts_.pool.table().counts().free();
  result.flush_methods = advertised_.flush_methods;
  result.durability = static_cast<uint32_t>(parts_.pool.persistence().durability());
  result.kind = std::string(to_string(parts_.pool.mapping().medium().kind));
  result.grants_max = advertised_.grants_max;
  result.paths = advertised_.paths;
  return result;
}

void ControlService::identify(Done<IdentifyResult> done) {
  const Superblock& superblock = parts_.pool.superblock();
  const BlockCounts& blocks = parts_.pool.table().counts();
  IdentifyResult result;
  result.uuid = superblock.content().uuid;
  result.claimed_epoch = superblock.epoch();
  result.owner = superblock.owner();
  result.block_count = superblock.content().block_count;
  result.used_blocks = blocks.allocated + blocks.parked;
  answer(std::move(done), std::move(result));
}

// The epoch is on the medium, no work of an older one runs any more, and no handle of an ended session is
// alive, when this is answered.
void ControlService::claim(const ClaimArguments& arguments, Done<ClaimResult> done) {
  parts_.committer.submit(
      [this, arguments]() -> Committer::Outcome {
        Superblock& superblock = parts_.pool.superblock();
        if (arguments.epoch <= superblock.epoch()) return {Status::kStaleEpoch};
        return {Status::kOk, superblock.set_claim(arguments.epoch, arguments.owner)};
      },
      [this, arguments, done = std::move(done)](Status status) {
        if (status != Status::kOk) return done(describe(status));
        log_info("brick", "claimed epoch={} owner=\"{}\"", arguments.epoch, arguments.owner);
        in_force_ = true;
        parts_.lease.renew();
        parts_.data.fence_epoch(arguments.epoch, [this, epoch = arguments.epoch, done] {
          parts_.sessions.when_ended_are_dead([this, epoch, done] {
            // Two claims at once: the later one has won.
            done(describe(epoch == parts_.pool.superblock().epoch() ? Status::kOk : Status::kStaleEpoch));
          });
        });
      });
}

void ControlService::alloc(const AllocArguments& arguments, Done<RunsResult> done) {
  auto runs = std::make_shared<std::vector<Run>>();
  parts_.committer.submit(
      [this, arguments, runs]() -> Committer::Outcome {
        if (const Status status = check(arguments.epoch); status != Status::kOk) return {status};
        auto allocated = parts_.pool.table().alloc(arguments);
        if (!allocated) return {allocated.error()};
        *runs = std::move(*allocated);
        return {Status::kOk};
      },
      [runs, done = std::move(done)](Status status) {
        RunsResult result{status};
        if (status == Status::kOk) result.runs = std::move(*runs);
        done(std::move(result));
      });
}

void ControlService::change(uint64_t epoch, std::function<Status()> decide, Done<StatusResult> done) {
  parts_.committer.submit(
      [this, epoch, decide = std::move(decide)]() -> Committer::Outcome {
        if (const Status status = check(epoch); status != Status::kOk) return {status};
        return {decide()};
      },
      [done = std::move(done)](Status status) { done(StatusResult{status}); });
}

void ControlService::free(const BlocksArguments& arguments, Done<StatusResult> done) {
  change(
      arguments.epoch,
      [this, arguments] {
        const Status status = parts_.pool.table().free(arguments.runs, parts_.loop.now());
        if (status == Status::kOk) parts_.zeroer.wake();
        return status;
      },
      std::move(done));
}

void ControlService::map(const MapArguments& arguments, Done<StatusResult> done) {
  change(arguments.epoch, [this, arguments] { return parts_.pool.table().map(arguments); }, std::move(done));
}

void ControlService::unmap(const BlocksArguments& arguments, Done<StatusResult> done) {
  change(
      arguments.epoch, [this, arguments] { return parts_.pool.table().unmap(arguments.runs); },
      std::move(done));
}

void ControlService::list(const ListArguments& arguments, Done<ListResult> done) {
  answer(std::move(done), parts_.pool.table().list(arguments.from, arguments.limit));
}

void ControlService::survey(const SurveyArguments& arguments, Done<SurveyResult> done) {
  answer(std::move(done), parts_.pool.table().survey(arguments.from, arguments.limit));
}

void ControlService::erase(const EraseArguments& arguments, Done<StatusResult> done) {
  change(
      arguments.epoch,
      [this, arguments] {
        if (arguments.uuid != parts_.pool.superblock().content().uuid) return Status::kInvalid;
        const Status status = parts_.pool.table().erase(arguments.from, arguments.count, parts_.loop.now());
        if (status == Status::kOk) parts_.zeroer.wake();
        return status;
      },
      std::move(done));
}

void ControlService::open_session(const OpenSessionArguments& arguments, Done<StatusResult> done) {
  Status status = check(arguments.epoch);
  if (status == Status::kOk) status = parts_.sessions.open(arguments.client, arguments.ticket);
  answer(std::move(done), StatusResult{status});
}

void ControlService::close_session(const CloseSessionArguments& arguments, Done<StatusResult> done) {
  Status status = check(arguments.epoch);
  if (status == Status::kOk) {
    status =
        parts_.sessions.close(arguments.client, [this, done] { answer(done, StatusResult{Status::kOk}); });
    if (status == Status::kOk) return;
  }
  answer(std::move(done), StatusResult{status});
}

void ControlService::list_sessions(Done<SessionsResult> done) {
  answer(std::move(done), parts_.sessions.list());
}

void ControlService::expose(const ExposeArguments& arguments, Done<ExposeResult> done) {
  const Status status = check(arguments.epoch);
  answer(std::move(done), status == Status::kOk ? parts_.sessions.expose(arguments) : ExposeResult{status});
}

void ControlService::withdraw(const WithdrawArguments& arguments, Done<StatusResult> done) {
  if (const Status status = check(arguments.epoch); status != Status::kOk) {
    return answer(std::move(done), StatusResult{status});
  }
  parts_.sessions.withdraw(arguments.client, arguments.grants,
                           [this, done = std::move(done)] { answer(done, StatusResult{Status::kOk}); });
}

void ControlService::list_grants(const ListGrantsArguments& arguments, Done<GrantsResult> done) {
  answer(std::move(done), parts_.sessions.list_grants(arguments.client, arguments.after));
}

void ControlService::list_all_grants(const ListAllGrantsArguments& arguments, Done<AllGrantsResult> done) {
  AllGrantsResult all;
  for (bool more = true; more;) {
    const uint64_t after = all.grants.empty() ? 0 : all.grants.back().grant;
    const GrantsResult page = parts_.sessions.list_grants(arguments.client, after);
    all.status = page.status;
    all.grants.insert(all.grants.end(), page.grants.begin(), page.grants.end());
    more = page.more;
  }
  answer(std::move(done), std::move(all));
}

void ControlService::persist(const RangesArguments& arguments, Done<PersistResult> done) {
  const auto finish = [this, done = std::move(done)](Status status) {
    answer(done, PersistResult{status, parts_.gate.verifier()});
  };
  if (const Status status = check(arguments.epoch); status != Status::kOk) return finish(status);
  ++control_persists_;
  parts_.data.persist(arguments, finish);
}

void ControlService::zero(const RangesArguments& arguments, Done<StatusResult> done) {
  const auto finish = [this, done = std::move(done)](Status status) { answer(done, StatusResult{status}); };
  if (const Status status = check(arguments.epoch); status != Status::kOk) return finish(status);
  for (const Range& range : arguments.ranges) control_zeroed_bytes_ += range.length;
  parts_.data.zero(arguments, finish);
}

void ControlService::copy(const CopyArguments& arguments, Done<StatusResult> done) {
  const auto finish = [this, done = std::move(done)](Status status) { answer(done, StatusResult{status}); };
  if (const Status status = check(arguments.epoch); status != Status::kOk) return finish(status);
  parts_.data.copy(arguments, finish);
}

void ControlService::statistics(Done<StatisticsResult> done) {
  const rdma::TransportCounters moved = parts_.sessions.transport_counters();
  const BlockCounts& blocks = parts_.pool.table().counts();
  StatisticsResult result;
  result.rdma_write_bytes = moved.responder_write_bytes;
  result.rdma_read_bytes = moved.responder_read_bytes;
  result.rdma_flushes = moved.responder_flush_operations;
  result.commit_messages = parts_.counters.commit_messages.load(std::memory_order_relaxed);
  result.free_blocks = blocks.free();
  result.clean_blocks = blocks.clean;
  result.block_count = parts_.pool.block_count();
  result.sessions = static_cast<uint32_t>(parts_.sessions.sessions());
  result.grants = static_cast<uint32_t>(parts_.sessions.grants());
  result.rdma_writes = moved.responder_write_operations;
  result.rdma_reads = moved.responder_read_operations;
  result.control_persists = control_persists_;
  result.control_zeroed_bytes = control_zeroed_bytes_;
  result.flush_failures = parts_.pool.superblock().content().unsafe_events;
  result.damaged_blocks = blocks.damaged;
  result.waiting_changes = static_cast<uint32_t>(parts_.committer.waiting());
  result.waiting_work = static_cast<uint32_t>(parts_.data.waiting());
  answer(std::move(done), std::move(result));
}

void ControlService::loop_turns(Done<LoopTurnsResult> done) {
  const TurnTimes& turns = parts_.loop.turns();
  const LatencyHistogram::Snapshot times = turns.times();
  const TurnTimes::Recent recent = turns.recent(parts_.loop.now());
  LoopTurnsResult result;
  result.counts.assign(times.counts.begin(), times.counts.end());
  result.sum_us = static_cast<uint64_t>(times.sum.count() / 1000);
  result.slow = turns.slow();
  result.longest_ms = static_cast<uint32_t>(std::chrono::duration_cast<Milliseconds>(recent.longest).count());
  result.stalled = static_cast<uint32_t>(recent.stalled);
  answer(std::move(done), std::move(result));
}

void ControlService::session_traffic(Done<SessionTrafficResult> done) {
  answer(std::move(done), parts_.sessions.traffic());
}

}  // namespace pnfsrdma::brick
