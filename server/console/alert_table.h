// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/console/alert_readings.h"
#include "server/console/json.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// Who has seen an alert and what they said: it no longer shouts.
struct Acknowledgement {
  std::string user;
  std::string comment;
  WallTime time;
  std::optional<WallTime> until;  // it shouts again from then on
  bool operator==(const Acknowledgement&) const = default;
};

enum class AlertState { kPending, kFiring, kResolved };
const char* name_of(AlertState state);

// One thing that is not as it should be, from when it began to when it was over. When it comes again it is
// another alert.
struct Alert {
  uint64_t id = 0;
  std::string rule;
  std::string severity;
  std::string subject_kind;
  std::string subject;
  std::string summary;
  std::string description;
  AlertState state = AlertState::kPending;
  WallTime since;                    // the rule has been true
  std::optional<WallTime> fired;     // none while it is pending
  std::optional<WallTime> resolved;  // none while it is not
  std::optional<Acknowledgement> acknowledged;
};

// Fires and nobody has acknowledged it.
bool shouts(const Alert& alert, WallTime now);

// All alerts: those that are, and those of the last days. A state machine without I/O: pending when its rule
// becomes true, firing when that has lasted as long as the rule says, resolved when the rule is not true any
// more (a pending one then just vanishes). Not thread-safe.
class AlertTable {
 public:
  static constexpr std::chrono::seconds kKept{7 * 24 * 3600};  // after it was resolved
  static constexpr size_t kResolvedMax = 1000;

  explicit AlertTable(const Clock& clock) : clock_(clock) {}

  // What is true now. Returns the alerts that have begun to fire or were resolved by it.
  std::vector<Alert> update(const std::vector<AlertCondition>& conditions);

  // Newest first.
  std::vector<Alert> all() const;
  const Alert* find(uint64_t id) const;
  // ENOENT; EBUSY: it does not fire. nullopt takes the acknowledgement back.
  Result<Alert> acknowledge(uint64_t id, std::optional<Acknowledgement> acknowledgement);

  // What outlives the process: everything but what is pending.
  Json to_json() const;
  // EUCLEAN: it is none of ours. Nothing is changed then.
  Result<> load(const Json& json);

 private:
  using Key = std::pair<std::string, std::string>;  // rule, subject
  struct Live {
    Alert alert;
    SteadyTime since;
  };
  void begin_or_go_on(const AlertCondition& condition, std::vector<Alert>& changed);
  void forget_old();

  const Clock& clock_;
  uint64_t next_ = 1;
  std::map<Key, Live> live_;
  std::vector<Alert> resolved_;  // oldest first
};

}  // namespace pnfsrdma::console
