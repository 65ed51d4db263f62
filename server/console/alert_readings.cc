// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_readings.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::console {

namespace {

// Longer than the longest window that samples are kept for.
constexpr std::chrono::seconds kRemembered{610};
constexpr double kSlowest = 0.99;

const AlertRule& rule_called(std::string_view name) {
  const AlertRule* const rule = find_alert_rule(name);
  CHECK(rule != nullptr);
  return *rule;
}

double limit_of(const AlertRule& rule, size_t index = 0) {
  const auto limits = limits_of(rule);
  CHECK(index < limits.size());
  return limits[index];
}

LatencyHistogram difference(const LatencyHistogram& now, const LatencyHistogram& before) {
  LatencyHistogram left = now;
  for (size_t i = 0; i < left.counts.size(); ++i) left.counts[i] -= before.counts[i];
  return left;
}

}  // namespace

std::optional<double> quantile_of(const LatencyHistogram& histogram, double share) {
  uint64_t all = 0;
  for (const uint64_t count : histogram.counts) all += count;
  if (all == 0) return std::nullopt;
  const double rank = share * static_cast<double>(all);
  uint64_t below = 0;
  for (size_t i = 0; i < LatencyHistogram::kBoundsUs.size(); ++i) {
    const uint64_t count = histogram.counts[i];
    if (static_cast<double>(below + count) >= rank && count > 0) {
      const double from = i == 0 ? 0 : LatencyHistogram::kBoundsUs[i - 1];
      const double part = (rank - static_cast<double>(below)) / static_cast<double>(count);
      return (from + (LatencyHistogram::kBoundsUs[i] - from) * part) / 1e6;
    }
    below += count;
  }
  return LatencyHistogram::kBoundsUs.back() / 1e6;
}

std::vector<AlertCondition> AlertReadings::evaluate(const Input& input) {
  found_.clear();
  remember(input.numbers, input.now);
  server_rules(input);
  disk_rules(input.numbers);
  certificate_rules(input);
  pool_rules(input.numbers);
  if (input.numbers.cluster) cluster_rules(*input.numbers.cluster);
  for (const Brick& brick : input.numbers.bricks) brick_rules(brick);
  return std::move(found_);
}

void AlertReadings::remember(const Numbers& numbers, SteadyTime now) {
  Sample sample{
      .time = now, .operations = {}, .expired = numbers.clients_expired, .revoked = numbers.layouts_revoked};
  for (const OperationCounter& operation : numbers.operations) {
    for (size_t i = 0; i < sample.operations.counts.size(); ++i)
      sample.operations.counts[i] += operation.latency.counts[i];
  }
  samples_.push_back(sample);
  while (samples_.front().time < now - kRemembered) samples_.pop_front();
}

const AlertReadings::Sample& AlertReadings::behind(const AlertRule& rule, SteadyTime now) const {
  const SteadyTime begin = now - window_of(rule);
  return *std::ranges::find_if(samples_, [&](const Sample& sample) { return sample.time >= begin; });
}

void AlertReadings::say(const AlertRule& rule, const std::string& subject, const std::string& called,
                        double value) {
  const AlertWords words{.instance = server_, .brick = called, .value = value};
  found_.push_back({.rule = &rule,
                    .subject = subject,
                    .summary = fill_in(rule.summary, words),
                    .description = fill_in(rule.description, words)});
}

void AlertReadings::say_unknown(std::string_view rule, const std::string& subject) {
  found_.push_back(
      {.rule = &rule_called(rule), .subject = subject, .summary = {}, .description = {}, .known = false});
}

void AlertReadings::server_rules(const Input& input) {
  const Numbers& numbers = input.numbers;
  const AlertRule& restarts = rule_called("PnfsrdmaMdsRestarts");
  const auto starts = static_cast<double>(input.starts);
  if (starts > limit_of(restarts)) say(restarts, server_, {}, starts);

  const AlertRule& slow = rule_called("PnfsrdmaMdsSlow");
  const auto slowest =
      quantile_of(difference(samples_.back().operations, behind(slow, input.now).operations), kSlowest);
  if (slowest && *slowest > limit_of(slow)) say(slow, server_, {}, *slowest);

  const AlertRule& overdue = rule_called("PnfsrdmaSnapshotOverdue");
  const auto due = static_cast<double>(numbers.snapshot_overdue_seconds);
  if (due > limit_of(overdue)) say(overdue, server_, {}, due);

  const AlertRule& unsynced = rule_called("PnfsrdmaMetadataNotDurable");
  const auto commits = static_cast<double>(numbers.unsynced_commits);
  if (commits > limit_of(unsynced)) say(unsynced, server_, {}, commits);

  const AlertRule& expired = rule_called("PnfsrdmaLeaseExpired");
  const auto clients = static_cast<double>(numbers.clients_expired - behind(expired, input.now).expired);
  if (clients > limit_of(expired)) say(expired, server_, {}, clients);

  const AlertRule& revoked = rule_called("PnfsrdmaLayoutsRevoked");
  const auto layouts = static_cast<double>(numbers.layouts_revoked - behind(revoked, input.now).revoked);
  if (layouts > limit_of(revoked)) say(revoked, server_, {}, layouts);
}

