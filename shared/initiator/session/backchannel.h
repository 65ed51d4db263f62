// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/callbacks.h"
#include "shared/initiator/session/socket.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::initiator {

// The callback service: takes the server's calls from whoever polls the connection, runs them on its own
// thread (the recall thread), keeps the slots of the backchannel (RFC 8881, 2.10.6 and 20.9), answers.
// Thread-safe.
class Backchannel {
 public:
  // What it needs of the session.
  struct Hooks {
    // CB_RECALL_SLOT.
    std::function<void(uint32_t highest)> limit_slots;
    // Is this call of ours still without a processed reply? (CB_SEQUENCE's referring calls)
    std::function<bool(uint32_t slot, uint32_t sequence)> outstanding;
  };

  void start(Hooks hooks);
  // Ends the thread; what is queued is not answered.
  void stop();
  void set_handler(CallbackHandler* handler) { handler_ = handler; }
  // A new session: its callbacks begin with sequence 1 on every slot.
  void reset(const nfs4::SessionId& session, uint32_t slots);

  void push(std::shared_ptr<SessionSocket> socket, Bytes record);

 private:
  struct Job {
    std::shared_ptr<SessionSocket> socket;
    Bytes record;
  };
  struct CallbackSlot {
    uint32_t sequence = 0;  // of the last request
    Bytes request;          // its COMPOUND
    Bytes reply;            // its results
  };
  // The results of one COMPOUND and what to do behind the reply.
  struct Executed {
    Bytes results;
    std::function<void()> then;
  };

  void run();
  void serve(const Job& job);
  Executed execute(nfs4::CallbackCompoundReader& reader, ByteSpan request);
  nfs4::CallbackSequenceResponse sequence(const nfs4::CallbackSequenceArguments& arguments, ByteSpan request,
                                          CallbackSlot*& slot, bool& replay);
  nfs4::Status wait_for_referred(const nfs4::CallbackSequenceArguments& arguments);
  nfs4::CallbackResultOperation answer(const nfs4::CallbackArgumentOperation& arguments,
                                       std::function<void()>& then);

  // A reply that is on its way is processed within this time; else the server hears DELAY and asks again.
  static constexpr Milliseconds kReferredPatience = std::chrono::milliseconds(200);
  static constexpr Milliseconds kSendPatience = std::chrono::seconds(5);

  Hooks hooks_;
  std::atomic<CallbackHandler*> handler_ = nullptr;
  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::deque<Job> jobs_;
  bool stopping_ = false;
  nfs4::SessionId session_{};
  std::vector<CallbackSlot> slots_;
  uint64_t session_number_ = 0;

  Thread thread_;
};

}  // namespace pnfsrdma::initiator
