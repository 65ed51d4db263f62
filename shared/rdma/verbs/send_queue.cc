// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "shared/rdma/verbs/outcome.h"
#include "shared/rdma/work_request.h"

namespace pnfsrdma::rdma::verbs {
namespace {

// Walks `slices` in pieces of at most `slices_max` slices and `bytes_max` bytes; `visit` gets each slice part
// and whether it begins a new piece. Empty slices name nothing and are left out.
template <typename Visitor>
uint32_t for_each_part(std::span<const LocalSlice> slices, uint32_t slices_max, uint32_t bytes_max,
                       Visitor&& visit) {
  uint32_t pieces = 0, slices_used = slices_max;
  uint64_t bytes_used = 0;
  for (const LocalSlice& slice : slices) {
    for (uint32_t done = 0; done < slice.length;) {
      const bool begins = slices_used == slices_max || bytes_used == bytes_max;
      if (begins) {
        ++pieces;
        slices_used = 0;
        bytes_used = 0;
      }
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>(slice.length - done, bytes_max - bytes_used));
      visit(LocalSlice{slice.address + done, count, slice.key}, begins);
      done += count;
      bytes_used += count;
      ++slices_used;
    }
  }
  return pieces;
}

}  // namespace

SendQueue::SendQueue(Endpoint& endpoint, const QueuePairLimits& limits, AtomicCounters& counters)
    : endpoint_(endpoint),
      counters_(counters),
      depth_(limits.send_depth),
      operations_(std::bit_ceil(limits.send_depth)),
      signal_every_(std::clamp(limits.send_depth / 2, 1u, kSignalEvery)) {
  batch_.reserve(endpoint.work_requests());
  batch_slices_.reserve(endpoint.work_requests());
  slices_.reserve(size_t{2} * endpoint.work_requests());
}

Result<> SendQueue::begin(uint64_t work_id, Opcode opcode, uint32_t length, uint32_t work_requests) {
  if (work_requests > endpoint_.work_requests()) {
    return fail(EINVAL, "one operation of " + std::to_string(length) + " bytes is more than the queue holds");
  }
  const uint64_t busy = work_requests_added_ - work_requests_retired_.load(std::memory_order_acquire);
  if (added_ - delivered_.load(std::memory_order_acquire) >= depth_ ||
      busy + work_requests > endpoint_.work_requests()) {
    return fail(ENOBUFS, "the send queue is full");
  }
  operation(added_) = {work_id, opcode, length, work_requests};
  work_requests_added_ += work_requests;
  ++added_;
  unsubmitted_.store(true, std::memory_order_release);
  unsignalled_ = length >= kLarge ? kSignalEvery : unsignalled_ + 1;
  ++awaited_;
  return {};
}

ibv_send_wr& SendQueue::add_work_request(ibv_wr_opcode opcode, uint64_t remote_address, uint32_t key) {
  ibv_send_wr& request = batch_.emplace_back();  // all zeros
  request.wr_id = added_ - 1;
  request.opcode = opcode;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = key;
  batch_slices_.push_back(slices_.size());
  return request;
}

void SendQueue::signal_last() {
  batch_.back().send_flags |= IBV_SEND_SIGNALED;
  unsignalled_ = 0;
  last_signalled_ = added_;
}

// A slice that is in no region is left to the device, which refuses it in its turn; copied here it would
// pass.
bool SendQueue::inlined(std::span<const LocalSlice> slices, uint32_t length) {
  if (length == 0 || length > endpoint_.inline_bytes()) return false;
  return std::ranges::all_of(
      slices, [&](const LocalSlice& slice) { return slice.length == 0 || endpoint_.domain().covers(slice); });
}

uint32_t SendQueue::pieces_of(std::span<const LocalSlice> slices) const {
  const uint32_t pieces =
      for_each_part(slices, endpoint_.slices(), endpoint_.message_bytes(), [](const LocalSlice&, bool) {});
  return std::max(pieces, 1u);
}

void SendQueue::add_pieces(std::span<const LocalSlice> slices, const RemoteSlice& target) {
  const uint32_t length = operation(added_ - 1).length;
  if (length == 0) add_work_request(IBV_WR_RDMA_WRITE, target.address, target.key);
  uint64_t at = target.address;
  for_each_part(slices, endpoint_.slices(), endpoint_.message_bytes(),
                [&](const LocalSlice& part, bool begins) {
                  if (begins) add_work_request(IBV_WR_RDMA_WRITE, at, target.key);
                  slices_.push_back({reinterpret_cast<uintptr_t>(part.address), part.length, part.key});
                  ++batch_.back().num_sge;
                  at += part.length;
                });
}

