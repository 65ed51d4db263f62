// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/rdma_memory/wire.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/sync.h"
#include "shared/rdma/whole_store.h"

namespace pnfsrdma::rdma::memory {
namespace {

constexpr size_t kConnecting = 0;  // the side of connect(); 1 is that of accept()

SteadyTime now() {
  return steady_now();
}

// Copies between two registered places, or nothing when either has died.
bool copy(Registration& from_region, const std::byte* from, Registration& to_region, std::byte* to,
          size_t count) {
  Pin from_pin(from_region), to_pin(to_region);
  if (!from_pin || !to_pin) return false;
  std::memmove(to, from, count);
  return true;
}

Access wanted(Opcode opcode) {
  switch (opcode) {
    case Opcode::kWrite:
    case Opcode::kAtomicWrite:
      return Access::kRemoteWrite;
    case Opcode::kFlush:
      return Access::kRemoteFlush;
    default:
      return Access::kRemoteRead;
  }
}

// The region of the target that lets the request reach `length` bytes, or nullptr.
std::shared_ptr<Registration> granted(const End& target, const WorkRequest& request, uint64_t length) {
  auto region = target.domain->find(request.remote.key);
  if (region == nullptr || !region->covers(request.remote.address, length)) return nullptr;
  return allows(region->access(), wanted(request.opcode)) ? region : nullptr;
}

}  // namespace

Result<> Wire::set_end(size_t side, std::shared_ptr<SoftwareDomain> domain, const QueuePairLimits& limits,
                       std::string peer) {
  End& end = ends_[side];
  end.domain = std::move(domain);
  end.limits = limits;
  end.peer = std::move(peer);
  end.timer = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!end.timer) return std::unexpected(Error::from_errno("timerfd_create"));
  return {};
}

Result<> Wire::post(size_t side, WorkRequest request) {
  std::lock_guard lock(mutex_);
  if (!connected()) return pnfsrdma::fail(ENOTCONN, "the connection has ended");
  End& end = ends_[side];
  if (end.posted.size() + end.sends_finished >= end.limits.send_depth) {
    return pnfsrdma::fail(ENOBUFS, "the send queue is full");
  }
  end.posted.push_back(std::move(request));
  return {};
}

Result<> Wire::post_receive(size_t side, uint64_t work_id, LocalSlice buffer) {
  std::lock_guard lock(mutex_);
  if (!connected()) return pnfsrdma::fail(ENOTCONN, "the connection has ended");
  End& end = ends_[side];
  if (end.receives.size() + (end.finished.size() - end.sends_finished) >= end.limits.receive_depth) {
    return pnfsrdma::fail(ENOBUFS, "the receive queue is full");
  }
  End::Receive& receive = end.receives.emplace_back();
  receive.work_id = work_id;
  receive.buffer.fill(work_id, Opcode::kReceive, {});
  receive.buffer.bind(*end.domain, buffer, Access::kLocalWrite);
  if (!std::exchange(end.has_received, true)) run_posted(1 - side);
  return {};
}

void Wire::submit(size_t side) {
  std::lock_guard lock(mutex_);
  run_posted(side);
}

void Wire::run_posted(size_t side) {
  End& source = ends_[side];
  while (!source.posted.empty()) {
    // accept() answers before it returns the queue pair, so the connecting side may speak before the
    // accepting one could post anything. Over TCP its message would wait in the socket; here it waits in the
    // queue.
    bool early = side == kConnecting && !ends_[1 - side].has_received;
    if (early && connected() && source.posted.front().opcode == Opcode::kSend) return;
    WorkRequest request = std::move(source.posted.front());
    source.posted.pop_front();
    Outcome outcome = Outcome::kFlushed;
    if (connected()) {
      bool drop = faults_.drop_after_operations && operations_ >= *faults_.drop_after_operations;
      ++operations_;
      outcome = drop ? Outcome::kConnectionLost : run(source, ends_[1 - side], request);
    }
    finish(source,
           {request.work_id, request.opcode, outcome, outcome == Outcome::kSuccess ? request.length : 0});
    if (outcome != Outcome::kSuccess) disconnect();
  }
}

Outcome Wire::run(End& source, End& target, WorkRequest& request) {
  if (request.local_protection) return Outcome::kLocalProtection;
  if (request.opcode == Opcode::kSend) return deliver(source, target, request);
  return request.opcode == Opcode::kAtomicWrite ? run_atomic_write(source, target, request)
                                                : run_one_sided(source, target, request);
}

