// SPDX-License-Identifier: Apache-2.0
// The sending side of the queue pair: which frames go next, and what happens when the socket is full.
#include "shared/rdma/iwarp/queue_pair.h"

namespace pnfsrdma::rdma::iwarp {

// Sends until there is nothing more or the socket is full. One thread at a time: a second one leaves its work
// to the first, which looks again before it gives `sending_` back.
void IwarpQueuePair::pump(Lock& lock) {
  if (sending_) return;
  sending_ = true;
  while (pauses_ == 0 && !send_failed_ && state_.load(std::memory_order_relaxed) != State::kClosed) {
    if (batch_.empty() && !fill_batch()) break;
    in_send_ = true;
    lock.unlock();
    FrameBatch::Sent sent = batch_.send(*stream_);
    lock.lock();
    in_send_ = false;
    if (pauses_ > 0) send_left_.notify_all();
    bool was_full = socket_full_;
    socket_full_ = sent == FrameBatch::Sent::kSocketFull;
    if (socket_full_ != was_full) stream_->watch_writable(socket_full_);
    if (socket_full_) break;
    batch_ended(sent);
  }
  if (send_failed_ || state_.load(std::memory_order_relaxed) == State::kClosed) {
    batch_.clear();
    socket_full_ = false;
  }
  sending_ = false;
}

void IwarpQueuePair::batch_ended(FrameBatch::Sent sent) {
  switch (sent) {
    case FrameBatch::Sent::kAll:
      batch_.clear();
      if (ready()) requester_.batch_sent();
      if (terminate_added_) stream_->finish_sending();
      return;
    case FrameBatch::Sent::kRegistrationDead:
      return source_died();
    // The receiving side will see the same end, behind whatever the peer said last (a Terminate, perhaps).
    case FrameBatch::Sent::kFailed:
      send_failed_ = true;
      return;
    case FrameBatch::Sent::kSocketFull:
      return;
  }
}

// Memory that frames under way were to carry is not ours to read any more: a region of the peer's READ was
// revoked, or the poster destroyed its source too early. Half a frame cannot be taken back, so then the
// stream just ends.
void IwarpQueuePair::source_died() {
  if (ready()) {
    requester_.end_broken(Outcome::kConnectionLost);
    responder_.end();
    if (batch_.at_frame_boundary()) begin_terminating(kLocalCatastrophic, {});
  }
  if (!batch_.at_frame_boundary()) end(Outcome::kFlushed);
  batch_.clear();
}

bool IwarpQueuePair::fill_batch() {
  if (!may_send_) return false;
  if (!ready()) {
    if (terminate_added_) return false;
    terminate_added_ = true;
    size_t header = encode_terminate(batch_.header(), terminate_code_,
                                     {terminate_header_.data(), terminate_header_size_});
    return batch_.add_frame(header, {});
  }
  while (batch_.has_room() && add_next_message()) {
  }
  if (!ready()) return fill_batch();  // a source died: the Terminate is all that is left to send
  return !batch_.empty();
}

// A message that was begun goes first, as no other tagged one may come between; otherwise responses and
// requests take turns. False when there is nothing to add.
bool IwarpQueuePair::add_next_message() {
  bool responses = responder_.mid_message() || (response_turn_ && !requester_.mid_message());
  for (int attempt = 0; attempt < 2; ++attempt, responses = !responses) {
    if (attempt == 1 && (responder_.mid_message() || requester_.mid_message())) return false;
    if (responses) {
      auto added = responder_.add_frames(batch_);
      response_turn_ = false;
      if (added == Responder::Added::kFrames) return true;
      if (added == Responder::Added::kRegionDied) return source_died(), false;
    } else {
      auto added = requester_.add_frames(batch_);
      response_turn_ = true;
      if (added == Requester::Added::kFrames) return true;
      if (added == Requester::Added::kBadSource) return source_died(), false;
    }
  }
  return false;
}

}  // namespace pnfsrdma::rdma::iwarp
