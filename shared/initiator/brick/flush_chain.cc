// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/flush_chain.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "shared/initiator/brick/device.h"

namespace pnfsrdma::initiator {

// As far as nothing but the gaps between ranges is flushed for nothing, in whatever order they come.
void FlushChain::Hull::take(const rdma::RemoteSlice& memory) {
  const uint64_t first = memory.address, last = memory.address + memory.length;
  if (begin == end) {
    *this = {first, last, memory.key, true};
    return;
  }
  together = together && key == memory.key && last + kGapMax >= begin && first <= end + kGapMax;
  begin = std::min(begin, first);
  end = std::max(end, last);
  together = together && end - begin <= UINT32_MAX;  // a FLUSH names its length in 32 bits
}

bool FlushChain::begin(std::shared_ptr<Connection> connection) {
  SharedQueuePair& queue_pair = connection->queue_pair;
  batch_.emplace(std::span(&item_, 1));
  may_ask_ = connection->takes_commit_message &&
             queue_pair.try_reserve(*batch_, *this, Request(brick::PersistCall{}));
  if (!may_ask_ && (connection->flush != FlushMethod::kNative || !queue_pair.try_reserve(*batch_, *this))) {
    batch_.reset();
    return false;
  }
  connection_ = std::move(connection);
  hull_ = {};
  targets_.clear();
  targets_.reserve(kRangesMax);
  return true;
}

bool FlushChain::takes(std::span<const FlushRange> ranges) const {
  if (targets_.size() + ranges.size() > kRangesMax) return false;
  if (may_ask_) return true;
  Hull hull = hull_;
  for (const FlushRange& range : ranges) hull.take(range.memory);
  return hull.together;
}

void FlushChain::add(Member& member, std::span<const FlushRange> ranges) {
  for (const FlushRange& range : ranges) {
    hull_.take(range.memory);
    targets_.push_back(range.target);
  }
  member.flushed = false;
  member.next = std::exchange(members_, &member);
}

void FlushChain::close(Fabric& fabric) {
  SharedQueuePair& queue_pair = connection_->queue_pair;
  if (members_ == nullptr) {
    queue_pair.cancel(*batch_);
    return retire();
  }
  if (connection_->flush == FlushMethod::kNative && hull_.together) {
    if (may_ask_) queue_pair.drop_message(*batch_);
    item_.opcode = rdma::Opcode::kFlush;
    item_.remote = {hull_.begin, hull_.end - hull_.begin, hull_.key};
    fabric.statistics.flushes_native.add();
  } else {
    queue_pair.set_message(*batch_, message_);
    fabric.statistics.flushes_commit_message.add();
  }
  // It may be another caller's by the time this returns.
  queue_pair.start_reserved(*batch_, fabric.io_deadline(), Doorbell::kLater);
}

// A native one fails under another verifier.
bool FlushChain::was_flushed(const WorkBatch& batch) const {
  if (item_.opcode == rdma::Opcode::kFlush) return batch.succeeded();
  const std::optional<brick::PersistReply> reply = batch.reply();
  return reply && reply->status == brick::PersistStatus::kOk &&
         reply->verifier == connection_->hello.verifier;
}

void FlushChain::batch_done(WorkBatch& batch) {
  const bool flushed = was_flushed(batch);
  Member* next = std::exchange(members_, nullptr);
  retire();
  while (next != nullptr) {
    Member& member = *std::exchange(next, next->next);
    member.flushed = flushed;
    member.owner->batch_done(*member.batch);
  }
}

void FlushChain::retire() {
  batch_.reset();
  connection_.reset();
  pool_.give_back(*this);
}

FlushChain& FlushChainPool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_ == nullptr) return *all_.emplace_back(std::make_unique<FlushChain>(*this));
  return *std::exchange(idle_, idle_->next_idle_);
}

void FlushChainPool::give_back(FlushChain& chain) {
  const std::lock_guard lock(mutex_);
  chain.next_idle_ = std::exchange(idle_, &chain);
}

FlushChains::~FlushChains() {
  for (FlushChain* chain : std::span(open_).first(count_)) chain->close(fabric_);
}

FlushChain* FlushChains::find(const std::shared_ptr<Connection>& connection,
                              std::span<const FlushRange> ranges) {
  for (FlushChain* chain : std::span(open_).first(count_)) {
    if (chain->connection() == connection.get()) return chain->takes(ranges) ? chain : nullptr;
  }
  if (count_ == kChainsMax || connection->flush == FlushMethod::kLayoutCommit) return nullptr;
  FlushChain& chain = fabric_.flush_chains.take();
  if (!chain.begin(connection)) {
    fabric_.flush_chains.give_back(chain);
    return nullptr;
  }
  open_[count_++] = &chain;
  return chain.takes(ranges) ? &chain : nullptr;
}

}  // namespace pnfsrdma::initiator
