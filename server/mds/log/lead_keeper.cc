// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/lead_keeper.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kRenewAgain{100};  // after a failure
constexpr size_t kMembersMax = 64;
// etcd does nothing else while it erases, and the lead has to be renewed.
constexpr LogPosition kTrimmedAtOnce = 5000;
constexpr uint64_t kStepsOfBefore = 64;

}  // namespace

LeadKeeper::LeadKeeper(std::unique_ptr<KeyServer> server, const Clock& clock, LeadTerm& term, Options options)
    : server_(std::move(server)),
      clock_(clock),
      term_(term),
      options_(std::move(options)),
      durable_(options_.durable),
      trimmed_(options_.trimmed),
      trimmed_revision_(options_.trimmed_revision),
      trim_to_(trimmed_),
      erased_(trimmed_),
      looked_at_(clock.now()),
      stopping_(false) {
  *written_.lock() = {std::max(options_.end, trimmed_), options_.bytes};
  // What leaders before this one wrote, as if all their values had one size.
  const LogPosition span = std::max(options_.end, trimmed_) - trimmed_;
  for (uint64_t step = 0; step <= kStepsOfBefore; ++step)
    history_.push_back({trimmed_ + span * step / kStepsOfBefore, options_.bytes / kStepsOfBefore * step});
  thread_ = Thread([this] { run(); });
}

LeadKeeper::~LeadKeeper() {
  *stopping_.lock() = true;
  wake_.notify_one();
  thread_.join();
  if (lead_lost_ || !term_.holds()) return;
  const auto resigned = server_->commit({.if_all = {{options_.keys.leader(), options_.lead}},
                                         .puts = {{options_.keys.renewal(), renewal()}},
                                         .erases = {options_.keys.leader()},
                                         .otherwise_read = {}});
  if (resigned && resigned->done) log_info("mds", "lead-given-back");
}

void LeadKeeper::wrote(LogPosition position, uint64_t bytes) {
  auto written = written_.lock();
  written->position = position;
  written->bytes += bytes;
}

void LeadKeeper::loop_ends() {
  ending_ = true;
  turned_ = (clock_.now() + kEndTime - kLeadTime).time_since_epoch().count();
}

void LeadKeeper::run() {
  bool goes_on = false;
  do {
    if (!renew()) return;
    goes_on = !complained_ && trim();
  } while (wait(goes_on ? Milliseconds(0) : complained_ ? kRenewAgain : kRenewEvery));
}

bool LeadKeeper::wait(Milliseconds longest) {
  auto stopping = stopping_.lock();
  return !stopping.wait_until(wake_, steady_now() + longest, [](bool now) { return now; });
}

bool LeadKeeper::loop_stands(SteadyTime now) const {
  const SteadyTime turned{SteadyTime::duration(turned_.load())};
  return turned != SteadyTime() && now - turned > kLeadTime;
}

bool LeadKeeper::renew() {
  const SteadyTime sent = clock_.now();
  if (loop_stands(sent)) {
    term_.end();
    const char* why = ending_ ? "the end of this daemon takes too long" : "the control loop stands still";
    log_error("mds", "lead-ended error=\"{}\" what=\"another server may serve\"", why);
    lead_lost_ = true;
    options_.lost(Error(ESTALE, why));
    return false;
  }
  const PositionRow durable{durable_, options_.place};
  const auto outcome = server_->commit(
      {.if_all = {{options_.keys.leader(), options_.lead}},
       .puts = {{options_.keys.renewal(), renewal()}, {options_.keys.member(options_.name), durable.text()}},
       .erases = {},
       .otherwise_read = {options_.keys.leader()}});
  std::string why;
  if (outcome && !outcome->done) {
    why = outcome->found.empty()
              ? "the lead was taken away"
              : LeadClaim::parse(outcome->found.front().value).name + " has taken the lead";
  } else if (!term_.holds()) {  // a later answer does not revive it: some answers have been given up
    why = "the lead could not be renewed in time";
    if (!outcome) why += ": " + outcome.error().to_string();
  }
  if (!why.empty()) {
    lead_lost_ = true;
    term_.end();
    options_.lost(Error(ESTALE, why));
    return false;
  }
  if (!outcome) {
    if (!std::exchange(complained_, true))
      log_warning("mds", "lead-not-renewed error=\"{}\" what=\"{} s without a renewal end this daemon\"",
                  outcome.error().to_string(), kLeadTime.count() / 1000);
    return true;
  }
  if (std::exchange(complained_, false)) log_info("mds", "lead-renewed-again");
  term_.renewed(sent);
  return true;
}

