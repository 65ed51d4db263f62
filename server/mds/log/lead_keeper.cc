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
constexpr LogPosition kTrimmedAtOnce = 20'000;

}  // namespace

LeadKeeper::LeadKeeper(std::unique_ptr<KeyServer> server, const Clock& clock, LeadTerm& term, Options options)
    : server_(std::move(server)),
      clock_(clock),
      term_(term),
      options_(std::move(options)),
      trimmed_(options_.trimmed),
      trimmed_at_(clock.now()),
      stopping_(false),
      thread_([this] { run(); }) {}

LeadKeeper::~LeadKeeper() {
  *stopping_.lock() = true;
  wake_.notify_one();
  thread_.join();
  if (lead_lost_ || !term_.holds()) return;
  const auto resigned = server_->commit({.if_all = {{options_.keys.leader(), options_.lead}},
                                         .puts = {},
                                         .erases = {options_.keys.leader(), options_.keys.renewal()},
                                         .otherwise_read = {}});
  if (resigned && resigned->done) log_info("mds", "lead-given-back");
}

void LeadKeeper::wrote(LogPosition position, uint64_t bytes) {
  auto written = written_.lock();
  written->position = position;
  written->bytes += bytes;
}

void LeadKeeper::run() {
  do {
    if (!renew()) return;
    if (clock_.now() - trimmed_at_ >= kTrimEvery) trim();
  } while (wait(complained_ ? kRenewAgain : kRenewEvery));
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
    log_error("mds", "lead-ended error=\"the control loop stands still\" what=\"another server may serve\"");
    lead_lost_ = true;
    options_.lost(Error(ESTALE, "the control loop stood still"));
    return false;
  }
  const auto outcome =
      server_->commit({.if_all = {{options_.keys.leader(), options_.lead}},
                       .puts = {{options_.keys.renewal(), std::to_string(++renewals_)},
                                {options_.keys.member(options_.name), std::to_string(durable_.load())}},
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
    least = std::min(least, parse_position(row.value).value_or(0));
  }
  return std::max(least, trimmed_);
}

// Where the window is full, what is in front of it.
LogPosition LeadKeeper::behind_window(LogPosition least) {
  const Written now = *written_.lock();
  history_.push_back(now);
  LogPosition behind = least;
  // What earlier leaders wrote was not counted in bytes, and small values cost more than those.
  if (now.position > kWindowValuesMax) behind = std::max(behind, now.position - kWindowValuesMax);
  while (!history_.empty() && now.bytes - history_.front().bytes > kWindowBytesMax) {
    behind = std::max(behind, history_.front().position);
    history_.pop_front();
  }
  while (history_.size() > 1 && history_[1].position <= least) history_.pop_front();
  behind = std::min<LogPosition>(behind, durable_);
  if (behind > least && !std::exchange(window_full_, true)) {
    log_warning("mds", "log-window-full what=\"a server that does not follow has to begin with a copy\"");
  } else if (behind <= least) {
    window_full_ = false;
  }
  return behind;
}

void LeadKeeper::trim() {
  trimmed_at_ = clock_.now();
  const auto least = behind_all();
  if (!least) return;
  // A part at a time: etcd does nothing else while it erases, and the lead has to be renewed.
  const LogPosition behind = std::min(std::max(behind_window(*least), trimmed_), trimmed_ + kTrimmedAtOnce);
  if (behind > trimmed_) {
    const auto said = server_->commit({.if_all = {{options_.keys.leader(), options_.lead}},
                                       .puts = {{options_.keys.trimmed(), std::to_string(behind)}},
                                       .erases = {},
                                       .otherwise_read = {}});
    if (!said || !said->done) return;
    trimmed_ = behind;
  }
  // Also where there is nothing to erase: the server forgets old renewals.
  const auto trimmed = server_->trim(options_.keys.value(0), options_.keys.value(trimmed_ + 1));
  if (!trimmed) log_warning("mds", "log-not-trimmed error=\"{}\"", trimmed.error().to_string());
}

}  // namespace pnfsrdma::mds
