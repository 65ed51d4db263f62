// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/console/alert_rules.h"
#include "server/console/inventory.h"

namespace pnfsrdma::console {

// A rule that is true of something, or of which it cannot be said now.
struct AlertCondition {
  const AlertRule* rule = nullptr;
  std::string subject;  // brick: its uuid, or its address while that is not known; else the server
  std::string summary;
  std::string description;
  bool known = true;  // false: an alert that is there stays as it is
};

// The rules, evaluated over what the server says of itself, as Prometheus would over /metrics: without I/O,
// and with the time as an argument. Remembers what the windows of the rules look back at.
class AlertReadings {
 public:
  explicit AlertReadings(std::string server) : server_(std::move(server)) {}

  struct Input {
    const Numbers& numbers;
    std::optional<double> certificate_seconds_left;  // none: it cannot be read
    size_t starts = 0;                               // of the server, within the window of the rule
    SteadyTime now;
  };
  // Once every few seconds; what holds and what is not known.
  std::vector<AlertCondition> evaluate(const Input& input);

 private:
  struct Sample {
    SteadyTime time;
    LatencyHistogram operations;
    uint64_t expired = 0;
    uint64_t revoked = 0;
  };
  // The oldest one that a window of this rule reaches; the last one added when none is older.
  const Sample& behind(const AlertRule& rule, SteadyTime now) const;
  void remember(const Numbers& numbers, SteadyTime now);
  void server_rules(const Input& input);
  void disk_rules(const Numbers& numbers);
  void certificate_rules(const Input& input);
  void pool_rules(const Numbers& numbers);
  void cluster_rules(const Cluster& cluster);
  void brick_rules(const Brick& brick);
  void say(const AlertRule& rule, const std::string& subject, const std::string& called, double value);
  void say_unknown(std::string_view rule, const std::string& subject);

  const std::string server_;
  std::deque<Sample> samples_;
  std::vector<AlertCondition> found_;
};

// The value below which `share` of the counted lie, in seconds, linear within a bucket as PromQL's
// histogram_quantile. None: nothing was counted.
std::optional<double> quantile_of(const LatencyHistogram& histogram, double share);

}  // namespace pnfsrdma::console
