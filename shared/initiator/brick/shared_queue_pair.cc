// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/shared_queue_pair.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/brick/session_codec.h"
#include "shared/initiator/brick/hello.h"

namespace pnfsrdma::initiator {

namespace {

constexpr size_t kCompletionsPerPoll = 32;
// From one look to the next for what a connection that was given up hands back.
constexpr Milliseconds kHandBack = std::chrono::seconds(1);
constexpr uint32_t kAllCredits = (1u << MessageArea::kSends) - 1;
static_assert(MessageArea::kSends < 32);

// Which answer belongs to a call.
template <typename Call>
constexpr size_t reply_index() {
  if constexpr (std::is_same_v<Call, brick::PersistCall>)
    return brick::SessionMessage(brick::PersistReply()).index();
  if constexpr (std::is_same_v<Call, brick::ChangeWordCall>)
    return brick::SessionMessage(brick::ChangeWordReply()).index();
  if constexpr (std::is_same_v<Call, brick::WatchCall>)
    return brick::SessionMessage(brick::WatchReply()).index();
  if constexpr (std::is_same_v<Call, brick::SignalCall>)
    return brick::SessionMessage(brick::SignalReply()).index();
  if constexpr (std::is_same_v<Call, brick::EventsCall>)
    return brick::SessionMessage(brick::EventsReply()).index();
  return brick::SessionMessage(brick::VerifyReply()).index();
}

// None: it is not an answer to a Request.
std::optional<uint64_t> id_of(const brick::SessionMessage& message) {
  if (const auto* reply = std::get_if<brick::PersistReply>(&message)) return reply->id;
  if (const auto* reply = std::get_if<brick::ChangeWordReply>(&message)) return reply->id;
  if (const auto* reply = std::get_if<brick::VerifyReply>(&message)) return reply->id;
  if (const auto* reply = std::get_if<brick::WatchReply>(&message)) return reply->id;
  if (const auto* reply = std::get_if<brick::SignalReply>(&message)) return reply->id;
  if (const auto* reply = std::get_if<brick::EventsReply>(&message)) return reply->id;
  return std::nullopt;
}

}  // namespace

SharedQueuePair::SharedQueuePair(std::unique_ptr<rdma::QueuePair> queue_pair,
                                 std::unique_ptr<MessageArea> area)
    : area_(std::move(area)),
      queue_pair_(std::move(queue_pair)),
      // Some of the send queue is left to the transport: iwarp puts a READ behind a batch of WRITEs.
      depth_(std::max<size_t>(2, queue_pair_->limits().send_depth - queue_pair_->limits().send_depth / 8)) {}

void SharedQueuePair::prepare(WorkBatch& batch) {
  for (WorkItem& item : batch.items_) {
    item.outcome = rdma::Outcome::kFlushed;
    item.complete = false;
    item.batch = &batch;
  }
}

void SharedQueuePair::start(WorkBatch& batch, SteadyTime deadline) {
  CHECK(batch.items_.size() <= items_max());
  prepare(batch);
  if (batch.items_.empty() || !reserve(batch, deadline)) return;
  post(batch);
}

void SharedQueuePair::start(WorkBatch& batch, Request call, SteadyTime deadline) {
  batch.credit_ = take_credit(deadline);
  if (!batch.credit_) return;
  add_message(batch, std::move(call));
  start(batch, deadline);
}

void SharedQueuePair::add_message(WorkBatch& batch, Request call) {
  {
    Lock lock(mutex_);
    batch.reply_id_ = next_id_++;
  }
  batch.wants_reply_ = true;
  batch.reply_ = {};
  batch.receive_slot_.reset();
  const size_t length = std::visit(
      [&](auto& message) {
        message.id = batch.reply_id_;
        batch.reply_index_ = reply_index<std::decay_t<decltype(message)>>();
        return brick::encode_session_message(std::move(message), area_->send_bytes(*batch.credit_));
      },
      call);
  WorkItem& message = batch.items_.back();
  message.opcode = rdma::Opcode::kSend;
  message.local = area_->send_slice(*batch.credit_, length);
}

bool SharedQueuePair::try_reserve(WorkBatch& batch, BatchOwner& owner) {
  CHECK(!batch.items_.empty() && batch.items_.size() <= items_max());
  prepare(batch);
  const Lock lock(mutex_);
  if (dead_ || in_flight_ + batch.items_.size() > depth_) return false;
  batch.owner_ = &owner;
  ++asynchronous_;
  admit(batch);
  // Not done before start_reserved() is: a transport may still look at the message as it ends.
  ++batch.remaining_;
  return true;
}

bool SharedQueuePair::try_reserve(WorkBatch& batch, BatchOwner& owner, Request call) {
  batch.credit_ = try_credit();
  if (!batch.credit_) return false;
  add_message(batch, std::move(call));
  if (try_reserve(batch, owner)) return true;
  batch.wants_reply_ = false;
  give_credit(*std::exchange(batch.credit_, std::nullopt));
  return false;
}

void SharedQueuePair::cancel(WorkBatch& batch) {
  {
    const Lock lock(mutex_);
    --asynchronous_;
    in_flight_ -= batch.items_.size();
    if (batch.wants_reply_) remove_reply(batch);
    room_.notify_all();
  }
  if (batch.credit_) give_credit(*std::exchange(batch.credit_, std::nullopt));
}

void SharedQueuePair::set_message(WorkBatch& batch, brick::SessionMessage& message) {
  CHECK(batch.credit_ && batch.wants_reply_);
  std::get<brick::PersistCall>(message).id = batch.reply_id_;
  const size_t length = brick::encode_session_message(message, area_->send_bytes(*batch.credit_));
  batch.items_.back().local = area_->send_slice(*batch.credit_, length);
}

void SharedQueuePair::drop_message(WorkBatch& batch) {
  {
    const Lock lock(mutex_);
    if (!batch.wants_reply_) return;
    remove_reply(batch);
    --batch.remaining_;
  }
  give_credit(*std::exchange(batch.credit_, std::nullopt));
}

void SharedQueuePair::start_reserved(WorkBatch& batch, SteadyTime deadline, Doorbell doorbell) {
  batch.deadline_ = deadline;
  post(batch, doorbell);
  Lock lock(mutex_);
  // Not before it is posted: all that a dead connection had was handed back, and it may be settled.
  if (batch.remaining_ > 1) link(batch);
  finish_one(batch);
  tell_owners(lock);
}

bool SharedQueuePair::park(WorkBatch& batch, BatchOwner& owner, brick::EventsCall call) {
  batch.credit_ = MessageArea::kParkedSend;
  add_message(batch, call);
  prepare(batch);
  {
    const Lock lock(mutex_);
    if (dead_) {
      batch.wants_reply_ = false;
      batch.credit_.reset();
      return false;
    }
    batch.owner_ = &owner;
    ++asynchronous_;
    admit(batch);
    ++batch.remaining_;
  }
  post(batch);
  Lock lock(mutex_);
  if (batch.remaining_ > 1) parked_ = &batch;
  finish_one(batch);
  tell_owners(lock);
  return true;
}

void SharedQueuePair::finish(WorkBatch& batch, SteadyTime deadline) {
  wait_until_done(batch, deadline);
  release_message(batch);
}

void SharedQueuePair::release_message(WorkBatch& batch) {
  if (!batch.credit_) return;
  give_credit(*std::exchange(batch.credit_, std::nullopt));
  const auto slot = std::exchange(batch.receive_slot_, std::nullopt);
  if (!slot) return;
  std::lock_guard posting(post_mutex_);
  const auto posted = queue_pair_->post_receive(receive_work_id(*slot), area_->receive_slice(*slot));
  if (!posted) queue_pair_->fail();
}

size_t SharedQueuePair::in_flight() const {
  const Lock lock(mutex_);
  return in_flight_;
}

SharedQueuePair::Progress SharedQueuePair::progress() const {
  const Lock lock(mutex_);
  // The call for events may rightly wait for ever.
  const bool only_parked = replies_ == parked_ && (replies_ == nullptr || replies_->next_reply_ == nullptr);
  return {.waiting = in_flight_ > 0 || !only_parked, .answers = answers_};
}

bool SharedQueuePair::reserve(WorkBatch& batch, SteadyTime deadline) {
  Lock lock(mutex_);
  const size_t count = batch.items_.size();
  if (!dead_ && in_flight_ + count > depth_) {
    room_.wait_until(lock, deadline, [&] { return dead_ || in_flight_ + count <= depth_; });
    if (in_flight_ + count > depth_) return false;
  }
  if (dead_) return false;
  admit(batch);
  return true;
}

void SharedQueuePair::admit(WorkBatch& batch) {
  const size_t count = batch.items_.size();
  in_flight_ += count;
  batch.remaining_ = count + (batch.wants_reply_ ? 1 : 0);
  if (!batch.wants_reply_) return;
  batch.next_reply_ = replies_;
  replies_ = &batch;
}

void SharedQueuePair::ring() {
  const std::lock_guard posting(post_mutex_);
  if (std::exchange(unrung_, false)) queue_pair_->submit();
}

void SharedQueuePair::post(WorkBatch& batch, Doorbell doorbell) {
  size_t posted = 0;
  {
    std::lock_guard posting(post_mutex_);
    for (; posted < batch.items_.size(); ++posted) {
      if (!post_item(batch.items_[posted])) break;
    }
    unrung_ = doorbell == Doorbell::kLater;
    if (!unrung_) queue_pair_->submit();
  }
  if (posted == batch.items_.size()) return;
  // Ended, or full against our own count: what was not posted has its outcome (kFlushed); the connection
  // goes.
  queue_pair_->fail();
  Lock lock(mutex_);
  for (WorkItem& item : batch.items_.subspan(posted)) complete(item, rdma::Outcome::kFlushed);
}

Result<> SharedQueuePair::post_item(const WorkItem& item) {
  const auto id = reinterpret_cast<uint64_t>(&item);
  switch (item.opcode) {
    case rdma::Opcode::kWrite:
      return queue_pair_->post_write(id, {&item.local, 1}, item.remote);
    case rdma::Opcode::kRead:
      return queue_pair_->post_read(id, item.local, item.remote);
    case rdma::Opcode::kSend:
      return queue_pair_->post_send(id, {&item.local, 1});
    case rdma::Opcode::kFlush:
      return queue_pair_->post_flush(id, item.remote, rdma::FlushLevel::kPersistent);
    case rdma::Opcode::kReceive:
    case rdma::Opcode::kAtomicWrite:
      break;
  }
  return pnfsrdma::fail(EINVAL, "not a work request of a batch");
}

void SharedQueuePair::wait_until_done(WorkBatch& batch, SteadyTime deadline) {
  Lock lock(mutex_);
  while (batch.remaining_ > 0) {
    if (!polling_) {
      polling_ = true;
      poll_for_all(batch, deadline, lock);
      // Whoever sleeps on fd() hears only of what comes after a look that found nothing.
      if (asynchronous_ > 0) take_all(lock);
      polling_ = false;
    } else {
      sleep_until_woken(batch, deadline, lock);
    }
  }
  // The role of the poller goes to a sleeper: also when this thread was woken to take it and found itself
  // done.
  if (!polling_ && sleepers_ != nullptr) sleepers_->wake_.notify_one();
}

void SharedQueuePair::poll_for_all(WorkBatch& own, SteadyTime& deadline, Lock& lock) {
  std::array<rdma::Completion, kCompletionsPerPoll> completions;
  bool given_up = false;
  while (own.remaining_ > 0) {
    lock.unlock();
    // Asked before poll(): what was delivered before the end has then been seen.
    const bool alive = queue_pair_->connected();
    if (!queue_pair_->wait(deadline)) {
      if (!std::exchange(given_up, true))
        log_warning("initiator", "device-timeout peer={}", queue_pair_->peer());
      queue_pair_->fail();
      deadline += kHandBack;
    }
    const size_t count = queue_pair_->poll(completions);
    lock.lock();
    dispatch(std::span(completions).first(count));
    if (count == 0 && !alive) {
      settle_dead(own);
      settle_dead();
    }
    tell_owners(lock);
  }
}

bool SharedQueuePair::poll(SteadyTime now) {
  Lock lock(mutex_);
  if (first_ != nullptr && now >= first_->deadline_) {
    if (!std::exchange(given_up_, true))
      log_warning("initiator", "device-timeout peer={}", queue_pair_->peer());
    queue_pair_->fail();
  }
  if (polling_) return false;
  polling_ = true;
  take_all(lock);
  polling_ = false;
  if (sleepers_ != nullptr) sleepers_->wake_.notify_one();
  return true;
}

void SharedQueuePair::take_all(Lock& lock) {
  std::array<rdma::Completion, kCompletionsPerPoll> completions;
  for (size_t count = 1; count > 0;) {
    lock.unlock();
    const bool alive = queue_pair_->connected();
    count = queue_pair_->poll(completions);
    lock.lock();
    dispatch(std::span(completions).first(count));
    if (count == 0 && !alive) settle_dead();
    tell_owners(lock);
  }
}

bool SharedQueuePair::ended() const {
  const Lock lock(mutex_);
  return dead_ && asynchronous_ == 0;
}

void SharedQueuePair::sleep_until_woken(WorkBatch& batch, SteadyTime& deadline, Lock& lock) {
  batch.next_sleeper_ = sleepers_;
  sleepers_ = &batch;
  const bool late = batch.wake_.wait_until(lock, deadline) == std::cv_status::timeout;
  WorkBatch** link = &sleepers_;
  while (*link != &batch) link = &(*link)->next_sleeper_;
  *link = batch.next_sleeper_;
  if (late && batch.remaining_ > 0) {
    queue_pair_->fail();
    deadline += kHandBack;  // whoever polls now delivers what is left
  }
}

void SharedQueuePair::dispatch(std::span<const rdma::Completion> completions) {
  answers_ += completions.size();
  for (const rdma::Completion& completion : completions) {
    if (is_receive_work_id(completion.work_id)) {
      take_reply(completion);
    } else {
      complete(*reinterpret_cast<WorkItem*>(completion.work_id), completion.outcome);
    }
  }
}

void SharedQueuePair::complete(WorkItem& item, rdma::Outcome outcome) {
  item.outcome = outcome;
  item.complete = true;
  --in_flight_;
  room_.notify_all();
  finish_one(*item.batch);
}

void SharedQueuePair::finish_one(WorkBatch& batch) {
  if (--batch.remaining_ > 0) return;
  if (batch.owner_ == nullptr) {
    batch.wake_.notify_one();
    return;
  }
  unlink(batch);
  if (parked_ == &batch) parked_ = nullptr;
  batch.next_ = done_;
  done_ = &batch;
}

void SharedQueuePair::link(WorkBatch& batch) {
  batch.in_list_ = true;
  batch.next_ = nullptr;
  batch.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &batch;
  last_ = &batch;
}

void SharedQueuePair::unlink(WorkBatch& batch) {
  if (!std::exchange(batch.in_list_, false)) return;
  (batch.previous_ != nullptr ? batch.previous_->next_ : first_) = batch.next_;
  (batch.next_ != nullptr ? batch.next_->previous_ : last_) = batch.previous_;
}

void SharedQueuePair::tell_owners(Lock& lock) {
  while (done_ != nullptr) {
    WorkBatch* batch = std::exchange(done_, nullptr);
    lock.unlock();
    size_t told = 0;
    for (; batch != nullptr; ++told) {
      // Told, the owner may use it for something else.
      WorkBatch* const next = batch->next_;
      release_message(*batch);
      batch->owner_->batch_done(*batch);
      batch = next;
    }
    lock.lock();
    asynchronous_ -= told;
  }
}

void SharedQueuePair::take_reply(const rdma::Completion& completion) {
  if (completion.outcome != rdma::Outcome::kSuccess)
    return;  // the end of the connection; settle_dead() follows
  const size_t slot = receive_slot(completion.work_id);
  auto message = brick::decode_session_message(area_->receive_bytes(slot).first(completion.length));
  const auto id = message ? id_of(*message) : std::nullopt;
  WorkBatch* batch = replies_;
  while (id && batch != nullptr && batch->reply_id_ != *id) batch = batch->next_reply_;
  if (!id || batch == nullptr || batch->reply_index_ != message->index()) {
    log_warning("initiator", "device-protocol-error peer={} an answer without a request",
                queue_pair_->peer());
    queue_pair_->fail();
    return;
  }
  batch->reply_ = std::move(*message);
  batch->receive_slot_ = slot;
  remove_reply(*batch);
  finish_one(*batch);
}

void SharedQueuePair::remove_reply(WorkBatch& batch) {
  WorkBatch** link = &replies_;
  while (*link != nullptr && *link != &batch) link = &(*link)->next_reply_;
  if (*link == &batch) *link = batch.next_reply_;
  batch.wants_reply_ = false;
}

void SharedQueuePair::settle_dead(WorkBatch& batch) {
  dead_ = true;
  room_.notify_all();
  if (batch.wants_reply_) remove_reply(batch);
  for (WorkItem& item : batch.items_) {
    if (!item.complete) item.complete = true;  // its outcome is still kFlushed
  }
  batch.remaining_ = 0;
}

void SharedQueuePair::settle_dead() {
  dead_ = true;
  room_.notify_all();
  while (first_ != nullptr) settle_asynchronous(*first_);
  if (parked_ != nullptr) settle_asynchronous(*parked_);
}

void SharedQueuePair::settle_asynchronous(WorkBatch& batch) {
  settle_dead(batch);
  batch.remaining_ = 1;
  finish_one(batch);
}

std::optional<size_t> SharedQueuePair::take_credit(SteadyTime deadline) {
  Lock lock(mutex_);
  const auto ready = [&] { return dead_ || credits_taken_ != kAllCredits; };
  if (!room_.wait_until(lock, deadline, ready) || dead_) return std::nullopt;
  const auto slot = static_cast<size_t>(std::countr_one(credits_taken_));
  credits_taken_ |= 1u << slot;
  return slot;
}

std::optional<size_t> SharedQueuePair::try_credit() {
  const Lock lock(mutex_);
  if (dead_ || credits_taken_ == kAllCredits) return std::nullopt;
  const auto slot = static_cast<size_t>(std::countr_one(credits_taken_));
  credits_taken_ |= 1u << slot;
  return slot;
}

void SharedQueuePair::give_credit(size_t slot) {
  Lock lock(mutex_);
  credits_taken_ &= ~(1u << slot);
  room_.notify_all();
}

}  // namespace pnfsrdma::initiator
