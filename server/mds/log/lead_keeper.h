// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "server/mds/log/key_server.h"
#include "server/mds/log/leadership.h"
#include "server/mds/log/log_keys.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

// The leader's duties, in a thread of its own: it renews the lead, says how much of the log this server has on its
// medium, and trims the log behind what every server has.
class LeadKeeper {
 public:
  struct Options {
    LogKeys keys;
    std::string name;      // of this server
    std::string place;     // LeadClaim::place
    KeyRevision lead = 0;  // of the leader's key
    LogPosition trimmed = 0;
    KeyRevision trimmed_revision = 0;
    LogPosition end = 0;      // of the log
    uint64_t bytes = 0;       // of its values that are not trimmed
    LogPosition durable = 0;  // so much of it is on this server's medium
    // Called by the thread, once, when another server leads or this one could not renew in time. Answers have ended.
    std::function<void(Error)> lost;
  };
  // `clock` and `term` outlive this.
  LeadKeeper(std::unique_ptr<KeyServer> server, const Clock& clock, LeadTerm& term, Options options);
  // Ends the thread and gives the lead back, if it is still held: another server takes it at once.
  ~LeadKeeper();
  LeadKeeper(const LeadKeeper&) = delete;
  LeadKeeper& operator=(const LeadKeeper&) = delete;

  // The log up to here is on this server's medium. Any thread.
  void durable(LogPosition position) { durable_ = position; }
  // This server has written the log up to here, the value there with so many bytes. Any thread.
  void wrote(LogPosition position, uint64_t bytes);
  // The control loop turns. Once it has been called it must be again and again, until loop_ends(): a loop that stands
  // still for kLeadTime is not to keep others from the lead, nor is an end of the daemon that takes longer than
  // kEndTime. Any thread.
  void loop_turns() {
    if (!ending_) turned_ = clock_.now().time_since_epoch().count();
  }
  void loop_ends();
  static constexpr Milliseconds kEndTime{10'000};

  // The log keeps no more for a server that does not follow; then it has to begin with a copy.
  static constexpr uint64_t kWindowBytesMax = uint64_t{512} << 20;
  static constexpr LogPosition kWindowValuesMax = 500'000;
  static constexpr Milliseconds kTrimEvery{5000};

 private:
  struct Written {
    LogPosition position = 0;
    uint64_t bytes = 0;  // of the values up to here that were not trimmed when this leader began
  };
  // What comes next of trimming.
  enum class Trimming {
    kLook,    // how far it may go
    kSay,     // so, before anything is erased
    kErase,   // the values
    kForget,  // has etcd compacted
  };
  void run();
  // False: the lead is lost.
  bool renew();
  std::string renewal();
  // At most one call to the key server. False: nothing is left to do now.
  bool trim();
  Result<> look();
  Result<> say();
  Result<LogPosition> behind_all();
  LogPosition behind_window(LogPosition least);
  bool wait(Milliseconds longest);
  bool loop_stands(SteadyTime now) const;

  const std::unique_ptr<KeyServer> server_;
  const Clock& clock_;
  LeadTerm& term_;
  const Options options_;
  std::atomic<LogPosition> durable_;
  std::atomic<SteadyTime::rep> turned_ = 0;  // 0: not yet
  std::atomic<bool> ending_ = false;
  Guarded<Written> written_;
  // The thread's own.
  std::deque<Written> history_;
  LogPosition trimmed_;  // as the key says
  KeyRevision trimmed_revision_;
  LogPosition trim_to_;
  LogPosition erased_;
  Trimming trimming_ = Trimming::kLook;
  SteadyTime looked_at_{};
  KeyRevision erased_at_ = 0;
  bool lead_lost_ = false;
  bool complained_ = false;
  bool window_full_ = false;

  Guarded<bool> stopping_;
  Condition wake_;
  Thread thread_;
};

}  // namespace pnfsrdma::mds