Result<> SendQueue::add_write(uint64_t work_id, std::span<const LocalSlice> source,
                              const RemoteSlice& target) {
  TRY_ASSIGN(const uint32_t length, gather_length(source));
  TRY(check_remote(target, length));
  TRY(begin(work_id, Opcode::kWrite, length, pieces_of(source)));
  add_pieces(source, target);
  if (inlined(source, length)) batch_.back().send_flags |= IBV_SEND_INLINE;
  if (unsignalled_ >= signal_every_) signal_last();
  return {};
}

Result<> SendQueue::add_read(uint64_t work_id, const LocalSlice& sink, const RemoteSlice& source) {
  TRY(check_remote(source, sink.length));
  const uint32_t piece = endpoint_.message_bytes();
  const uint32_t pieces = std::max<uint32_t>(1, (uint64_t{sink.length} + piece - 1) / piece);
  TRY(begin(work_id, Opcode::kRead, sink.length, pieces));
  uint32_t done = 0;
  do {
    ibv_send_wr& request = add_work_request(IBV_WR_RDMA_READ, source.address + done, source.key);
    const uint32_t count = std::min(sink.length - done, piece);
    if (count > 0) {
      slices_.push_back({reinterpret_cast<uintptr_t>(sink.address) + done, count, sink.key});
      request.num_sge = 1;
    }
    done += count;
  } while (done < sink.length);
  if (unsignalled_ >= signal_every_) signal_last();
  return {};
}

Result<> SendQueue::add_send(uint64_t work_id, std::span<const LocalSlice> message, Signal signal) {
  TRY_ASSIGN(const uint32_t length, gather_length(message));
  if (message.size() > endpoint_.slices() && pieces_of(message) > 1)
    return fail(EOPNOTSUPP, "this device does not gather that many slices into a SEND");
  TRY(begin(work_id, Opcode::kSend, length, 1));
  ibv_send_wr& request = add_work_request(IBV_WR_SEND, 0, 0);
  for (const LocalSlice& slice : message) {
    if (slice.length == 0) continue;
    slices_.push_back({reinterpret_cast<uintptr_t>(slice.address), slice.length, slice.key});
    ++request.num_sge;
  }
  if (inlined(message, length)) {
    request.send_flags |= IBV_SEND_INLINE;
    if (signal == Signal::kWithALaterOne) --awaited_;
  }
  if (unsignalled_ >= signal_every_) signal_last();
  return {};
}

Result<> SendQueue::add_flush(uint64_t work_id, const RemoteSlice& target, FlushLevel level) {
  TRY(check_remote(target, 0));
#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
  TRY(begin(work_id, Opcode::kFlush, static_cast<uint32_t>(target.length), 1));
  add_work_request(IBV_WR_FLUSH, target.address, target.key);
  extended_.push_back({.target = target, .level = level});
  if (unsignalled_ >= signal_every_) signal_last();
  return {};
#else
  static_cast<void>(work_id);
  static_cast<void>(level);
  return fail(EOPNOTSUPP, "built with an rdma-core that has no native flush");
#endif
}

Result<> SendQueue::add_atomic_write(uint64_t work_id, uint64_t value, const RemoteSlice& target) {
  TRY(check_atomic_write(target));
#ifdef PNFSRDMA_VERBS_HAVE_ATOMIC_WRITE
  TRY(begin(work_id, Opcode::kAtomicWrite, kAtomicWriteSize, 1));
  add_work_request(IBV_WR_ATOMIC_WRITE, target.address, target.key);
  extended_.push_back({.target = target, .value = value});
  if (unsignalled_ >= signal_every_) signal_last();
  return {};
#else
  static_cast<void>(work_id);
  static_cast<void>(value);
  return fail(EOPNOTSUPP, "built with an rdma-core that has no atomic write");
#endif
}

bool SendQueue::submit() {
  if (batch_.empty()) return true;
  if (awaited_ > 0) signal_last();
  for (size_t i = 0; i < batch_.size(); ++i) {
    batch_[i].sg_list = slices_.data() + batch_slices_[i];
    batch_[i].next = i + 1 < batch_.size() ? &batch_[i + 1] : nullptr;
  }
  signalled_.store(last_signalled_, std::memory_order_release);
  const bool posted = extended_.empty() ? post_linked() : post_one_by_one();
  if (!posted) signalled_.store(submitted_.load(std::memory_order_relaxed), std::memory_order_release);
  clear_batch();
  return posted;
}

void SendQueue::clear_batch() {
  batch_.clear();
  batch_slices_.clear();
  slices_.clear();
  extended_.clear();
  awaited_ = 0;
  unsubmitted_.store(false, std::memory_order_release);
}

bool SendQueue::post_linked() {
  ibv_send_wr* refused = nullptr;
  // Published first: completions may come before the call returns.
  submitted_.store(added_, std::memory_order_release);
  if (ibv_post_send(endpoint_.queue_pair(), batch_.data(), &refused) == 0) return true;
  const uint64_t first_refused = refused == nullptr ? batch_.front().wr_id : refused->wr_id;
  submitted_.store(first_refused, std::memory_order_release);
  return false;
}

