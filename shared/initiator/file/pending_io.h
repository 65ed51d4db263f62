// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "shared/base/check.h"
#include "shared/initiator/file/brick_io.h"
#include "shared/initiator/file/io.h"

namespace pnfsrdma::initiator {

class PendingIo;

// Takes the outcome of an I/O, once, when nothing of it is in flight any more: Transfer.
class OutcomeTaker {
 public:
  virtual void take_outcome(PendingIo& io) = 0;

 protected:
  ~OutcomeTaker() = default;
};

// Hears, once, that an I/O is complete, from whichever thread polls: it must not wait, nor call the data path. The I/O
// is not touched any more behind it.
class PendingIoListener {
 public:
  virtual void completed(PendingIo& io) = 0;

 protected:
  ~PendingIoListener() = default;
};

// An I/O that its caller does not wait for: FileIo::start_read() or start_write() begins it, FileIo::finish() ends
// it; then it may be used for another one. Large, for it has room for all that an I/O needs: the caller makes as many
// as he wants in flight, once. It must stay where it is, and live, until it is complete.
class PendingIo final : private BatchOwner {
 public:
  PendingIo() = default;
  ~PendingIo() { CHECK(state_ != State::kInFlight); }
  PendingIo(const PendingIo&) = delete;
  PendingIo& operator=(const PendingIo&) = delete;

  // Its outcome has been taken: the layout is free of it, and a later fsync covers what of it was acknowledged.
  // From any thread.
  bool is_complete() const { return state_ == State::kComplete; }
  // It could not be started for want of room on a connection alone: when something in flight there is complete, it may.
  bool lacked_room() const { return work_.lacks_room; }

 private:
  friend class Transfer;
  enum class State : uint8_t { kIdle, kInFlight, kComplete };

  void batch_done(WorkBatch&) override { release_hold(); }
  // The last one takes the outcome: nobody reads the I/O while it is being started.
  void release_hold() {
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) taker_->take_outcome(*this);
  }
  // All that went out was acknowledged.
  bool whole() const { return slice_.size() == 0 || done_ == (1u << pin_.pieces().size()) - 1; }

  std::atomic<State> state_ = State::kIdle;
  std::atomic<size_t> holds_ = 0;  // turns in flight, and its start
  OutcomeTaker* taker_ = nullptr;
  PendingIoListener* listener_ = nullptr;
  std::shared_ptr<FileState> file_;
  Io io_;
  uint64_t offset_ = 0;
  BufferSlice slice_;
  SteadyTime began_;
  LayoutPin pin_;
  std::optional<KeptWrites::Room> room_;
  BrickWork work_;
  uint32_t done_ = 0;  // a bit per piece
};

}  // namespace pnfsrdma::initiator