// WRITE, READ and FLUSH against the target's domain. Those of no bytes look at no key, as RFC 5040 has it.
Outcome Wire::run_one_sided(End& source, End& target, WorkRequest& request) {
  const bool flush = request.opcode == Opcode::kFlush, write = request.opcode == Opcode::kWrite;
  const uint64_t length = flush ? request.remote.length : request.length;
  auto& counter = flush   ? source.counters.flush_operations
                  : write ? source.counters.write_operations
                          : source.counters.read_operations;
  if (length > 0) {
    auto region = granted(target, request, length);
    if (region == nullptr) return Outcome::kRemoteAccess;
    std::byte* at = region->at(request.remote.address);
    if (flush && request.level == FlushLevel::kPersistent) {
      const Flushed flushed = flush_by_pieces(*region, {at, length});
      if (flushed == Flushed::kRegionDied) return Outcome::kRemoteAccess;
      if (flushed == Flushed::kFailed) return Outcome::kRemoteOperation;
    }
    for (uint32_t i = 0; !flush && i < request.slice_count; ++i) {
      BoundSlice& slice = request.slices[i];
      bool copied = write ? copy(*slice.registration, slice.address, *region, at, slice.length)
                          : copy(*region, at, *slice.registration, slice.address, slice.length);
      if (!copied) return slice.registration->dead() ? Outcome::kLocalProtection : Outcome::kRemoteAccess;
      at += slice.length;
    }
  }
  AtomicCounters::add(counter, 1);
  if (flush) {
    AtomicCounters::add(target.counters.responder_flush_operations, 1);
  } else {
    AtomicCounters::add(write ? source.counters.write_bytes : source.counters.read_bytes, length);
    AtomicCounters::add(write ? target.counters.responder_write_bytes : target.counters.responder_read_bytes,
                        length);
    AtomicCounters::add(
        write ? target.counters.responder_write_operations : target.counters.responder_read_operations, 1);
  }
  return Outcome::kSuccess;
}

Outcome Wire::run_atomic_write(End& source, End& target, const WorkRequest& request) {
  auto region = granted(target, request, request.length);
  if (region == nullptr) return Outcome::kRemoteAccess;
  Pin pin(*region);
  if (!pin) return Outcome::kRemoteAccess;
  store_whole(region->at(request.remote.address), request.value);
  AtomicCounters::add(source.counters.atomic_write_operations, 1);
  AtomicCounters::add(target.counters.responder_write_bytes, request.length);
  AtomicCounters::add(target.counters.responder_write_operations, 1);
  return Outcome::kSuccess;
}

// A SEND into the oldest posted receive. No receive, or too short a one, ends the connection.
Outcome Wire::deliver(End& source, End& target, WorkRequest& request) {
  if (target.receives.empty()) return Outcome::kRemoteOperation;
  End::Receive receive = std::move(target.receives.front());
  target.receives.pop_front();
  Outcome outcome = Outcome::kSuccess;
  if (receive.buffer.local_protection) {
    outcome = Outcome::kLocalProtection;
  } else if (request.length > receive.buffer.length) {
    outcome = Outcome::kLengthError;
  }
  size_t offset = 0;
  for (uint32_t i = 0; outcome == Outcome::kSuccess && i < request.slice_count; ++i) {
    BoundSlice& from = request.slices[i];
    BoundSlice& to = receive.buffer.slices[0];
    if (!copy(*from.registration, from.address, *to.registration, to.address + offset, from.length)) {
      outcome = Outcome::kLocalProtection;
    }
    offset += from.length;
  }
  finish(target,
         {receive.work_id, Opcode::kReceive, outcome, outcome == Outcome::kSuccess ? request.length : 0});
  if (outcome != Outcome::kSuccess) return Outcome::kRemoteOperation;
  AtomicCounters::add(source.counters.send_operations, 1);
  AtomicCounters::add(target.counters.receive_operations, 1);
  return Outcome::kSuccess;
}

void Wire::finish(End& end, Completion completion) {
  end.finished.push_back({completion, now() + faults_.delay});
  if (completion.opcode != Opcode::kReceive) ++end.sends_finished;
  if (end.finished.size() == 1) arm(end);
}

// The timer stands where the first completion becomes visible, in the past when the connection has ended,
// else nowhere.
void Wire::arm(End& end) {
  std::chrono::nanoseconds at{0};
  if (!end.finished.empty()) {
    at = end.finished.front().visible.time_since_epoch();
  } else if (!connected()) {
    at = std::chrono::nanoseconds(1);
  }
  itimerspec spec{};
  spec.it_value.tv_sec = at.count() / 1'000'000'000;
  spec.it_value.tv_nsec = at.count() % 1'000'000'000;
  if (end.timer) ::timerfd_settime(end.timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

size_t Wire::take(size_t side, std::span<Completion> into) {
  std::lock_guard lock(mutex_);
  End& end = ends_[side];
  size_t count = 0;
  SteadyTime time = now();
  while (count < into.size() && !end.finished.empty() && end.finished.front().visible <= time) {
    into[count] = end.finished.front().completion;
    if (into[count].opcode != Opcode::kReceive) --end.sends_finished;
    end.finished.pop_front();
    ++count;
  }
  arm(end);
  return count;
}

bool Wire::ready(size_t side) {
  std::lock_guard lock(mutex_);
  End& end = ends_[side];
  return end.finished.empty() ? !connected() : end.finished.front().visible <= now();
}

void Wire::disconnect() {
  if (!connected()) return;
  connected_ = false;
  for (End& end : ends_) {
    for (WorkRequest& request : end.posted) {
      finish(end, {request.work_id, request.opcode, Outcome::kFlushed, 0});
    }
    for (End::Receive& receive : end.receives) {
      finish(end, {receive.work_id, Opcode::kReceive, Outcome::kFlushed, 0});
    }
    end.posted.clear();
    end.receives.clear();
    arm(end);
  }
}

}  // namespace pnfsrdma::rdma::memory
