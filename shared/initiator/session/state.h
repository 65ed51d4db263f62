// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "shared/base/deferred_destruction.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/backchannel.h"
#include "shared/initiator/session/establishment.h"
#include "shared/initiator/session/poller.h"
#include "shared/initiator/session/session.h"
#include "shared/initiator/session/slots.h"
#include "shared/initiator/session/socket.h"

namespace pnfsrdma::initiator {

// One call: what it wants and where it is.
struct Session::InFlight::Call {
  Operations operations;
  Credential credential;
  CallOptions options;
  Completion completion;
  SteadyTime began;
  Slot* slot = nullptr;                 // null: not sent
  std::weak_ptr<Session::State> state;  // to give the slot up when nobody finishes the call
};

// The server has taken state back, and says so until the client has found out which (RFC 8881, 18.46.3).
inline constexpr uint32_t kRevokedFlags =
    nfs4::kSequenceExpiredAllStateRevoked | nfs4::kSequenceExpiredSomeStateRevoked |
    nfs4::kSequenceAdminStateRevoked | nfs4::kSequenceRecallableStateRevoked;

// What is behind a Session. Three groups of methods: calls (call.cc, reply.cc: any thread),
// recovery and lease (recovery.cc: the background thread), posts (posts.cc: their thread).
//
// One mutex guards everything marked so; it is never held across a system call on the socket. System calls of
// a call in steady state with one caller: send, recv. After a pause of idle_delay two more to disarm the
// poller.
class Session::State : public std::enable_shared_from_this<Session::State> {
 public:
  using Call = InFlight::Call;

  explicit State(const SessionOptions& options);
  ~State();

  Result<> establish_first(CallbackHandler* callbacks, RecoveryHandler* recovery);
  void start_threads();
  void end();

  // Calls.
  Result<CompoundReply> finish(Call& call);
  // The same, and how long the call took is counted.
  Result<CompoundReply> finish_measured(Call& call);
  bool begin(Call& call);
  void post(std::unique_ptr<Call> call);
  bool drain_posts(SteadyTime deadline);
  void give_up(Call& call);
  void renew_opens();
  void abort();

  // Set before the threads start, or atomic.
  SessionOptions options;
  std::atomic<RecoveryHandler*> recovery_handler = nullptr;
  Backchannel backchannel;
  std::atomic<bool> aborted = false;
  std::atomic<uint64_t> generation = 1;
  std::atomic<uint32_t> io_size_max = 4096;
  std::atomic<uint32_t> operations_max = 2;
  // On a clock that runs on while the host is suspended; written under the mutex.
  std::atomic<SteadyTime> lease_end = SteadyTime{};
  LatencyHistogram latency;
  std::string server_name;

  Established established() const;
  std::string host_in_use() const;
  SessionStatistics statistics() const;

 private:
  static SteadyTime now() { return steady_now(); }
  void stamp(Slot& slot);
  enum class Standing {
    kLive,
    kDisconnected,  // the background thread has to act: `damage_` says how much is lost
    kRecovering,    // it is at it
    kReclaiming,    // the session is there; only the reclaim may begin calls in it
  };
  using Lock = std::unique_lock<Mutex>;

  // call.cc
  Result<Slot*> acquire(Call& call, bool wait);
  Result<bool> send_new(Call& call, bool wait);
  void transmit(const std::shared_ptr<SessionSocket>& socket, ByteSpan record);
  Result<> await_reply(Call& call);
  std::optional<Error> stop_reason(Lock& lock, Call& call);
  void check_patience(Lock& lock, const Slot& slot);
  Milliseconds silence() const;
  bool usable_by(const CallOptions& call) const;
  bool connected() const;
  bool replies_awaited();
  void poll_once(Lock& lock, bool wait);
  void deliver(Bytes record);
  void deliver_reply(Slot& slot, Bytes record);
  void appoint_poller();
  void release(Slot& slot, bool sequence_used);
  void encode(Call& call, Slot& slot);
  void void_request(Slot& slot);
  bool pause(Call& call, Milliseconds duration);