// A FLUSH or ATOMIC WRITE, with its `part`; false for what is neither.
bool SendQueue::post_extended([[maybe_unused]] ibv_qp_ex* queue_pair,
                              [[maybe_unused]] const ibv_send_wr& request,
                              [[maybe_unused]] const ExtendedPart* part) {
#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
  if (request.opcode == IBV_WR_FLUSH) {
    ibv_wr_flush(queue_pair, part->target.key, part->target.address, part->target.length,
                 part->level == FlushLevel::kPersistent ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL,
                 IBV_FLUSH_RANGE);
    return true;
  }
#endif
#ifdef PNFSRDMA_VERBS_HAVE_ATOMIC_WRITE
  if (request.opcode == IBV_WR_ATOMIC_WRITE) {
    ibv_wr_atomic_write(queue_pair, part->target.key, part->target.address, &part->value);
    return true;
  }
#endif
  return false;
}

// FLUSH and ATOMIC WRITE are only to be had in the extended interface; the whole batch goes that way then,
// under one doorbell.
bool SendQueue::post_one_by_one() {
  ibv_qp_ex* queue_pair = ibv_qp_to_qp_ex(endpoint_.queue_pair());
  const uint64_t first = batch_.front().wr_id;
  const ExtendedPart* part = extended_.data();
  ibv_data_buf copied[kGatherMax];
  submitted_.store(added_, std::memory_order_release);
  ibv_wr_start(queue_pair);
  for (const ibv_send_wr& request : batch_) {
    queue_pair->wr_id = request.wr_id;
    queue_pair->wr_flags = request.send_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
    if (post_extended(queue_pair, request, part)) {
      ++part;
      continue;
    }
    if (request.opcode == IBV_WR_RDMA_WRITE) {
      ibv_wr_rdma_write(queue_pair, request.wr.rdma.rkey, request.wr.rdma.remote_addr);
    } else if (request.opcode == IBV_WR_RDMA_READ) {
      ibv_wr_rdma_read(queue_pair, request.wr.rdma.rkey, request.wr.rdma.remote_addr);
    } else {
      ibv_wr_send(queue_pair);
    }
    const auto count = static_cast<size_t>(request.num_sge);
    if ((request.send_flags & IBV_SEND_INLINE) == 0) {
      ibv_wr_set_sge_list(queue_pair, count, request.sg_list);
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      copied[i] = {reinterpret_cast<void*>(request.sg_list[i].addr), request.sg_list[i].length};
    }
    ibv_wr_set_inline_data_list(queue_pair, count, copied);
  }
  if (ibv_wr_complete(queue_pair) == 0) return true;
  submitted_.store(first, std::memory_order_release);  // all or nothing
  return false;
}

void SendQueue::finish(const Operation& operation, Outcome outcome, CompletionQueue& completions) {
  completions.push({operation.work_id, operation.opcode, outcome, operation.length});
  if (outcome != Outcome::kSuccess) return;
  switch (operation.opcode) {
    case Opcode::kWrite:
      AtomicCounters::add(counters_.write_bytes, operation.length);
      return AtomicCounters::add(counters_.write_operations, 1);
    case Opcode::kRead:
      AtomicCounters::add(counters_.read_bytes, operation.length);
      return AtomicCounters::add(counters_.read_operations, 1);
    case Opcode::kSend:
      return AtomicCounters::add(counters_.send_operations, 1);
    case Opcode::kFlush:
      return AtomicCounters::add(counters_.flush_operations, 1);
    case Opcode::kAtomicWrite:
      return AtomicCounters::add(counters_.atomic_write_operations, 1);
    case Opcode::kReceive:
      return;
  }
}

void SendQueue::retire(uint64_t number, ibv_wc_status status, CompletionQueue& completions) {
  // Of an operation of several work requests each may report an error.
  if (number < retired_ || number >= submitted_.load(std::memory_order_acquire)) return;
  // Earlier ones have succeeded when this one ran at all; a flushed one says nothing of them.
  const Outcome earlier = status == IBV_WC_WR_FLUSH_ERR ? Outcome::kFlushed : Outcome::kSuccess;
  uint64_t work_requests = 0;
  for (; retired_ <= number; ++retired_) {
    const Operation& retiring = operation(retired_);
    work_requests += retiring.work_requests;
    finish(retiring, retired_ < number ? earlier : outcome_of(status, retiring.opcode), completions);
  }
  work_requests_retired_.fetch_add(work_requests, std::memory_order_release);
}

void SendQueue::flush_all(CompletionQueue& completions) {
  for (; retired_ < added_; ++retired_) {
    finish(operation(retired_), Outcome::kFlushed, completions);
  }
  submitted_.store(added_, std::memory_order_release);
  clear_batch();
}

}  // namespace pnfsrdma::rdma::verbs
