// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/mds/log/follower.h"
#include "server/mds/log/key_server.h"
#include "server/mds/log/lead_keeper.h"
#include "server/mds/log/leadership.h"
#include "server/mds/log/log_keys.h"
#include "server/mds/log/log_presence.h"
#include "server/mds/log/store_position.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/latency_histogram.h"
#include "shared/base/lifetime.h"
#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// This server as one of those that share a log: it joins the log, follows it as a standby, takes the lead when nobody
// else has it, and then writes. Made and used by the control loop's thread.
class LogMember {
 public:
  struct Options {
    std::string prefix;
    std::string name;         // of this server among the others
    std::string place;        // LeadClaim::place
    std::string copies = {};  // LeadClaim::copies
    ConnectKeyServer connect;
    const Clock& clock;  // of the lead: BootClock. Outlives this
    // What this server does, for people; called when that has changed. May be null.
    std::function<void(const std::string&)> status;
  };
  LogMember(EventLoop& loop, Random& random, Options options);
  ~LogMember();
  LogMember(const LogMember&) = delete;
  LogMember& operator=(const LogMember&) = delete;

  // Blocks: joins the log and follows it until this server leads and `store`, which nobody else uses, has all of it.
  // Turns the loop meanwhile. False: `stopping` said so. Waits while the key server does not answer, and while there is
  // no room for the store, without the lead. Errors say what to do: the store belongs to no log or to another one, or
  // another server has the name of this one (EINVAL); it belongs to one that is not there (ENOENT); it misses a part of
  // the log that is gone, or the log a part of what it has (ENODATA); a newer program leads (ENOTSUP); the lead was
  // lost at once (ESTALE); what the store gives.
  Result<bool> lead(KeyValueStore& store, const std::function<bool()>& stopping);

  // After an error of lead(): this server may begin with a copy of the leader's store, because its own is empty, or the
  // log no longer reaches it.
  bool needs_copy() const { return needs_copy_; }
  // Then: it is empty.
  bool store_is_empty() const { return store_is_empty_; }
  // Then: where who leads gives one, "https://host:port". nullopt: nobody leads, the key server does not answer, or
  // `stopping` said so. Before it answers, this server has a row among the others, so that what comes behind the copy
  // is kept for it. Blocks until then, and turns the loop. ENOENT: who leads gives none. EINVAL: another server has the
  // name of this one.
  Result<std::optional<std::string>> find_copy(const std::function<bool()>& stopping);

  // After lead(): `store` behind the log. `failed` is posted to the loop, once: the lead (ESTALE), the log or the store
  // is lost, the daemon must end. The result ends before this object.
  std::unique_ptr<KeyValueStore> open(std::unique_ptr<KeyValueStore> store,
                                      std::function<void(Error)> failed);

  // After lead(): this server still leads, nobody else does. Any thread.
  bool leads() const { return term_.holds(); }

  // The loop turns no more: what is left to do of the end is no sign that it hangs.
  void loop_ends();

  // Of the log, behind lead().
  const std::string& identity() const { return position_.identity; }

  // What the log costs this server, since it leads.
  struct Costs {
    LatencyHistogram::Snapshot commits;  // of each value, from the first try to write it until it is there
    uint64_t bytes = 0;                  // of these values
    LogPosition checkpoint = 0;          // up to here the log is in the store, on this server's medium
    Milliseconds checkpoint_age{0};      // for so long
  };
  Costs costs() const;

 private:
  struct Keys;
  Result<> join(KeyValueStore& store, const std::function<bool()>& stopping);
  Result<bool> try_join(KeyValueStore& store);
  Result<bool> check_last(const LogPoint& last);
  Error misses(const Follower& follower);
  Result<> begin_at(KeyValueStore& store, const StorePosition& position);
  Result<Keys> read_keys();
  // Until this server has the lead. False: `stopping`.
  Result<bool> follow_until_taken(Follower& follower, KeyValueStore& store,
                                  const std::function<bool()>& stopping);
  // One look at the keys and the next values. What came; nullopt: the key server did not answer.
  Result<std::optional<size_t>> follow(Follower& follower);
  // All that there is: nobody else writes any more. False: it cannot be brought now.
  Result<bool> follow_to_end(Follower& follower, const std::function<bool()>& stopping);
  void try_take(const LogPoint& last);
  void set_checkpoint(LogPosition position);
  void taken(KeyRevision lead, SteadyTime sent);
  void give_back();
  bool waits_for_room(const Follower& follower);
  Result<> say_position(KeyValueStore& store, LogPosition position);
  void tell_status(std::string what);
  void answered(const Result<>& outcome);
  void tell_that_the_loop_turns();

  EventLoop& loop_;
  Random& random_;
  const Options options_;
  const LogKeys keys_;
  LeadClaim claim_;  // of the last try to take the lead
  const std::unique_ptr<KeyServer> server_;
  StorePosition position_;
  LeadWatch watch_;
  PositionRow renewal_;
  LogPosition trimmed_ = 0;
  KeyRevision trimmed_revision_ = 0;
  uint64_t takeovers_ = 0;
  KeyRevision last_revision_;  // of the last value that this server has
  LogPresence presence_;
  std::optional<SteadyTime> tried_;  // when the first try to take the lead was sent whose outcome is unknown
  KeyRevision lead_ = 0;             // 0: not taken
  LogPoint end_;                     // the last value, when it was
  LogPosition checkpoint_ = 0;
  SteadyTime checkpoint_at_{};
  // Added to by the thread that writes the log, which ends before this does.
  LatencyHistogram commits_;
  std::atomic<uint64_t> bytes_ = 0;
  bool needs_copy_ = false;
  bool store_is_empty_ = false;
  std::string status_;
  bool complained_ = false;
  bool full_ = false;
  LeadTerm term_;
  std::optional<Error> lost_;
  std::function<void(Error)> on_lost_;
  Lifetime lifetime_;
  std::unique_ptr<LeadKeeper> keeper_;
};

// For Options::place: the host's boot and the directory.
Result<std::string> place_of(const std::string& directory);

}  // namespace pnfsrdma::mds
