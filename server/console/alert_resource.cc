// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_keeper.h"
#include "server/console/page.h"
#include "server/console/resources.h"
#include "server/console/time_text.h"

namespace pnfsrdma::console {

namespace {

Json time_json(const std::optional<WallTime>& time) {
  return time ? Json(rfc3339(*time)) : Json();
}

Json to_json(const Alert& alert, WallTime now) {
  Json json{{"id", alert.id},
            {"rule", alert.rule},
            {"severity", alert.severity},
            {"state", name_of(alert.state)},
            {"needs_attention", shouts(alert, now)},
            {"subject_kind", alert.subject_kind},
            {"subject", alert.subject},
            {"summary", alert.summary},
            {"description", alert.description},
            {"since", rfc3339(alert.since)},
            {"fired", time_json(alert.fired)},
            {"resolved", time_json(alert.resolved)},
            {"acknowledged", Json()}};
  if (const auto& acknowledged = alert.acknowledged) {
    json["acknowledged"] = {{"user", acknowledged->user},
                            {"comment", acknowledged->comment},
                            {"time", rfc3339(acknowledged->time)},
                            {"until", time_json(acknowledged->until)}};
  }
  return json;
}

std::unexpected<Problem> no_alert(const Call& call) {
  return refuse("not-found", "There is no alert " + std::to_string(call.number("id")) + ".",
                "Alerts are kept for seven days after they were resolved.");
}

// What it is about, for the audit log; and the change.
Response change_acknowledgement(Backend& backend, Call& call, std::optional<Acknowledgement> wanted) {
  const auto before = backend.alerts.find(call.number("id"));
  if (!before) return no_alert(call);
  call.before = to_json(*before, backend.clock.wall_now());
  const auto changed = backend.alerts.acknowledge(before->id, std::move(wanted));
  if (!changed) return std::unexpected(Problem::from(changed.error()));
  return ok(to_json(*changed, backend.clock.wall_now()));
}

}  // namespace

Response list_alerts(Backend& backend, Call& call) {
  uint64_t before = 0;
  if (!call.cursor().empty()) {
    TRY_ASSIGN(before, number_of_cursor(call.cursor()));
  }
  const std::string state = call.query_text("state");
  const std::string severity = call.query_text("severity");
  const WallTime now = backend.clock.wall_now();
  Json items = Json::array();
  for (const Alert& alert : backend.alerts.all()) {
    if (before != 0 && alert.id >= before) continue;
    if (!state.empty() && state != name_of(alert.state)) continue;
    if (!severity.empty() && severity != alert.severity) continue;
    if (items.size() >= call.limit()) return ok(page_json(items, number_cursor(items.back()["id"])));
    items.push_back(to_json(alert, now));
  }
  return ok(page_json(items, {}));
}

Response get_alert(Backend& backend, Call& call) {
  const auto alert = backend.alerts.find(call.number("id"));
  if (!alert) return no_alert(call);
  return ok(to_json(*alert, backend.clock.wall_now()));
}

Response post_acknowledgement(Backend& backend, Call& call) {
  const Json& body = call.arguments.body;
  Acknowledgement wanted{.user = call.caller.user,
                         .comment = body.value("comment", ""),
                         .time = backend.clock.wall_now(),
                         .until = {}};
  if (const auto seconds = body.value("for_seconds", int64_t{0}); seconds > 0)
    wanted.until = WallTime{.seconds = wanted.time.seconds + seconds};
  return change_acknowledgement(backend, call, std::move(wanted));
}

Response delete_acknowledgement(Backend& backend, Call& call) {
  return change_acknowledgement(backend, call, std::nullopt);
}

}  // namespace pnfsrdma::console
