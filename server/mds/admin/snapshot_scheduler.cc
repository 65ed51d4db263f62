// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/snapshot_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/admin/snapshot_administration.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

// The wall clock may be set at any time, and no timer notices.
constexpr Milliseconds kLookAgain = std::chrono::seconds(10);
// Between two that are taken or deleted: others want their turn, and writers theirs.
constexpr Milliseconds kPause = std::chrono::seconds(2);
// Behind a failure; twice as long behind each further one.
constexpr Milliseconds kTryAgain = std::chrono::seconds(30);
constexpr Milliseconds kTryAgainMax = std::chrono::minutes(10);
// From then on it is said that something is wrong.
constexpr uint32_t kTriesInVain = 2;
constexpr std::chrono::hours kOverdue(1);

}  // namespace

SnapshotScheduler::SnapshotScheduler(EventLoop& loop, const Clock& clock, Works works)
    : loop_(loop), clock_(clock), works_(std::move(works)) {}

SnapshotScheduler::~SnapshotScheduler() {
  loop_.cancel(timer_);
}

void SnapshotScheduler::set(const SnapshotSchedule& schedule, Milliseconds patience) {
  schedule_ = schedule;
  for (auto& [of, taken] : taken_) taken = {.last = taken.last};
  tries_ = 0;
  not_before_ = clock_.now();
  due_since_.reset();
  wake(patience);
}

// One timer at most; none while nothing is to be done.
void SnapshotScheduler::wake(Milliseconds delay) {
  loop_.cancel(std::exchange(timer_, 0));
  if (schedule_.is_on() && !working_) timer_ = loop_.after(delay, [this] { look(); });
}

void SnapshotScheduler::look() {
  const EventLoop::Step step(loop_, "snapshot-schedule");
  const SteadyTime now = clock_.now();
  const auto due = first_due();
  if (!due) due_since_.reset();
  if (due && !due_since_) due_since_ = now;
  if (due && now >= not_before_) return take(*due);
  if (!delete_surplus()) wake(until_next_look());
}

std::optional<SnapshotClass> SnapshotScheduler::first_due() {
  const WallTime now = clock_.wall_now();
  bool held_back = false;
  std::optional<SnapshotClass> first;
  for (const SnapshotClass of : kSnapshotClasses) {
    if (!wants(of, now)) continue;
    if (!is_too_soon(of)) {
      first = of;
      break;
    }
    if (!held_back && !held_back_)
      log_warning("snapshots", "scheduled-snapshot-held-back schedule={} reason=\"the clock jumps\"",
                  to_string(of));
    held_back = true;
  }
  held_back_ = held_back;
  return first;
}

bool SnapshotScheduler::wants(SnapshotClass of, const WallTime& now) const {
  const auto found = taken_.find(of);
  if (found != taken_.end() && period_of(schedule_, of, now).has(found->second.last)) return false;
  return is_due(schedule_, of, works_.all(), now);
}

// With a clock that goes right, a period is between the beginnings of the one before the last and the next.
bool SnapshotScheduler::is_too_soon(SnapshotClass of) const {
  const auto found = taken_.find(of);
  return found != taken_.end() && found->second.before &&
         clock_.now() - *found->second.before < shortest_period(of);
}

void SnapshotScheduler::take(SnapshotClass of) {
  const WallTime time = clock_.wall_now();
  const std::string name = scheduled_name(of, time, works_.all());
  working_ = true;
  works_.take(name, of, lifetime_.guard([this, of, name, time](const Result<>& outcome) {
    working_ = false;
    if (outcome) return taken(of, time);
    // A person's: it ends soon, and no failure.
    if (outcome.error().number() == EBUSY) return wake(kPause);
    failed(of, name, time, outcome.error());
  }));
}

void SnapshotScheduler::taken(SnapshotClass of, const WallTime& time) {
  taken_[of] = {.last = time, .newest = clock_.now(), .before = taken_[of].newest};
  refilled_.insert(of);
  tries_ = 0;
  ++taken_count_;
  wake(kPause);
}