void AlertReadings::disk_rules(const Numbers& numbers) {
  const AlertRule& nearly = rule_called("PnfsrdmaMetadataDiskNearlyFull");
  const AlertRule& full = rule_called("PnfsrdmaMetadataDiskFull");
  if (numbers.metadata_disk_bytes == 0) {
    say_unknown(nearly.name, server_);
    say_unknown(full.name, server_);
    return;
  }
  const auto free = static_cast<double>(numbers.metadata_disk_free_bytes);
  const double share = free / static_cast<double>(numbers.metadata_disk_bytes);
  if (free < limit_of(nearly, 0) && share < limit_of(nearly, 1)) say(nearly, server_, {}, free);
  if (free < limit_of(full)) say(full, server_, {}, free);
}

void AlertReadings::certificate_rules(const Input& input) {
  const AlertRule& expires = rule_called("PnfsrdmaCertificateExpires");
  const AlertRule& soon = rule_called("PnfsrdmaCertificateExpiresSoon");
  if (!input.certificate_seconds_left) {
    say_unknown(expires.name, server_);
    say_unknown(soon.name, server_);
    return;
  }
  const double left = *input.certificate_seconds_left;
  if (left < limit_of(expires, 0) && left >= limit_of(expires, 1)) say(expires, server_, {}, left);
  if (left < limit_of(soon)) say(soon, server_, {}, left);
}

void AlertReadings::pool_rules(const Numbers& numbers) {
  double free = 0;
  double capacity = 0;
  for (const Brick& brick : numbers.bricks) {
    free += static_cast<double>(brick.free_blocks * brick.block_bytes);
    capacity += static_cast<double>(brick.blocks * brick.block_bytes);
  }
  for (const char* name : {"PnfsrdmaPoolNearlyFull", "PnfsrdmaPoolFull"}) {
    if (capacity == 0) {
      say_unknown(name, server_);
    } else if (const AlertRule& rule = rule_called(name); free / capacity < limit_of(rule)) {
      say(rule, server_, {}, free / capacity);
    }
  }
}

void AlertReadings::cluster_rules(const Cluster& cluster) {
  const AlertRule& alone = rule_called("PnfsrdmaNoTakeOver");
  const double possible = cluster.takeover ? 1 : 0;
  if (possible < limit_of(alone)) say(alone, server_, {}, possible);

  const AlertRule& lags = rule_called("PnfsrdmaStandbyLags");
  uint64_t behind = 0;
  for (const ClusterServer& server : cluster.servers) behind = std::max(behind, server.behind);
  if (static_cast<double>(behind) > limit_of(lags)) say(lags, server_, {}, static_cast<double>(behind));

  const AlertRule& window = rule_called("PnfsrdmaLogWindowNearlyFull");
  const double used = static_cast<double>(cluster.window_bytes) /
                      static_cast<double>(std::max<uint64_t>(cluster.window_bytes_max, 1));
  if (used > limit_of(window)) say(window, server_, {}, used);
}

void AlertReadings::brick_rules(const Brick& brick) {
  const std::string& subject = brick.id.empty() ? brick.address : brick.id;
  const std::string& place = brick.address.empty() ? subject : brick.address;
  const std::string& called = brick.name.empty() ? place : brick.name;
  if (!brick.usable()) say(rule_called("PnfsrdmaBrickAway"), subject, called, 0);

  const AlertRule& unreached = rule_called("PnfsrdmaBrickUnreached");
  const auto clients = static_cast<double>(brick.unreached_by.size());
  if (clients > limit_of(unreached)) say(unreached, subject, called, clients);

  const AlertRule& nearly = rule_called("PnfsrdmaBrickNearlyFull");
  if (brick.blocks == 0) {
    say_unknown(nearly.name, subject);
  } else {
    const double share = static_cast<double>(brick.free_blocks) / static_cast<double>(brick.blocks);
    if (share < limit_of(nearly)) say(nearly, subject, called, share);
  }
  const AlertRule& loses = rule_called("PnfsrdmaBrickVolatile");
  if (!brick.durability) say_unknown(loses.name, subject);
  if (brick.durability == Durability::kVolatile) say(loses, subject, called, 1);
}

}  // namespace pnfsrdma::console
