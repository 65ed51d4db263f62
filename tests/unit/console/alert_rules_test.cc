// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_rules.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

namespace pnfsrdma::console {
namespace {

using std::chrono::seconds;

// A rule of packaging/grafana/alerts.yml.
struct Shipped {
  std::string expression;
  seconds hold{0};
  std::string severity;
  std::string summary;
  std::string description;
};

seconds duration_of(const std::string& text) {
  const long count = std::stol(text);
  return seconds(text.ends_with('h') ? count * 3600 : text.ends_with('m') ? count * 60 : count);
}

std::string unquoted(const std::string& text) {
  return text.size() > 1 && text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

// As much of YAML as the file uses: a member a line.
std::map<std::string, Shipped> shipped_rules() {
  std::map<std::string, Shipped> rules;
  std::ifstream file(PNFSRDMA_ALERT_RULES);
  Shipped* current = nullptr;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" -");
    const size_t colon = line.find(": ");
    if (begin == std::string::npos || colon == std::string::npos || line[begin] == '#') continue;
    const std::string name = line.substr(begin, colon - begin);
    const std::string value = line.substr(colon + 2);
    if (name == "alert") current = &rules[value];
    if (current == nullptr) continue;
    if (name == "expr") current->expression = value;
    if (name == "for") current->hold = duration_of(value);
    if (name == "labels") current->severity = value.substr(11, value.size() - 12);
    if (name == "summary") current->summary = unquoted(value);
    if (name == "description") current->description = unquoted(value);
  }
  return rules;
}

TEST(AlertRules, AreThoseShippedForPrometheus) {
  const auto shipped = shipped_rules();
  for (const AlertRule& rule : alert_rules()) {
    SCOPED_TRACE(std::string(rule.name));
    ASSERT_TRUE(shipped.contains(std::string(rule.name)));
    const Shipped& there = shipped.at(std::string(rule.name));
    EXPECT_EQ(rule.expression, there.expression);
    EXPECT_EQ(rule.hold, there.hold);
    EXPECT_EQ(rule.severity, there.severity);
    EXPECT_EQ(rule.summary, there.summary);
    EXPECT_EQ(rule.description, there.description);
  }
}

TEST(AlertRules, OnlyThoseThatAServerCannotKnowOfItselfAreMissing) {
  // It cannot say that it does not answer; and what mounts count, only they know.
  const std::set<std::string> prometheus_alone{"PnfsrdmaMdsDown", "PnfsrdmaLostWrites",
                                               "PnfsrdmaDeviceUnreachable", "PnfsrdmaFallbacks"};
  std::set<std::string> missing;
  for (const auto& [name, rule] : shipped_rules()) {
    if (find_alert_rule(name) == nullptr) missing.insert(name);
  }
  EXPECT_EQ(missing, prometheus_alone);
}

TEST(AlertRules, LimitsAndWindowsAreThoseOfTheExpression) {
  EXPECT_EQ(limits_of(*find_alert_rule("PnfsrdmaMdsRestarts")), std::vector<double>{3});
  EXPECT_EQ(window_of(*find_alert_rule("PnfsrdmaMdsRestarts")), seconds(3600));
  EXPECT_EQ(limits_of(*find_alert_rule("PnfsrdmaMdsSlow")), std::vector<double>{0.5});
  EXPECT_EQ(window_of(*find_alert_rule("PnfsrdmaMdsSlow")), seconds(300));
  EXPECT_EQ(limits_of(*find_alert_rule("PnfsrdmaCertificateExpires")),
            (std::vector<double>{2592000, 604800}));
  EXPECT_EQ(limits_of(*find_alert_rule("PnfsrdmaMetadataDiskNearlyFull")),
            (std::vector<double>{8589934592, 0.2}));
  EXPECT_EQ(limits_of(*find_alert_rule("PnfsrdmaBrickVolatile")), std::vector<double>{1});
  EXPECT_EQ(window_of(*find_alert_rule("PnfsrdmaBrickAway")), seconds(0));
}

TEST(AlertRules, TextsAreFilledInAsPrometheusDoes) {
  const AlertWords words{.instance = "server1", .brick = "rack1", .value = 0.0625};
  EXPECT_EQ(fill_in("{{ $labels.instance }}: {{ $labels.brick }}", words), "server1: rack1");
  EXPECT_EQ(fill_in("{{ $value | humanizePercentage }} left", words), "6.25% left");
  EXPECT_EQ(fill_in("{{ $value | humanizeDuration }}", {.value = 6 * 86400 + 3 * 3600 + 5}), "6d 3h");
  EXPECT_EQ(fill_in("{{ $value | humanizeDuration }}", {.value = -90}), "-1m 30s");
  EXPECT_EQ(fill_in("{{ $value | humanizeDuration }}", {.value = 0.75}), "750ms");
  EXPECT_EQ(fill_in("{{ $value | humanize1024 }}B", {.value = 1536.0 * 1024}), "1.5MiB");
  EXPECT_EQ(fill_in("{{ $value }} commits", {.value = 20000}), "20000 commits");
  EXPECT_EQ(fill_in("plain {{ open", words), "plain {{ open");
}

}  // namespace
}  // namespace pnfsrdma::console