void SnapshotScheduler::failed(SnapshotClass of, const std::string& name, const WallTime& time,
                               const Error& error) {
  ++failures_;
  ++tries_;
  const Milliseconds again = std::min(kTryAgain * (1 << std::min(tries_ - 1, 10U)), kTryAgainMax);
  not_before_ = clock_.now() + again;
  failure_ = {.schedule = shown(of), .time = time, .detail = why_not_taken(error, name).what()};
  log_warning("snapshots", "scheduled-snapshot-failed name=\"{}\" tries={} again_seconds={} error=\"{}\"",
              name, tries_, std::chrono::duration_cast<std::chrono::seconds>(again).count(),
              error.to_string());
  wake(until_next_look());
}

// One: the next look deletes the next. What could not be deleted is tried again behind the next new one.
bool SnapshotScheduler::delete_surplus() {
  while (!refilled_.empty()) {
    const SnapshotClass of = *refilled_.begin();
    const auto surplus = surplus_of(schedule_, of, works_.all());
    if (!surplus) {
      refilled_.erase(of);
      continue;
    }
    working_ = true;
    works_.remove(*surplus, lifetime_.guard([this, of, number = *surplus](const Result<>& removed) {
      working_ = false;
      if (!removed) {
        refilled_.erase(of);
        log_warning("snapshots", "scheduled-snapshot-not-deleted number={} error=\"{}\"", number,
                    removed.error().to_string());
      }
      wake(kPause);
    }));
    return true;
  }
  return false;
}

Milliseconds SnapshotScheduler::until_next_look() const {
  const WallTime now = clock_.wall_now();
  Milliseconds soonest = kLookAgain;
  for (const SnapshotClass of : kSnapshotClasses) {
    if (schedule_.keeps(of) == 0) continue;
    const Milliseconds left = std::chrono::seconds(period_of(schedule_, of, now).end.seconds - now.seconds);
    soonest = std::clamp(left, Milliseconds(100), soonest);
  }
  return soonest;
}

console::SnapshotSchedule SnapshotScheduler::view() const {
  console::SnapshotSchedule view{.hourly = schedule_.hourly,
                                 .daily = schedule_.daily,
                                 .weekly = schedule_.weekly,
                                 .monthly = schedule_.monthly,
                                 .hour = schedule_.hour,
                                 .minute = schedule_.minute};
  const WallTime now = clock_.wall_now();
  for (const SnapshotClass of : kSnapshotClasses) {
    if (schedule_.keeps(of) == 0) continue;
    const SchedulePeriod current = period_of(schedule_, of, now);
    view.next.push_back({.schedule = shown(of), .due = wants(of, now) ? current.begin : current.end});
  }
  std::ranges::reverse(view.next);
  view.failure = failure_;
  view.tries_in_vain = tries_;
  return view;
}

void SnapshotScheduler::add_to(console::Numbers& numbers) const {
  numbers.scheduled_snapshots = taken_count_;
  numbers.scheduled_snapshot_failures = failures_;
  if (!due_since_) return;
  const auto overdue = clock_.now() - *due_since_;
  numbers.snapshot_overdue_seconds =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(overdue).count());
  if (tries_ < kTriesInVain && overdue < kOverdue) return;
  std::string detail = fmt::format("A scheduled snapshot has been due for {} minutes",
                                   std::chrono::duration_cast<std::chrono::minutes>(overdue).count());
  if (tries_ > 0) detail += fmt::format("; {} tries failed, the last because {}", tries_, failure_->detail);
  numbers.checks.push_back(
      {.name = "schedule",
       .status = console::HealthStatus::kWarning,
       .detail = detail + ".",
       .fix = "It is tried again, at last every ten minutes: pnfsrdma snapshot schedule"});
}

}  // namespace pnfsrdma::mds