// What the slowest server has. While there is one only, everything stays: another one may still begin with the log.
// So it does while one is behind what is there: whoever has begun with a copy shows where that is when it starts.
Result<LogPosition> LeadKeeper::behind_all() {
  TRY_ASSIGN(const std::vector<KeyRow> members,
             server_->range(options_.keys.members(), options_.keys.members_end(), kMembersMax));
  if (members.size() < 2) return trimmed_;
  LogPosition least = durable_;
  for (const KeyRow& row : members) {
    least = std::min(least, PositionRow::parse(row.value).position);
  }
  return std::max(least, trimmed_);
}

// Where the window is full, what is in front of it.
LogPosition LeadKeeper::behind_window(LogPosition least) {
  const Written now = *written_.lock();
  if (now.position != history_.back().position) history_.push_back(now);
  while (history_.size() > 1 && history_[1].position <= trimmed_) history_.pop_front();
  LogPosition behind = least;
  if (now.position > kWindowValuesMax) behind = std::max(behind, now.position - kWindowValuesMax);
  for (const Written& at : history_) {
    if (now.bytes - at.bytes <= kWindowBytesMax) break;
    behind = std::max(behind, at.position);
  }
  behind = std::min<LogPosition>(behind, durable_);
  if (behind > least && !std::exchange(window_full_, true)) {
    log_warning("mds", "log-window-full what=\"a server that does not follow has to begin with a copy\"");
  } else if (behind <= least) {
    window_full_ = false;
  }
  return behind;
}

std::string LeadKeeper::renewal() {
  const Written now = *written_.lock();
  return PositionRow{now.position, std::to_string(now.bytes - history_.front().bytes)}.text();
}

Result<> LeadKeeper::look() {
  TRY_ASSIGN(const LogPosition least, behind_all());
  trim_to_ = std::max(behind_window(least), trimmed_);
  return {};
}

// Only if it is as this one knows it: of two tries, the first may arrive last.
Result<> LeadKeeper::say() {
  const std::string key = options_.keys.trimmed();
  const LogPosition trimmed = std::max(trimmed_, std::min(trim_to_, erased_ + kTrimmedAtOnce));
  TRY_ASSIGN(const KeyOutcome outcome,
             server_->commit({.if_all = {{options_.keys.leader(), options_.lead}, {key, trimmed_revision_}},
                              .puts = {{key, std::to_string(trimmed)}},
                              .erases = {},
                              .otherwise_read = {key}}));
  if (outcome.done) {
    trimmed_ = trimmed;
    trimmed_revision_ = outcome.revision;
  } else if (!outcome.found.empty()) {
    trimmed_ = parse_decimal(outcome.found.front().value).value_or(trimmed_);
    trimmed_revision_ = outcome.found.front().revision;
  }
  return {};
}

// Also where nothing is erased: the server forgets old renewals.
bool LeadKeeper::trim() {
  Result<> done;
  switch (trimming_) {
    case Trimming::kLook:
      if (clock_.now() - looked_at_ < kTrimEvery) return false;
      looked_at_ = clock_.now();
      done = look();
      trimming_ = trim_to_ > erased_ ? Trimming::kSay : Trimming::kErase;
      break;
    case Trimming::kSay:
      done = say();
      trimming_ = Trimming::kErase;
      break;
    case Trimming::kErase: {
      const auto erased = server_->erase(options_.keys.value(0), options_.keys.value(trimmed_ + 1));
      if (!erased) {
        done = std::unexpected(erased.error());
        break;
      }
      erased_at_ = *erased;
      erased_ = trimmed_;
      trimming_ = Trimming::kForget;
      break;
    }
    case Trimming::kForget:
      done = server_->forget(erased_at_);
      trimming_ = trim_to_ > erased_ ? Trimming::kSay : Trimming::kLook;
      break;
  }
  if (done) return true;
  log_warning("mds", "log-not-trimmed error=\"{}\"", done.error().to_string());
  trimming_ = Trimming::kLook;
  return false;
}

}  // namespace pnfsrdma::mds
