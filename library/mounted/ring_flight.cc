// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/ring_flight.h"

#include <cerrno>

namespace pnfsrdma::library::mounted {

bool RingFlight::start(OpenFile& file, const Move& move, Together* together) {
  if (move.length == 0 || move.length > ring::kLengthMax || !file.allows(move)) return false;
  file_ = &static_cast<MountedFile&>(file);
  if (!file_->number()) return false;
  memory_ = connection_.find(move.buffer, move.length);
  if (!memory_) return false;
  move_ = move;
  const auto opcode = move.is_read ? ring::Opcode::kRead : ring::Opcode::kWrite;
  const bool submitted = submit({.opcode = static_cast<uint32_t>(opcode),
                                 .flags = move.durable ? ring::kDurable : 0,
                                 .file = *file_->number(),
                                 .memory = memory_.memory().number(),
                                 .memory_offset = memory_.offset(),
                                 .length = move.length,
                                 .offset = move.offset},
                                together == nullptr ? Doorbell::kNow : Doorbell::kLater);
  if (!submitted) memory_.end();
  return submitted;
}

void RingFlight::completed(int64_t result) {
  result_ = result;
  listener_.completed();
}

std::optional<Result<size_t>> RingFlight::try_finish() {
  if (result_ == ring::kUseDescriptor) return std::nullopt;
  if (result_ < 0) {
    memory_.end();
    return fail(static_cast<int>(-result_), "the mount");
  }
  const auto moved = static_cast<size_t>(result_);
  if (moved < move_.length && !move_.is_read) return std::nullopt;
  memory_.end();
  if (moved > move_.length) return fail(EIO, "the mount");
  return moved;
}

Result<size_t> RingFlight::finish() {
  const MountConnection::Memory::Use memory = std::move(memory_);  // until it is done
  return move_.is_read ? file_->read(move_.buffer, move_.length, move_.offset)
                       : file_->write(move_.buffer, move_.length, move_.offset, move_.durable);
}

}  // namespace pnfsrdma::library::mounted
