// SPDX-License-Identifier: Apache-2.0
#include "server/console/webhook_message.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>

#include "server/console/secret.h"
#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

// As Alertmanager has it: a time that has not come.
constexpr const char* kNever = "0001-01-01T00:00:00Z";

const char* status_of(const Alert& alert) {
  return alert.state == AlertState::kResolved ? "resolved" : "firing";
}

Json labels_of(const Alert& alert, const std::string& server) {
  Json labels{{"alertname", alert.rule}, {"severity", alert.severity}, {"instance", server}};
  if (alert.subject_kind == "brick") labels["brick"] = alert.subject;
  return labels;
}

Json json_of(const Alert& alert, const std::string& server) {
  const Json labels = labels_of(alert, server);
  return {{"status", status_of(alert)},
          {"labels", labels},
          {"annotations", {{"summary", alert.summary}, {"description", alert.description}}},
          {"startsAt", rfc3339(alert.fired.value_or(alert.since))},
          {"endsAt", alert.resolved ? rfc3339(*alert.resolved) : kNever},
          {"generatorURL", ""},
          {"fingerprint", digest_of(to_text(labels)).substr(0, 16)}};
}

}  // namespace

Json webhook_message(const std::vector<Alert>& alerts, const std::string& server) {
  Json shown = Json::array();
  for (const Alert& alert : alerts) shown.push_back(json_of(alert, server));
  const bool any =
      std::ranges::any_of(alerts, [](const Alert& one) { return one.state == AlertState::kFiring; });
  return {{"version", "4"},
          {"groupKey", "{}:{}"},
          {"truncatedAlerts", 0},
          {"status", any ? "firing" : "resolved"},
          {"receiver", "pnfsrdma"},
          {"groupLabels", Json::object()},
          {"commonLabels", {{"instance", server}}},
          {"commonAnnotations", Json::object()},
          {"externalURL", ""},
          {"alerts", std::move(shown)}};
}

Alert test_alert(WallTime now) {
  return {.id = 0,
          .rule = "PnfsrdmaTest",
          .severity = "warning",
          .subject_kind = "server",
          .subject = {},
          .summary = "This is a test: nothing is wrong",
          .description = "An administrator has asked for it in the console of pnfsrdma.",
          .state = AlertState::kResolved,
          .since = now,
          .fired = now,
          .resolved = now,
          .acknowledged = {}};
}

std::string signature_of(std::string_view body, std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(body.data()), body.size(), digest.data(), &size);
  std::string text = "sha256=";
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace pnfsrdma::console
