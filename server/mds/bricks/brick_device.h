// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/brick_list.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/random.h"
#include "shared/brick/control.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

// The MDS's own number among the clients of a brick. Client ids of NFS never have it: they start with the
// boot count.
inline constexpr uint64_t kOwnBrickClient = UINT64_MAX;

using Ticket = xdr::FixedOpaque<brick::kTicketSize>;

// One brick as the MDS sees it: makes sure that it is the right one, claims it, brings it and the metadata
// into agreement, then passes calls on. Whenever the connection was lost, whatever happened behind it, or the
// brick says that the claim has lapsed (it took us for dead), everything starts over from claim(): all
// sessions are closed, so every grant is dead and what the layouts' tables have of this brick is emptied.
// That costs clients a LAYOUTGET and leaves one path to test, not four.
//
// But for the first claim of a run of the daemon that knows its clients (keep_sessions()): their sessions stay, and
// of each the grants that are on record (Hooks::adopt). Everything else is closed or withdrawn, as above, before
// anything new begins. Tickets are on record for that. Control loop only.
//
// Answers: what the brick refused is its Status; a lost call, whose outcome nobody knows, is kTryLater. The
// reconciliation that must follow sets right what it may have left behind.
class BrickDevice {
 public:
  template <typename T>
  using Answer = std::expected<T, brick::Status>;
  template <typename T>
  using Done = std::function<void(Answer<T>)>;

  enum class State {
    kOffline,      // no connection, or not claimed yet
    kForeign,      // what answers at the address is another brick, or another server's: it is left alone
    kReconciling,  // sessions, blocks and tails are being brought into agreement; nothing new may begin
    kReady,
    kFenced,  // another MDS has claimed it with a higher epoch: over for this process
  };
  struct Hooks {
    // Every grant is about to be dead and no new one is possible: forget layouts. Called before sessions are
    // closed.
    std::function<void()> on_lost;
    // Of a session that is kept: what the brick has there, by its numbers. `done` gets the grants that are to be
    // withdrawn.
    std::function<void(const brick::SessionEntry&, std::vector<brick::Grant>,
                       std::function<void(std::vector<uint64_t>)> done)>
        adopt;
    // That was all of them: a grant that has not been seen is dead. `done` when what relied on it has ended.
    std::function<void(std::function<void()> done)> adopted;
    // Sessions are closed, leaked blocks freed: zero dirty tails, then call `done(true)`. False: begin again.
    std::function<void(std::function<void(bool)> done)> zero_tails;
    std::function<void()> on_ready;
    std::function<void(const std::string& why)> on_fenced;
  };

  // Gives an epoch higher than any before and than `above`, once it is durable on our side; never from inside
  // the call.
  using EpochSource = std::function<void(uint64_t above, std::function<void(uint64_t epoch)> done)>;

  struct Parts {
    EventLoop& loop;
    KeyValueStore& store;
    brick::Control& control;
    BrickList& list;
    Random& random;
  };
  struct Options {
    std::string owner;
    // So long files wait for a brick that is away, with NFS4ERR_DELAY; then they answer NFS4ERR_IO until it
    // is back.
    Milliseconds patience{30'000};
  };

  // `number` is in parts.list and stays there.
  BrickDevice(const Parts& parts, BrickNumber number, EpochSource next_epoch, Options options);
  BrickDevice(const BrickDevice&) = delete;
  BrickDevice& operator=(const BrickDevice&) = delete;
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }
  using Tickets = std::unordered_map<uint64_t, Ticket>;  // by client
  // Of the run before, on the same boot of the host. Before the first connection.
  void keep_sessions(const Tickets& tickets);
  // By brick; `keep` says which are still of use, the others are erased. Blocks.
  static Result<std::map<BrickNumber, Tickets>> tickets_on_record(
      KeyValueStore& store, const std::function<bool(BrickNumber, uint64_t client)>& keep);

  // From the connection's events.
  void connected();
  void lost();
  void unreachable(const Error& why);

