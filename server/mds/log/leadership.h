// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "server/mds/log/key_server.h"
#include "shared/base/clock.h"

// Who may serve, by observed renewal: two pure state machines without I/O. The leader renews a key again and again,
// and stops answering kLeadTime after it *sent* its last good renewal. Another server takes over when it has *seen*
// no renewal for that time and some more. Whatever a network delays, it saw the renewal after it was sent, so the
// two never serve at once, as long as their clocks run equally fast (within kClockDrift of each other per kLeadTime;
// what they show does not matter). The lease of a key server would not do: etcd's begin anew when its own leader
// changes.
namespace pnfsrdma::mds {

// Above an election among three etcd members (2.0 to 2.6 s).
inline constexpr Milliseconds kLeadTime{5000};
inline constexpr Milliseconds kRenewEvery{1000};
inline constexpr Milliseconds kClockDrift{250};

// The value of the leader's key.
struct LeadClaim {
  std::string name;   // of the server, as configured
  std::string start;  // another one with each try to take the lead, 32 hexadecimal digits
  // Of the host's boot and the metadata's directory. The engine lets one process at a time have that directory: who has
  // it, and finds the claim of an earlier process there, knows that this one has ended.
  std::string place;
  std::string copies = {};  // where it gives copies of its store, "https://host:port"; empty: nowhere

  std::string text() const {
    return name + "\n" + start + "\n" + place + (copies.empty() ? "" : "\n" + copies);
  }
  static LeadClaim parse(std::string_view text);
  bool operator==(const LeadClaim&) const = default;
};

// The leader's part. Any thread.
class LeadTerm {
 public:
  explicit LeadTerm(const Clock& clock) : clock_(clock) {}

  // A renewal that was sent then has been taken.
  void renewed(SteadyTime sent);
  // It is over: another server leads.
  void end() { ends_ = 0; }
  // Answers may leave now: nobody else leads yet.
  bool holds() const;

 private:
  const Clock& clock_;
  std::atomic<SteadyTime::rep> ends_ = 0;
};

// A candidate's part.
class LeadWatch {
 public:
  struct Seen {
    KeyRevision leader = 0;  // 0: nobody leads
    KeyRevision renewal = 0;
    LeadClaim claim;
  };
  explicit LeadWatch(std::string place) : place_(std::move(place)) {}

  // What was read; the answer had come by `now`.
  void saw(Seen seen, SteadyTime now);
  // The lead may be taken, if the keys still are as seen last.
  bool may_take(SteadyTime now) const;
  const Seen& seen() const { return seen_; }

 private:
  const std::string place_;
  Seen seen_;
  SteadyTime changed_{};
  bool any_ = false;
};

// The time since the host booted, suspension included: a lead ends while the host sleeps.
class BootClock final : public Clock {
 public:
  SteadyTime now() const override;
  WallTime wall_now() const override;
};

}  // namespace pnfsrdma::mds
