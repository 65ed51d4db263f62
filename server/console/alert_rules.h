// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pnfsrdma::console {

// A rule as packaging/grafana/alerts.yml has it, word for word: a test compares the two. Limits and windows
// are those of the expression.
struct AlertRule {
  std::string_view name;
  std::string_view expression;    // PromQL
  std::chrono::seconds hold;      // `for`: it must be true so long before it fires
  std::string_view severity;      // "warning", "critical"
  std::string_view subject_kind;  // "server", "brick", "certificate"
  std::string_view summary;       // with {{ }} of Prometheus in it
  std::string_view description;
};

// Those that a server can evaluate about itself. The file has more: whether the server answers at all, and
// what only mounts count.
std::span<const AlertRule> alert_rules();
// Null: none is called so.
const AlertRule* find_alert_rule(std::string_view name);

// The numbers that the expression compares with, in its order.
std::vector<double> limits_of(const AlertRule& rule);
// Of a range selector: "[10m]". Zero: it has none.
std::chrono::seconds window_of(const AlertRule& rule);

// What Prometheus would put in for {{ $labels.… }} and {{ $value … }}.
struct AlertWords {
  std::string instance;  // the server
  std::string brick;     // as people call it
  double value = 0;
};
std::string fill_in(std::string_view text, const AlertWords& words);

}  // namespace pnfsrdma::console