  BrickNumber number() const { return number_; }
  State state() const { return state_; }
  // Why it is not ready, for people; empty when it is.
  const std::string& detail() const { return detail_; }
  bool ready() const { return state_ == State::kReady; }
  // Calls that make nothing new pass: persist, zero, withdraw.
  bool usable() const { return state_ == State::kReconciling || state_ == State::kReady; }
  // What an operation answers that needs this brick: OK, DELAY for a while, then IO.
  nfs4::Status absence() const;
  // Why the last attempt to connect failed; none: there is a connection, or nothing was tried yet.
  const std::optional<Error>& unreachable_why() const { return unreachable_why_; }
  // Since when it is ready, or is not.
  SteadyTime since() const { return since_; }
  const BrickRecord& record() const { return *list_.find(number_); }
  Space& space() { return list_.space(number_); }
  // Of the last claim. Device id, paths, durability, verifier.
  const brick::ClaimResult& identity() const { return identity_; }
  bool identified() const { return identified_; }
  // Changes when unflushed bytes may have been lost.
  const BrickVerifier& verifier() const { return verifier_; }

  // --- sessions ---
  // The client's ticket, its session opened if it was not.
  void open_session(uint64_t client, Done<Ticket> done);
  // Expels. `done` when no memory is reachable for the client, by the brick's answer; or when the brick is
  // lost: then nothing new happens on it before all its sessions were closed.
  void close_session(uint64_t client, std::function<void()> done);

  // --- exposure; the session must be open ---
  void expose(uint64_t client, uint64_t logical, uint64_t length, bool writable,
              Done<brick::ExposeResult> done);
  // What the brick has of the client, those on their way to be withdrawn not counted.
  size_t grants_of(uint64_t client) const;
  // It has nearly as many as the brick lets one client have.
  bool at_own_limit(uint64_t client) const;
  // Whoever has most there, kOwnBrickClient not counted; 0: nobody has any.
  uint64_t holder_of_most() const;
  // When it last refused somebody because of a limit that all clients share: sessions, registrations.
  const std::optional<SteadyTime>& met_limit() const { return met_limit_; }
  // `done` when the handles are dead, likewise.
  void withdraw(uint64_t client, const std::vector<uint64_t>& grants, std::function<void()> done);

  // --- blocks and bytes ---
  void alloc(uint64_t logical, uint64_t count, Done<brick::RunsResult> done);
  // `done` when the brick has them, or nobody can tell: what a lost call leaves there is a leak, which the
  // next reconciliation frees. So does the one under way, of what it has not compared yet.
  void free(std::vector<brick::Run> runs, std::function<void()> done);
  void persist(const std::vector<brick::Range>& ranges, Done<brick::PersistResult> done);
  void zero(const std::vector<brick::Range>& ranges, Done<brick::StatusResult> done);
  // From one place of the brick to another, durably.
  void copy(uint64_t source, uint64_t target, uint64_t length, Done<brick::StatusResult> done);

  // --- for administrators ---
  void statistics(Done<brick::StatisticsResult> done);
  void loop_turns(Done<brick::LoopTurnsResult> done);
  void session_traffic(Done<brick::SessionTrafficResult> done);
  void list_sessions(Done<brick::SessionsResult> done);
  void list(const brick::ListArguments& arguments, Done<brick::ListResult> done);
  void survey(const brick::SurveyArguments& arguments, Done<brick::SurveyResult> done);
  // Blocks by their number in the brick.
  void erase(uint64_t from, uint64_t count, Done<brick::StatusResult> done);
  // Gives the brick up: whoever claims it next may have it. `done` whatever the brick says; then this object
  // is of no more use.
  void release(std::function<void(bool released)> done);

 private:
  struct Session {
    Ticket ticket{};
    bool open = false;
    size_t grants = 0;  // at the brick
  };
  void refused_by_limit(uint64_t client);

  // Wraps an answer of `control_`: errors, epochs, and answers of an earlier connection.
  template <typename T>
  std::function<void(Result<T>)> guard(Done<T> done);
  template <typename T>
  void refuse(Done<T> done, brick::Status status);

