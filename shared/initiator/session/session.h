// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/latency_histogram.h"
#include "shared/base/result.h"
#include "shared/initiator/callbacks.h"
#include "shared/initiator/credential.h"
#include "shared/initiator/session/options.h"
#include "shared/nfs4/operations.h"

namespace pnfsrdma::initiator {

// kReserved may also use the slot that is kept for LAYOUTRETURN and LAYOUTCOMMIT, so that a recall ends even
// while every other slot waits for the operation that caused it.
enum class Urgency { kNormal, kReserved };

struct CompoundReply;

struct CallOptions {
  Urgency urgency = Urgency::kNormal;
  // sa_cachethis: the server keeps the reply for an exact replay. For everything that is not idempotent.
  bool cache_reply = false;
  // NFS4ERR_DELAY, GRACE and (by LAYOUTGET) LAYOUTTRYLATER, RECALLCONFLICT are the caller's business: no
  // repetition here.
  bool return_delay = false;
  // Part of RecoveryHandler::reclaim: runs before the session is open to others.
  bool recovery = false;
  // Fails with ETIMEDOUT when passed, whatever the mount's persistence says.
  SteadyTime deadline = SteadyTime::max();
  // When it becomes true the call fails with EINTR, a second later at most; so it does when the thread's
  // Cancellation is gone. Must outlive the call.
  const std::atomic<bool>* interrupted = nullptr;
  // Each time the rest of a COMPOUND is to be repeated (DELAY): what is answered so far. It is done, and may
  // be what the server waits for, whether the rest ever gets through or not. On the caller's thread; must
  // outlive the call.
  const std::function<void(const CompoundReply&)>* on_repetition = nullptr;
};

// The answer to a COMPOUND, SEQUENCE taken off: results[i] answers operations[i]; after a failure the list
// ends with the operation that failed.
struct CompoundReply {
  CompoundReply() = default;
  // Not to be copied: results may hold views into the records (the data of READ).
  CompoundReply(CompoundReply&&) = default;
  CompoundReply& operator=(CompoundReply&&) = default;

  nfs4::Status status = nfs4::Status::kOk;
  std::vector<nfs4::ResultOperation> results;
  // Sent again under a new session: the server may have done it twice (REMOVE then says NOENT, CREATE EXIST).
  bool repeated = false;

  bool ok() const { return status == nfs4::Status::kOk; }
  // Did operation `index` run with success?
  bool succeeded(size_t index) const {
    return index < results.size() && (ok() || index + 1 < results.size());
  }
  // The result of operation `index` if it ran with success; null else.
  // reply.result<nfs4::GetAttributesResponse>(3)
  template <typename Response>
  const typename Response::Result* result(size_t index) const {
    if (!succeeded(index)) return nullptr;
    const Response* response = std::get_if<Response>(&results[index]);
    return response != nullptr && response->ok() ? &response->result : nullptr;
  }

  // What the views point into.
  std::vector<Bytes> records;
};

// Calls since the start: one number per operation of the fore channel (SEQUENCE is in every COMPOUND), and
// events.
struct SessionStatistics {
  uint64_t compounds = 0;  // without those that only renew the lease
  uint64_t renewals = 0;
  std::array<uint64_t, 80> operations{};  // by operation number
  uint64_t reconnects = 0;
  uint64_t new_sessions = 0;
  uint64_t new_clientids = 0;
  uint64_t delays = 0;  // repetitions after DELAY, GRACE, LAYOUTTRYLATER
  uint64_t callbacks = 0;
  uint64_t send_calls = 0, receive_calls = 0;  // system calls on the socket
  LatencyHistogram::Snapshot latency;          // of answered calls, repetitions and recovery included
  uint32_t slots = 0, slots_in_use = 0;        // of the fore channel
};

// One NFSv4.2 (or 4.1) session with an MDS over TCP. Thread-safe; made for many threads that call at once.
// Whoever waits for a reply receives on the socket itself: with one caller a call is one send() and one
// recv() and no other thread runs.
//
// Lost connections, BADSESSION, STALE_CLIENTID, DELAY and GRACE are dealt with inside. What a caller sees as
// Error: ETIMEDOUT (soft, softerr, deadline; EIO for soft), EINTR (interrupted), ESHUTDOWN (abort), EPROTO
// (the server's reply is not a reply), EMSGSIZE (the request is too long for the session). Everything else is
// a status in the reply. After a change of generation() a stateid in a repeated COMPOUND may be old:
// BAD_STATEID and the like are the caller's to repeat.
class Session {
 public:
  // A COMPOUND under way. Movable; dropping it lets the reply go unread.
  class InFlight;
  using Completion = std::function<void(Result<CompoundReply>)>;
  using Operations = std::vector<nfs4::ArgumentOperation>;

