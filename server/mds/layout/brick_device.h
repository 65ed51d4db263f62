// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/mds/meta/space.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/brick/control.h"

namespace pnfsrdma::mds {

// The MDS's own number among the clients of a brick. Client ids of NFS never have it: they start with the
// boot count.
inline constexpr uint64_t kOwnBrickClient = UINT64_MAX;

using Ticket = xdr::FixedOpaque<brick::kTicketSize>;

// One brick as the MDS sees it: claims it, brings it and the metadata into agreement, then passes calls on.
// Whenever the connection was lost, whatever happened behind it, everything starts over from claim(): all
// sessions are closed, so every grant is dead and the layouts' tables are emptied. That costs clients a
// LAYOUTGET and leaves one path to test, not three. Control loop only.
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
    kReconciling,  // sessions, blocks and tails are being brought into agreement; nothing new may begin
    kReady,
    kFenced,  // another MDS has claimed it with a higher epoch: over for this process
  };
  struct Hooks {
    // Every grant is about to be dead and no new one is possible: forget layouts. Called before sessions are
    // closed.
    std::function<void()> on_lost;
    // Sessions are closed, leaked blocks freed: zero dirty tails, then call `done(true)`. False: begin again.
    std::function<void(std::function<void(bool)> done)> zero_tails;
    std::function<void()> on_ready;
    std::function<void(const std::string& why)> on_fenced;
  };

  // Gives an epoch higher than any before, once it is durable on our side; never from inside the call.
  using EpochSource = std::function<void(std::function<void(uint64_t epoch)> done)>;

  BrickDevice(EventLoop& loop, brick::Control& control, Space& space, Random& random, EpochSource next_epoch,
              std::string owner);
  BrickDevice(const BrickDevice&) = delete;
  BrickDevice& operator=(const BrickDevice&) = delete;
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

  // From the connection's events.
  void connected();
  void lost();

  State state() const { return state_; }
  bool ready() const { return state_ == State::kReady; }
  // Of the last claim. Device id, paths, durability, verifier.
  const brick::ClaimResult& identity() const { return identity_; }
  bool identified() const { return identified_; }
  // Changes when unflushed bytes may have been lost.
  const xdr::FixedOpaque<8>& verifier() const { return verifier_; }

  // --- sessions ---
  // The client's ticket, its session opened if it was not.
  void open_session(uint64_t client, Done<Ticket> done);
  // Expels. `done` when no memory is reachable for the client, by the brick's answer or because all its
  // sessions went.
  void close_session(uint64_t client, std::function<void()> done);

  // --- exposure; the session must be open ---
  void expose(uint64_t client, uint64_t logical, uint64_t length, bool writable,
              Done<brick::ExposeResult> done);
  // `done` when the handles are dead, likewise.
  void withdraw(uint64_t client, const std::vector<uint64_t>& grants, std::function<void()> done);

  // --- blocks and bytes ---
  void alloc(uint64_t logical, uint64_t count, Done<brick::RunsResult> done);
  // Nobody waits: what a lost call leaves on the brick is a leak, which the next reconciliation frees.
  void free(const std::vector<brick::Run>& runs);
  void persist(const std::vector<brick::Range>& ranges, Done<brick::PersistResult> done);
  void zero(const std::vector<brick::Range>& ranges, Done<brick::StatusResult> done);

 private:
  struct Session {
    Ticket ticket{};
    bool open = false;
  };

  // Wraps an answer of `control_`: errors, epochs, and answers of an earlier connection.
  template <typename T>
  std::function<void(Result<T>)> guard(Done<T> done);
  template <typename T>
  void refuse(Done<T> done, brick::Status status);

  void claim();
  void claim_as(uint64_t epoch);
  void claimed(Result<brick::ClaimResult> result);
  void close_listed_sessions();
  void sessions_closed();
  // A call that kills handles got no answer: they die with their sessions. Runs `done` then.
  void after_reset(uint64_t resets_before, std::function<void()> done);
  void list_blocks(uint64_t from, std::shared_ptr<std::vector<brick::Run>> listed);
  void compare_blocks(const std::vector<brick::Run>& listed);
  void finish_reconciling(uint64_t round);
  void begin_again();
  void fenced(const std::string& why);
  bool usable() const { return state_ == State::kReconciling || state_ == State::kReady; }

  EventLoop& loop_;
  brick::Control& control_;
  Space& space_;
  Random& random_;
  const EpochSource next_epoch_;
  uint64_t epoch_ = 0;  // of the claim in force
  const std::string owner_;
  Hooks hooks_;
  State state_ = State::kOffline;
  uint64_t round_ = 0;  // counts connections and new beginnings: an answer of an earlier round is a lost call
  uint64_t resets_ = 0;  // how often all sessions were known to be closed
  brick::ClaimResult identity_;
  bool identified_ = false;
  xdr::FixedOpaque<8> verifier_{};
  std::unordered_map<uint64_t, Session> sessions_;
  std::vector<std::function<void()>> waiting_for_reset_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pnfsrdma::mds
