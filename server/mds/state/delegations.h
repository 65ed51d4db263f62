// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/mds/state/callback_channel.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/state_store.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// How long an operation waits for delegations that it recalls before it is answered NFS4ERR_DELAY.
inline constexpr Milliseconds kDelegationPatience{250};
// How long nobody gets a delegation of a file after one was recalled: to recall costs more than to ask.
inline constexpr Milliseconds kContended{30'000};
// A holder of a write delegation who is at work on giving it back gets so many leases for it at most.
inline constexpr int kLeasesToReturn = 4;

// The life of delegations: given, recalled, returned, revoked (RFC 8881, 10.2 to 10.5). A recall is repeated
// until the client has answered NFS4_OK: any error may mean that it has overtaken the reply that brings the
// delegation (2.10.6.3). What is not returned within a lease from the first CB_RECALL on is revoked, or from when its
// holder was last at_work(). Control loop only; its records are written here.
class Delegations {
 public:
  Delegations(EventLoop& loop, DelegationTable& table, CallbackChannel& callbacks, StateStore& store,
              Counters& counters, Milliseconds lease, Milliseconds contended = kContended);
  ~Delegations();
  Delegations(const Delegations&) = delete;
  Delegations& operator=(const Delegations&) = delete;

  const DelegationTable& table() const { return table_; }
  // Called when the last delegation of a file has gone.
  void set_unused(std::function<void(uint64_t inode)> unused) { unused_ = std::move(unused); }

  // Called before a write delegation that its holder does not return is revoked: others may have from then on what he
  // has locked, so he must not write by himself. It calls `done` once, at once or later, when he cannot; and he cannot
  // as long as what `done` gets is kept: until the revocation is on record.
  using Fence = std::function<void(ClientId client, uint64_t inode,
                                   std::function<void(std::shared_ptr<const void>)> done)>;
  void set_fence(Fence fence) { fence_ = std::move(fence); }

  // As long as one of these lives nobody gets a delegation of the file that the act conflicts with, but the client
  // itself one to write.
  using Hold = std::shared_ptr<const void>;
  Hold hold(uint64_t inode, ClientId client, FileAct act = FileAct::kChange);

  // Recalls the file from everybody but `except` (0: nobody is excepted). `done` is called once, at once or
  // later: NFS4_OK when nobody else holds it, NFS4ERR_DELAY when that takes longer than kDelegationPatience.
  using Done = std::function<void(nfs4::Status)>;
  void recall(uint64_t inode, ClientId except, Done done);

  // What becomes of a delegation by what has become of the handle under which it was given.
  enum class Verdict : uint8_t {
    kStays,
    kRecalled,
    kGone,  // the same, but no operation takes the handle any more, DELEGRETURN neither
  };
  // Recalls all on which that is the verdict, some a turn of the loop; of what is given meanwhile perhaps not all are
  // judged. One that is kGone ends with the answer NFS4_OK to its recall, behind which its holder does not use it.
  using Judge = std::function<Verdict(const nfs4::FileHandle&)>;
  void recall_by_handle(Judge judge);

  // The client does to the file what comes before the return of a write delegation. Nothing happens if it has none that
  // is recalled.
  void at_work(ClientId client, uint64_t inode);

  // What the holder of a write delegation says of the file (CB_GETATTR, RFC 8881, 10.4.3 and 20.1).
  struct Told {
    StateidOther delegation{};
    uint64_t size = 0;
    bool is_changed = false;  // more than we know, or perhaps
    HeldTimes times;          // where he keeps them
  };
  // `done` is called once, at once or later, with nothing where there is none, or it says nothing of use within
  // kDelegationPatience; from then on it is asked nothing until it has answered some callback. Who asks while the
  // holder is being asked has his answer from the next question, which all who have come meanwhile share.
  using TakeTold = std::function<void(std::optional<Told>)>;
  void ask_holder(uint64_t inode, TakeTold done);

  // Others were shown this size, with this value of the change attribute.
  void shown(const StateidOther& delegation, uint64_t size, uint64_t change);

  // A new one. Whether it fits to opens, layouts and the grace period is the caller's to know. CONTENTION: the
  // file is being changed, or used, or another has what this one does not go with, or one was recalled a short time
  // ago. RESOURCE: the client has one of the file, or as many as it may have, or memory is short (then it is asked by
  // CB_RECALL_ANY to return some), or the store refuses.
  struct Request {
    ClientId client = 0;
    uint64_t inode = 0;
    DelegationKind kind = DelegationKind::kRead;
    std::optional<uint64_t> change;  // the file's, where the delegation is to write
    std::optional<WallTime> mtime;   // the file's, where its holder is to keep the times
    nfs4::FileHandle handle;
    StateidOther other{};  // what its stateid will be
    size_t of_client_max = 0;
  };
  std::expected<nfs4::Stateid, nfs4::WhyNoDelegation> grant(const Request& request);
  // The same for one that the client held before a reboot of the host.
  std::expected<nfs4::Stateid, nfs4::WhyNoDelegation> reclaim(const Request& request);

  // Files that are remembered because one was recalled; also some for which that is over.
  size_t contended_files() const { return contended_.entries.size(); }

  // DELEGRETURN, and FREE_STATEID of a revoked one. DELAY, IO: it stays.
  Outcome<> give_back(DelegationState& state);
  // Its client has ended, and its record goes with the client's.
  void forget(DelegationState& state);

 private:
  // A recall that is under way.
  struct Pending {
    EventLoop::TimerId lease_timer = 0;
    EventLoop::TimerId retry_timer = 0;
    SteadyTime until, bound;            // when it is revoked: now, and at most
    bool is_gone = false;               // it cannot be returned
    std::shared_ptr<const void> fence;  // it is being revoked
  };
  // A holder is being asked for attributes.
  struct Asking {
    EventLoop::TimerId timer = 0;
    std::vector<TakeTold> now, next;
  };
  using AskingPointer = std::shared_ptr<Asking>;
  // An operation that waits for everybody but one to have returned the file.
  struct Waiting {
    ClientId except = 0;
    EventLoop::TimerId timer = 0;
    Done done;
  };
  struct Holders {
    size_t changes = 0;
    std::map<ClientId, size_t> holds;
  };
  using Holds = std::unordered_map<uint64_t, Holders>;
  // What is true of these for a while.
  template <typename Key>
  struct Until {
    static constexpr size_t kMany = 4096;
    std::unordered_map<Key, SteadyTime> entries;
    size_t many = kMany;  // from so many on, those that are over are looked for
    void drop_past(SteadyTime now);
  };

  std::expected<nfs4::Stateid, nfs4::WhyNoDelegation> make(const Request& request);
  void demand_some(uint64_t inode, ClientId except, const DelegationState& behind);
  struct Sweep;
  void sweep_some(const std::shared_ptr<Sweep>& sweep);
  void demand(const DelegationState& state, bool is_gone = false);
  void send(const StateidOther& other);
  void answered(const StateidOther& other, const CallbackChannel::Answer& answer);
  void ask(const DelegationState& state, std::vector<TakeTold> askers);
  void told(const StateidOther& other, const AskingPointer& asking, const std::optional<Told>& answer);
  void expire(const StateidOther& other);
  void revoke(const StateidOther& other);
  void end_recall(const StateidOther& other);
  void settle(uint64_t inode);
  void wake_some();
  using Continuation = std::function<void()>;
  void wake(std::vector<Continuation> waiting);
  bool is_held_against(const Request& request) const;
  bool is_contended(uint64_t inode);
  void ask_for_less(ClientId client);

  EventLoop& loop_;
  DelegationTable& table_;
  CallbackChannel& callbacks_;
  StateStore& store_;
  Counters& counters_;
  const Milliseconds lease_, contended_for_;
  std::function<void(uint64_t)> unused_;
  Fence fence_ = [](ClientId, uint64_t, const auto& done) { done(nullptr); };
  std::shared_ptr<Holds> holds_ = std::make_shared<Holds>();  // a Hold may outlive us
  std::unordered_map<StateidOther, Pending, StateidOtherHash> pending_;
  std::multimap<uint64_t, std::shared_ptr<Waiting>> waiting_;  // by file
  std::deque<Continuation> waking_;                            // for whom that is over
  bool in_waking_ = false;
  std::unordered_map<StateidOther, AskingPointer, StateidOtherHash> asking_;
  std::unordered_set<ClientId> silent_;  // holders who owe an answer to a CB_GETATTR
  Until<uint64_t> contended_;            // by file
  Until<ClientId> asked_for_less_;       // not again before
  Lifetime lifetime_;
};

// `done`, and nobody gets a delegation of the file before it has been called.
template <typename Done>
auto holding(Delegations::Hold hold, Done done) {
  return [hold = std::move(hold), done = std::move(done)](auto... answer) { done(std::move(answer)...); };
}

}  // namespace pnfsrdma::mds
