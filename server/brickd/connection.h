// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/brickd/counters.h"
#include "server/brickd/exposures.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/replay_record.h"
#include "server/brickd/session_server.h"
#include "server/brickd/watchers.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::brick {

// One client's data connection: a protection domain of its own, in it one region per grant, the queue pair
// and the thread that serves it. Handles die with it. Owned by the session table; its methods belong to the
// control loop, its destructor to any one thread.
class Connection {
 public:
  // What all connections of the brick share.
  struct Shared {
    FlushGate& gate;
    Counters& counters;
    Watchers& watchers;
  };

  // `record`: the session's. `place`: held as long as the device has anything of this connection.
  Connection(rdma::Transport& transport, bool native_flush, uint32_t number, Shared shared,
             std::shared_ptr<ReplayRecord> record, std::shared_ptr<void> place);
  // Ends it: queue pair failed, thread joined, regions freed, then the queue pair destroyed; in this order.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Registers memory of a grant. Before and after accept().
  Result<rdma::RemoteSlice> expose(uint64_t grant, MutableByteSpan memory, bool writable);
  Exposures& exposures() { return exposures_; }
  // Takes it out of the exposures, and ends what is watched under it. Null when it is not there.
  std::unique_ptr<rdma::Region> withdraw(uint64_t grant);

  // Answers the peer and starts the thread. `on_ended` is called in that thread as its last act.
  Result<> accept(rdma::ConnectionRequest& request, std::function<void()> on_ended);

  // Nothing moves on it any more; its thread ends soon.
  void fail();
  // fail(), and its thread has ended. From the loop's thread, or when that runs no more.
  void end();

  uint32_t number() const { return number_; }
  std::string peer() const { return queue_pair_ ? queue_pair_->peer() : std::string(); }
  std::string transport() const { return transport_.name(); }
  rdma::TransportCounters counters() const;

 private:
  // Native flushes of this connection: they answer without a verifier, so they stop working when it changes.
  class ConnectionFlusher final : public rdma::Flusher {
   public:
    explicit ConnectionFlusher(FlushGate& gate) : gate_(gate), verifier_(gate.verifier()) {}
    Result<> flush(MutableByteSpan memory) override;

   private:
    FlushGate& gate_;
    const Verifier verifier_;
  };

  const std::shared_ptr<void> place_;
  const std::shared_ptr<ReplayRecord> record_;
  rdma::Transport& transport_;
  const bool native_flush_;
  const uint32_t number_;
  Shared shared_;
  ConnectionFlusher flusher_;
  std::shared_ptr<rdma::ProtectionDomain> domain_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  Exposures exposures_;
  EventInbox inbox_;
  std::unique_ptr<SessionServer> server_;
  Thread thread_;
};

}  // namespace pnfsrdma::brick