  // Connects and establishes client and session. The handlers may be null and must outlive the session.
  // Error::what() names cause and fix, for a user.
  static Result<std::unique_ptr<Session>> start(const SessionOptions& options, CallbackHandler* callbacks,
                                                RecoveryHandler* recovery);
  // Destroys session and clientid at the server (when it answers within a second) and ends all threads.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Handlers made after the session. Before the first call that could give the server cause to use them.
  void set_handlers(CallbackHandler* callbacks, RecoveryHandler* recovery);

  // Sends SEQUENCE and `operations`, waits for the answer, repeats what is to be repeated.
  Result<CompoundReply> call(Operations operations, const Credential& credential,
                             const CallOptions& options = {});

  // The same in two halves. begin() sends at once when a slot is free (else finish() does it all); it never
  // waits.
  InFlight begin(Operations operations, const Credential& credential, const CallOptions& options = {});
  Result<CompoundReply> finish(InFlight in_flight);

  // Nobody waits: `completion` (may be empty) is called on a thread of the session's, in the order of the
  // posts.
  void post(Operations operations, const Credential& credential, const CallOptions& options,
            Completion completion);
  // Waits until all posted calls are complete. False when `deadline` passed first.
  bool drain_posts(SteadyTime deadline);

  // The server does not know the stateid of an open, though the session lives and no flag says so: the opens are
  // reclaimed or opened anew (RecoveryHandler; layouts stay), and this waits until they are. Once a
  // second at most; whoever comes earlier waits for the next time.
  void renew_opens();

  // Takes leave of the server (as the destructor does) and ends all threads: no handler runs any more. Later
  // calls fail with ESHUTDOWN.
  void end();
  // Fails every call with ESHUTDOWN, now and later. For the end of a mount whose server does not answer.
  void abort();
  bool aborted() const;

  // Changes when layouts of before are void: a new session after BADSESSION, a new clientid.
  uint64_t generation() const;

  uint32_t minor_version() const;
  uint64_t clientid() const;
  // Bytes that a READ or WRITE may carry so that request and reply fit the session (at least 4096).
  uint32_t io_size_max() const;
  // Operations that one COMPOUND may hold, SEQUENCE among them.
  uint32_t operations_max() const;
  Milliseconds lease() const;
  // A lease after the newest answered call was sent: until then the server has not expired it.
  SteadyTime lease_end() const;
  // "mds1,mds2:2049", for messages.
  const std::string& server() const;
  // Of the server's hosts the one that the connection leads to, or led to last.
  std::string host_in_use() const;
  // What the server calls itself (eir_server_impl_id), for display. May be empty.
  std::string implementation() const;
  SessionStatistics statistics() const;

 private:
  class State;
  explicit Session(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

class Session::InFlight {
 public:
  InFlight();
  ~InFlight();
  InFlight(InFlight&&) noexcept;
  InFlight& operator=(InFlight&&) noexcept;

 private:
  friend class Session;
  struct Call;
  explicit InFlight(std::unique_ptr<Call> call);
  std::unique_ptr<Call> call_;
};

}  // namespace pnfsrdma::initiator