  // reply.cc
  enum class Verdict { kDone, kSendAgain, kBuildAnew };
  struct Answer {
    Verdict verdict = Verdict::kDone;
    CompoundReply reply;
  };
  Result<Answer> interpret(Call& call);
  Result<Answer> after_sequence_error(Call& call, nfs4::Status status);
  void send_again(Call& call);
  void note_sequence(Slot& slot, const nfs4::SequenceResult& sequence);
  void note_status_flags(Lock& lock, uint32_t flags);

  // recovery.cc; the background thread.
  void run_background();
  void lose(Lock& lock, const std::shared_ptr<SessionSocket>& socket, Damage damage, std::string_view why);
  void recover();
  Result<> try_to_recover(Damage damage);
  Result<> recover_at(size_t host, Damage damage);
  const std::string& host(size_t number) const;
  void next_host();
  void publish(const std::shared_ptr<SessionSocket>& socket, const Recovered& recovered);
  Result<> ask_what_was_done(const std::shared_ptr<SessionSocket>& socket);
  void settle_slots(bool new_session, std::vector<Slot*>& to_send);
  Result<> reclaim();
  Result<> ask_limits();
  void post_limits();
  void take_limits(const CompoundReply& reply);
  void keep_lease();
  bool is_in_doubt(SteadyTime time);
  void keep_patience();
  void keep_watch(Poller::Events events);

  // The background thread's: which of the server's hosts, 0 is the first one.
  size_t tried_at_ = 0;
  size_t found_at_ = 0;

  // revoked.cc; the background thread, and the posts thread with the answers.
  void free_revoked();
  void test_stateids(std::vector<nfs4::Stateid> stateids);
  void free_stateid(const nfs4::Stateid& stateid);
  void gone(const nfs4::Stateid& stateid);

  // posts.cc
  void run_posts();
  std::unique_ptr<Call> next_finished_post(Lock& lock);
  void reap_abandoned(Lock& lock);

  DeferredDestruction destruction_{"session-destroy"};  // of connections by RDMA; before whoever holds one
  mutable Mutex mutex_;
  // Guarded by mutex_.
  Standing standing_ = Standing::kRecovering;
  Damage damage_ = Damage::kConnection;
  bool silent_ = false;  // what was lost is the connection to a host that did not answer
  std::shared_ptr<SessionSocket> socket_;
  Established established_;
  SlotTable slots_;
  bool polling_ = false;  // somebody receives from socket_
  bool stopping_ = false;
  uint32_t slot_waiters_ = 0;
  Condition changed_;  // a slot came free, or standing_ changed
  uint32_t status_flags_ = 0;
  SteadyTime test_again_at_{};   // stateids, while the server says that some are revoked
  bool test_wanted_ = false;     // whatever the flags say: the session is a new one
  SteadyTime renew_again_at_{};  // opens that it does not know
  SteadyTime renewed_at_;
  SteadyTime heard_at_;       // anything, by socket_
  std::string host_;          // it leads to
  SteadyTime answered_at_{};  // when the newest answered call was sent, on the clock of lease_end
  SteadyTime last_call_;
  bool reclaim_wanted_ = false;  // stateids are in doubt
  bool renewal_wanted_ = false;  // those of opens only
  uint64_t reclaims_ = 0;
  std::deque<std::unique_ptr<Call>> finished_posts_;  // answered, or never sent
  std::vector<std::unique_ptr<Call>> posted_;         // on the wire
  uint32_t posts_open_ = 0;
  Condition posts_changed_;
  SessionStatistics statistics_;

  // Belongs to whoever set polling_.
  std::vector<Bytes> received_;

  SessionSocket::Counters socket_counters_;
  Establishment establishment_;  // of the background thread (and of establish_first())
  Poller poller_;
  Thread background_;
  Thread posts_;
};

}  // namespace pnfsrdma::initiator
