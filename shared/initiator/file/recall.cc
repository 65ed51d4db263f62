// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/parts.h"

// Giving layouts back. The order is what makes it safe: gate, drain, flush, LAYOUTCOMMIT, LAYOUTRETURN (a
// late access kills the queue pair and with it everybody's I/O). Nothing here takes a lock that a FUSE thread
// holds across a call.
namespace pnfsrdma::initiator {

namespace {

nfs4::LayoutReturnArguments file_return(nfs4::IoMode iomode, FileRange range, const nfs4::Stateid& stateid) {
  return {.layout_type = nfs4::kLayoutTypePmem,
          .io_mode = iomode,
          .what = nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>(
              {.offset = range.offset, .length = range.length, .stateid = stateid})};
}

}  // namespace

Result<> FileIo::Parts::prepare_return(FileRange gate, bool changed) {
  // I/O ends by its own deadline; twice that is for the connection that has to be given up.
  if (!cache.drain(gate, fabric.now() + 2 * fabric.options.io_timeout)) {
    log_error("initiator", "drain-timeout offset={} length={}", gate.offset, gate.length);
  }
  // clora_changed: the layout is void already, what was written under it is not wanted there.
  if (changed) {
    dirty.void_growth();
    return {};
  }
  const Result<> flushed_all = flush(true);
  const Result<> told = commit_now();
  for (const Result<>& outcome : {flushed_all, told}) {
    if (!outcome) log_warning("initiator", "return-incomplete error=\"{}\"", outcome.error().to_string());
  }
  return told;
}

void FileIo::Parts::give_back(nfs4::IoMode iomode, FileRange gate, FileRange returned, bool changed) {
  // What the server has not been told of by now it zeroes at the return.
  if (!prepare_return(gate, changed)) void_growth();
  (void)return_layout(iomode, gate, returned);
}

void FileIo::Parts::begin_bulk_return(FileRange gate, bool changed) {
  if (!prepare_return(gate, changed)) void_growth();
  (void)cache.start_return(nfs4::IoMode::kAny, gate, fabric.io_deadline());
}

void FileIo::Parts::end_return(nfs4::IoMode iomode, FileRange gate, const std::optional<nfs4::Stateid>& left,
                               bool answered) {
  cache.finish_return(left, answered);
  if (answered) dirty.dead(gate);
  cache.open_gate(iomode, gate);
}

bool FileIo::Parts::return_layout(nfs4::IoMode iomode, FileRange gate, FileRange returned) {
  const auto stateid = cache.start_return(iomode, gate, fabric.io_deadline());
  std::optional<nfs4::Stateid> left;
  bool answered = false;
  for (int tries = 0; stateid && tries < kStateidTries; ++tries) {
    const auto newest = cache.stateid();
    if (!newest) break;
    fabric.statistics.layoutreturns.add();
    const auto answer = mds.layout_return(reference(true), file_return(iomode, returned, *newest));
    if (answer) {
      left = answer->stateid;
      answered = true;
    } else if (is_lost_state(answer.error().status) && answer.error().status != nfs4::Status::kOldStateid) {
      cache.drop_all();  // nothing of it is in force at the server
      answered = true;
    }
    if (answered || answer.error().status != nfs4::Status::kOldStateid) break;
  }
  end_return(iomode, gate, left, answered);
  return answered;
}

bool FileIo::Parts::take_from_brick(FileRange range, bool committing, bool again) {
  FileRange gate = range;
  if (!cache.begin_return(nfs4::IoMode::kAny, gate)) {
    if (!again) return false;
    cache.close_gate(gate);
  }
  (void)cache.drain(gate, fabric.now() + 2 * fabric.options.io_timeout);
  if (!committing && !commit_now()) void_growth();
  return return_layout(nfs4::IoMode::kAny, gate, gate);
}

bool FileIo::Parts::take_forgotten(const UnknownWrites& writes, bool committing) {
  const auto now = cache.stateid();
  if (now && now->other == writes.layout.other) return take_from_brick(writes.range, committing, true);
  fabric.statistics.layoutreturns.add();
  const auto answer =
      mds.layout_return(reference(true), file_return(nfs4::IoMode::kAny, writes.range, writes.layout));
  if (answer) return true;
  return is_lost_state(answer.error().status) && answer.error().status != nfs4::Status::kOldStateid;
}

Result<> FileIo::Parts::end_unknown(FileRange range, bool committing) {
  const SteadyTime deadline = fabric.io_deadline();
  while (const auto writes = dirty.unknown_in(range)) {
    // A local abort kills nothing that has left this host: only the brick and the MDS can say that it is
    // dead.
    const auto connected = writes->device->connect();
    if (connected && (*connected)->hello.connection != writes->connection) {
      dirty.dead(writes->device);
    } else if (writes->lineage != cache.lineage() && take_forgotten(*writes, committing)) {
      dirty.dead(writes->range);
    } else if (!take_from_brick(writes->range, committing, false)) {
      // A return of it is under way, or had no answer: then it is sent again, later.
      const Result<> rested = patience.rest_of_brick(deadline);
      if (!rested &&
          (rested.error().number() != kBrickSilent || !take_from_brick(writes->range, committing, true)))
        return rested;
    }
  }
  return {};
}

void FileIo::Parts::void_growth() {
  // Not beside a commit that would tell its size.
  if (!dirty.grew() || !claim_commit()) return;
  dirty.void_growth();
  end_commit();
  mount.background.post([this, alive = shared_from_this()] { (void)commit_now(); });
}

void FileIo::Parts::return_everything() {
  FileRange gate{0, UINT64_MAX};
  if (cache.begin_return(nfs4::IoMode::kAny, gate))
    give_back(nfs4::IoMode::kAny, gate, {0, UINT64_MAX}, false);
  // What went through the MDS, or under a layout that is lost.
  if (!to_be_flushed()) return;
  Result<> outcome = check_server();
  if (outcome) outcome = flush(false);
  if (outcome) return;
  if (outcome.error().number() == ESTALE) {
    dirty.forget_unflushed();  // the file has been removed: nobody will ask for it again
    return;
  }
  log_warning("initiator", "flush-incomplete error=\"{}\"", outcome.error().to_string());
}

Result<std::optional<nfs4::LayoutReturnArguments>> FileIo::Parts::truncating(uint64_t new_size) {
  // What is written again meanwhile would make the file longer.
  TRY(mds_writes.enter([this] { return patience.still_wanted("truncate"); }));
  auto prepared = prepare_truncation(new_size);
  if (!prepared) mds_writes.leave();
  return prepared;
}

Result<std::optional<nfs4::LayoutReturnArguments>> FileIo::Parts::prepare_truncation(uint64_t new_size) {
  {
    // The kernel sends one at a time, but does not wait for one that was interrupted.
    std::unique_lock lock(truncation_mutex);
    if (!truncation_done.wait_until(lock, fabric.io_deadline(), [&] { return !truncation; })) {
      return fail(EBUSY, "truncate: another one is under way");
    }
    truncation.emplace();
  }
  Truncation now{.gate = {new_size, UINT64_MAX - new_size}, .holdings = cache.holdings()};
  now.closed = cache.begin_return(nfs4::IoMode::kAny, now.gate);
  if (!now.closed) {
    // Nothing held beyond: but a size that only we know must not be told after the SETATTR.
    if (Result<> told = commit_now(); !told) {
      end_truncation();
      return std::unexpected(told.error());
    }
    {
      std::lock_guard lock(truncation_mutex);
      truncation = now;
    }
    dirty.begin_truncation();
    return std::nullopt;
  }
  const Result<> told = prepare_return(now.gate, false);
  // The server would put zeros where it knows of nothing.
  if (!told && dirty.grew_before(new_size)) {
    end_truncation();
    cache.open_gate(nfs4::IoMode::kAny, now.gate);
    return std::unexpected(told.error());
  }
  const auto stateid = cache.start_return(nfs4::IoMode::kAny, now.gate, fabric.io_deadline());
  now.returning = true;
  now.holdings = cache.holdings();
  {
    std::lock_guard lock(truncation_mutex);
    truncation = now;
  }
  dirty.begin_truncation();
  if (!stateid) return std::nullopt;
  fabric.statistics.layoutreturns.add();
  return file_return(nfs4::IoMode::kAny, {now.gate.offset, UINT64_MAX}, *stateid);
}

FileIo::Parts::Truncation FileIo::Parts::end_truncation() {
  std::lock_guard lock(truncation_mutex);
  truncation_done.notify_all();
  return std::exchange(truncation, std::nullopt).value_or(Truncation{});
}

void FileIo::Parts::layout_returned(const nfs4::LayoutReturnResult& result) {
  {
    std::lock_guard lock(truncation_mutex);
    if (!truncation || !std::exchange(truncation->returning, false)) return;
  }
  cache.finish_return(result.stateid, true);
}

uint64_t FileIo::Parts::truncated(uint64_t new_size, bool done) {
  const Truncation was = end_truncation();
  if (done) cache.learn_size(new_size, was.holdings);
  const DirtyList::Cut cut = dirty.end_truncation(done ? std::optional(new_size) : std::nullopt);
  forget_copies(cut.settled);
  // Returned, and not cut after all: what was not told is zeroed.
  if (was.closed && !done) void_growth();
  if (was.returning) cache.finish_return(std::nullopt, false);
  if (was.closed) cache.open_gate(nfs4::IoMode::kAny, was.gate);
  mds_writes.leave();
  return cut.version;
}

}  // namespace pnfsrdma::initiator
