// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "cli/doctor/checks.h"
#include "cli/output/json_member.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;
using SystemTime = std::chrono::system_clock::time_point;

// A sample is a second old at most, and took its way.
constexpr double kSkewSeconds = 3;

Verdict verdict_of(const std::string& status) {
  if (status == "ok") return Verdict::kOk;
  return status == "warning" ? Verdict::kWarning : Verdict::kProblem;
}

Finding skew(ApiClient& client, SystemTime now) {
  const auto answer = client.get("/throughput", {{"seconds", "2"}});
  const json samples = answer ? answer->body.value("samples", json::array()) : json::array();
  const auto time = samples.empty() ? std::nullopt : time_of(text_at(samples.back(), "/time"));
  if (!time) return {"server clock", Verdict::kOk, "not known: the server has not reported its time yet", ""};
  const double seconds = std::chrono::duration<double>(now - *time).count();
  const std::string what =
      fmt::format("{:.0f} s {} this host's", std::abs(seconds), seconds > 0 ? "behind" : "ahead of");
  if (std::abs(seconds) <= kSkewSeconds) return {"server clock", Verdict::kOk, "as this host's", ""};
  return {"server clock", Verdict::kWarning, what + ": the times of files will be inconsistent",
          "synchronise both: apt-get install chrony; chronyc makestep"};
}

}  // namespace

Findings check_console(ApiClient& client, SystemTime now) {
  const auto health = client.get("/health");
  if (!health) {
    const Failure& failure = health.error();
    return {{"console", Verdict::kProblem,
             failure.title + (failure.detail.empty() ? "" : ": " + failure.detail),
             failure.fix.empty() ? "pnfsrdma health says more" : failure.fix}};
  }
  Findings findings = {{"console", Verdict::kOk, "answers", ""}};
  for (const json& check : health->body.value("checks", json::array())) {
    const Verdict verdict = verdict_of(text_at(check, "/status"));
    std::string fix = verdict == Verdict::kOk ? "" : text_at(check, "/fix");
    if (verdict != Verdict::kOk && fix.empty()) fix = "pnfsrdma event list --level warning";
    findings.push_back(
        {"server " + text_at(check, "/name"), verdict, text_at(check, "/detail"), std::move(fix)});
  }
  findings.push_back(skew(client, now));
  return findings;
}

}  // namespace pnfsrdma::cli
