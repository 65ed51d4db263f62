// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library/session/session_file.h"
#include "shared/initiator/brick/flush_chain.h"
#include "shared/initiator/file/pending_io.h"

namespace pnfsrdma::library::session {

// Flights that share doorbell and flushes. On the stack of the thread that starts them.
class SessionTogether final : public Together {
 public:
  explicit SessionTogether(initiator::DataPath& data_path) : chains(data_path.flush_chains()) {}
  initiator::FlushChains chains;
};

// A move under a layout. What the bricks have done is rarely not all: another client may have written behind the end
// that we know, a connection may have been lost, a new size has to be told before it is durable.
class SessionFlight final : public Flight, private initiator::PendingIoListener {
 public:
  SessionFlight(Client& client, FlightListener& listener) : client_(client), listener_(listener) {}

  bool start(OpenFile& file, const Move& move, Together* together) override;
  std::optional<Result<size_t>> try_finish() override;
  Result<size_t> finish() override;

 private:
  void completed(initiator::PendingIo&) override { listener_.completed(); }
  initiator::FileIo& data() { return file_->data(); }
  bool is_short() const { return move_.is_read && moved_ && *moved_ < move_.length; }

  Client& client_;
  FlightListener& listener_;
  SessionFile* file_ = nullptr;
  Move move_;
  Client::Memory::Use memory_;
  // Of before it began: a loss that another operation has told is told to this one, too.
  initiator::ErrorCursor losses_;
  initiator::PendingIo io_;
  bool taken_ = false;  // what the bricks have done is in moved_
  Result<size_t> moved_ = 0;
};

}  // namespace pnfsrdma::library::session
