// SPDX-License-Identifier: Apache-2.0
#include "library/session/session_flight.h"

namespace pnfsrdma::library::session {

bool SessionFlight::start(OpenFile& file, const Move& move, Together* together) {
  if (move.length == 0 || move.length > SessionFile::kStepMax || !file.allows(move)) return false;
  memory_ = client_.find(move.buffer, move.length);
  if (!memory_) return false;
  const initiator::BufferSlice slice = memory_.memory().slice(memory_.offset(), move.length);
  file_ = &static_cast<SessionFile&>(file);
  if (!file_->check_locks()) {
    memory_.end();
    return false;
  }
  move_ = move;
  losses_ = data().losses_from_now();
  taken_ = false;
  auto* const with = static_cast<SessionTogether*>(together);
  const auto ring = with == nullptr ? initiator::Doorbell::kNow : initiator::Doorbell::kLater;
  const bool started = move.is_read
                           ? data().start_read(io_, move.offset, slice, this, ring)
                           : data().start_write(io_, move.offset, slice, stability_of(move.durable), this,
                                                ring, with == nullptr ? nullptr : &with->chains);
  if (!started) memory_.end();
  return started;
}

std::optional<Result<size_t>> SessionFlight::try_finish() {
  if (data().finish_may_wait(io_)) return std::nullopt;
  moved_ = data().finish(io_);
  taken_ = true;
  if (is_short() || (moved_ && move_.durable && !data().is_durable(losses_))) return std::nullopt;
  memory_.end();
  return moved_;
}

Result<size_t> SessionFlight::finish() {
  const Client::Memory::Use memory = std::move(memory_);  // until it is done
  if (!taken_) moved_ = data().finish(io_);
  if (is_short()) return file_->read(move_.buffer, move_.length, move_.offset);
  if (moved_ && move_.durable) TRY(data().fdatasync(losses_));
  return moved_;
}

}  // namespace pnfsrdma::library::session