  void identify();
  void identified(const brick::IdentifyResult& found);
  // Why it must not be claimed; empty: it is ours, or free.
  std::string objection(const brick::IdentifyResult& found) const;
  void claim(uint64_t above);
  void claim_as(uint64_t epoch);
  void claimed(Result<brick::ClaimResult> result);
  void remember();
  // False: it could not be stored, so nothing may be said of what was flushed.
  bool take_verifier(const BrickVerifier& verifier);
  struct Adoption;
  void settle_sessions();
  void settle(const std::vector<brick::SessionEntry>& listed);
  void close_listed(uint64_t client, std::function<void()> done);
  void adopt_next(const std::shared_ptr<Adoption>& adoption);
  void adopt(const brick::SessionEntry& session, std::vector<brick::Grant> grants,
             const std::shared_ptr<Adoption>& adoption);
  void withdraw_orphans(uint64_t client, std::vector<uint64_t> grants, std::function<void()> done);
  void sessions_settled();
  // Tells whoever waited for a handle's death, so many a turn; then lists blocks, if the round is still that.
  void tell_dead();
  // A call that kills handles got no answer: they die with their sessions. Runs `done` then.
  void after_reset(uint64_t resets_before, std::function<void()> done);
  bool note_ticket(uint64_t client, const Ticket& ticket);
  void forget_ticket(uint64_t client);
  struct Comparison;
  void list_blocks(const std::shared_ptr<Comparison>& work);
  void compare_page(const std::shared_ptr<Comparison>& work);
  void blocks_compared(const Comparison& work);
  void finish_reconciling(uint64_t round);
  void end_round(const std::string& why);
  void begin_again(const std::string& why);
  void fenced(const std::string& why);
  void enter(State state, std::string detail);
  bool unclaimed() const { return (state_ == State::kOffline && !claiming_) || state_ == State::kForeign; }
  // Whether the device is still there, and in this round: what a callback must know to go on.
  auto current() {
    return [this, token = lifetime_.token(), round = round_] { return !token.expired() && round == round_; };
  }

  EventLoop& loop_;
  KeyValueStore& store_;
  brick::Control& control_;
  BrickList& list_;
  Random& random_;
  const BrickNumber number_;
  const EpochSource next_epoch_;
  uint64_t epoch_ = 0;  // of the claim in force
  const Options options_;
  Hooks hooks_;
  State state_ = State::kOffline;
  std::string detail_ = "not reached yet";
  std::optional<Error> unreachable_why_;
  SteadyTime since_;
  bool claiming_ = false;
  uint64_t compared_to_ = 0;  // the blocks it listed in this round, with ours: those in front of this address
  uint64_t round_ = 0;  // counts connections and new beginnings: an answer of an earlier round is a lost call
  uint64_t resets_ = 0;  // how often all sessions were known to be closed; not counted when some were kept
  brick::ClaimResult identity_;
  bool identified_ = false;
  BrickVerifier verifier_{};
  std::unordered_map<uint64_t, Session> sessions_;
  std::optional<SteadyTime> met_limit_;
  std::optional<SteadyTime> limit_told_;  // in the log
  bool settled_ = false;                  // in this round all sessions of before have been: closed, or kept
  bool adoptable_ = false;                // until the first claim
  bool adopting_ = false;                 // in this round: some are kept
  uint64_t round_to_list_ = 0;
  std::vector<std::function<void()>> waiting_for_reset_;
  std::deque<std::function<void()>> dead_;  // of them, those who have not been told yet
  std::vector<std::function<void()>> waiting_for_closing_;
  Lifetime lifetime_;
};

template <typename T>
std::function<void(Result<T>)> BrickDevice::guard(Done<T> done) {
  return lifetime_.guard([this, round = round_, done = std::move(done)](Result<T> result) {
    if (!result || round != round_) return done(std::unexpected(brick::Status::kTryLater));
    if (result->status == brick::Status::kStaleEpoch) fenced("a newer metadata server has claimed the brick");
    if (result->status == brick::Status::kLapsed) {
      begin_again("it took this server for dead");
      return done(std::unexpected(brick::Status::kTryLater));
    }
    if (result->status != brick::Status::kOk) return done(std::unexpected(result->status));
    done(std::move(*result));
  });
}

template <typename T>
void BrickDevice::refuse(Done<T> done, brick::Status status) {
  loop_.post(lifetime_.guard([done = std::move(done), status] { done(std::unexpected(status)); }));
}

// What a refusal of the brick is on the wire.
nfs4::Status status_of(brick::Status status);

}  // namespace pnfsrdma::mds
