// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "server/brickd/counters.h"
#include "server/brickd/exposures.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/signals.h"
#include "server/brickd/verification.h"
#include "server/brickd/watchers.h"
#include "server/brickd/words.h"
#include "shared/base/result.h"
#include "shared/brick/session_codec.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::brick {

// Serves one data connection from a thread of its own: drives the transport (one-sided operations of the peer
// are served by that on software transports) and answers the session messages, without the control loop.
//
// Per commit message or changed word: no allocation, one flush call per range, one SEND whose own completion
// wakes nobody. A message beyond the credits, malformed or out of order ends the connection and one line goes
// to the log.
class SessionServer {
 public:
  static constexpr uint32_t kUnderstands =
      kUnderstandsChangeWord | kUnderstandsVerify | kUnderstandsEvents;  // AcceptPrivateData's

  // What a server works on, all of it longer than itself.
  struct Parts {
    Exposures& exposures;
    FlushGate& gate;
    Counters& counters;
    Watchers& watchers;
    EventInbox& inbox;
  };

  // Registers the message buffers in the connection's domain and posts the receives.
  static Result<std::unique_ptr<SessionServer>> make(rdma::Transport& transport,
                                                     std::shared_ptr<rdma::ProtectionDomain> domain,
                                                     rdma::QueuePair& queue_pair, const Parts& parts,
                                                     uint32_t connection,
                                                     std::shared_ptr<ReplayRecord> record);

  // Until the connection ends.
  void run();

 private:
  SessionServer(rdma::QueuePair& queue_pair, const Parts& parts, uint32_t connection,
                std::shared_ptr<ReplayRecord> record);

  Result<> handle(const rdma::Completion& completion);
  Result<> receive(uint32_t buffer, uint32_t length);
  void wait();
  uint32_t credits() const;
  bool take_events_call(const EventsCall& call);
  void answer_events();
  Result<> post_receive(std::optional<uint32_t> number);
  void answer_hello();
  std::optional<SessionMessage> answer(const SessionMessage& call);
  PersistReply persist(const PersistCall& call);
  Result<> send_waiting();
  MutableByteSpan buffer(uint32_t number);

  rdma::QueuePair& queue_pair_;
  Exposures& exposures_;
  FlushGate& gate_;
  Counters& counters_;
  Watchers& watchers_;
  EventInbox& inbox_;
  const uint32_t connection_;
  Words words_;
  Verification verification_;
  Signals signals_;
  Bytes buffers_;
  std::unique_ptr<rdma::Region> region_;

  bool greeted_ = false;
  std::optional<uint64_t> events_call_;    // waits for an event
  uint32_t unanswered_ = 0;                // messages received whose (last) answer is not posted
  std::optional<uint32_t> spare_receive_;  // the last message's: posted behind its answer
  std::deque<SessionMessage> waiting_;     // answers without a free buffer
  std::vector<uint32_t> free_buffers_;
  SessionMessage message_;        // the last one; kept, as ranges_ is, for its room
  std::vector<ByteSpan> ranges_;  // of the last commit message
};

}  // namespace pnfsrdma::brick
