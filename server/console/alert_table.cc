// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_table.h"

#include <algorithm>
#include <cerrno>
#include <set>

namespace pnfsrdma::console {

namespace {

constexpr int kVersion = 1;

Json json_of(const std::optional<WallTime>& time) {
  return time ? Json(time->seconds) : Json();
}
std::optional<WallTime> wall_time_of(const Json& json) {
  if (!json.is_number_integer()) return std::nullopt;
  return WallTime{.seconds = json.get<int64_t>()};
}

Json record_of(const Alert& alert) {
  Json record{{"id", alert.id},
              {"rule", alert.rule},
              {"severity", alert.severity},
              {"subject_kind", alert.subject_kind},
              {"subject", alert.subject},
              {"summary", alert.summary},
              {"description", alert.description},
              {"since", alert.since.seconds},
              {"fired", json_of(alert.fired)},
              {"resolved", json_of(alert.resolved)}};
  if (const auto& acknowledged = alert.acknowledged) {
    record["acknowledged"] = {{"user", acknowledged->user},
                              {"comment", acknowledged->comment},
                              {"time", acknowledged->time.seconds},
                              {"until", json_of(acknowledged->until)}};
  }
  return record;
}

std::string member(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// nullopt: no record of an alert.
std::optional<Alert> alert_of(const Json& json) {
  if (!json.is_object() || !json.contains("id") || !json["id"].is_number_unsigned()) return std::nullopt;
  const auto since = wall_time_of(json.value("since", Json()));
  const auto fired = wall_time_of(json.value("fired", Json()));
  if (!since || !fired || member(json, "rule").empty()) return std::nullopt;
  Alert alert{.id = json["id"].get<uint64_t>(),
              .rule = member(json, "rule"),
              .severity = member(json, "severity"),
              .subject_kind = member(json, "subject_kind"),
              .subject = member(json, "subject"),
              .summary = member(json, "summary"),
              .description = member(json, "description"),
              .since = *since,
              .fired = fired,
              .resolved = wall_time_of(json.value("resolved", Json())),
              .acknowledged = {}};
  alert.state = alert.resolved ? AlertState::kResolved : AlertState::kFiring;
  const Json acknowledged = json.value("acknowledged", Json());
  if (!acknowledged.is_object()) return alert;
  alert.acknowledged =
      Acknowledgement{.user = member(acknowledged, "user"),
                      .comment = member(acknowledged, "comment"),
                      .time = wall_time_of(acknowledged.value("time", Json())).value_or(WallTime{}),
                      .until = wall_time_of(acknowledged.value("until", Json()))};
  return alert;
}

}  // namespace

const char* name_of(AlertState state) {
  switch (state) {
    case AlertState::kPending:
      return "pending";
    case AlertState::kFiring:
      return "firing";
    case AlertState::kResolved:
      return "resolved";
  }
  return "firing";
}

bool shouts(const Alert& alert, WallTime now) {
  if (alert.state != AlertState::kFiring) return false;
  const auto& acknowledged = alert.acknowledged;
  return !acknowledged || (acknowledged->until && *acknowledged->until <= now);
}

std::vector<Alert> AlertTable::update(const std::vector<AlertCondition>& conditions) {
  std::vector<Alert> changed;
  std::set<Key> there;
  for (const AlertCondition& condition : conditions) {
    there.emplace(condition.rule->name, condition.subject);
    if (condition.known) begin_or_go_on(condition, changed);
  }
  std::erase_if(live_, [&](const auto& entry) {
    if (there.contains(entry.first)) return false;
    Alert alert = entry.second.alert;
    if (alert.state == AlertState::kFiring) {
      alert.state = AlertState::kResolved;
      alert.resolved = clock_.wall_now();
      changed.push_back(alert);
      resolved_.push_back(alert);
    }
    return true;
  });
  forget_old();
  return changed;
}

void AlertTable::begin_or_go_on(const AlertCondition& condition, std::vector<Alert>& changed) {
  const AlertRule& rule = *condition.rule;
  const auto [at, is_new] = live_.try_emplace(Key(rule.name, condition.subject));
  Alert& alert = at->second.alert;
  if (is_new) {
    at->second.since = clock_.now();
    alert.id = next_++;
    alert.rule = rule.name;
    alert.subject = condition.subject;
    alert.since = clock_.wall_now();
  }
  // As they are now: a brick is given a name, less is left.
  alert.severity = rule.severity;
  alert.subject_kind = rule.subject_kind;
  alert.summary = condition.summary;
  alert.description = condition.description;
  if (alert.state == AlertState::kFiring || clock_.now() - at->second.since < rule.hold) return;
  alert.state = AlertState::kFiring;
  alert.fired = clock_.wall_now();
  changed.push_back(alert);
}

void AlertTable::forget_old() {
  const int64_t oldest = clock_.wall_now().seconds - kKept.count();
  std::erase_if(resolved_, [oldest](const Alert& alert) { return alert.resolved->seconds < oldest; });
  if (resolved_.size() > kResolvedMax)
    resolved_.erase(resolved_.begin(),
                    resolved_.begin() + static_cast<ptrdiff_t>(resolved_.size() - kResolvedMax));
}

std::vector<Alert> AlertTable::all() const {
  std::vector<Alert> all = resolved_;
  for (const auto& [key, live] : live_) all.push_back(live.alert);
  std::ranges::sort(all, std::ranges::greater(), &Alert::id);
  return all;
}

const Alert* AlertTable::find(uint64_t id) const {
  for (const auto& [key, live] : live_) {
    if (live.alert.id == id) return &live.alert;
  }
  const auto found = std::ranges::find(resolved_, id, &Alert::id);
  return found == resolved_.end() ? nullptr : &*found;
}

Result<Alert> AlertTable::acknowledge(uint64_t id, std::optional<Acknowledgement> acknowledgement) {
  for (auto& [key, live] : live_) {
    if (live.alert.id != id) continue;
    if (live.alert.state != AlertState::kFiring) return fail(EBUSY, "alert does not fire yet");
    live.alert.acknowledged = std::move(acknowledgement);
    return live.alert;
  }
  if (find(id) != nullptr) return fail(EBUSY, "alert is resolved already");
  return fail(ENOENT, "there is no alert " + std::to_string(id));
}

Json AlertTable::to_json() const {
  Json alerts = Json::array();
  for (const Alert& alert : all()) {
    if (alert.state != AlertState::kPending) alerts.push_back(record_of(alert));
  }
  return {{"version", kVersion}, {"next", next_}, {"alerts", std::move(alerts)}};
}

Result<> AlertTable::load(const Json& json) {
  const auto refused = [] { return fail(EUCLEAN, "these are no alerts of ours"); };
  if (!json.is_object() || json.value("version", Json()) != kVersion || !json.contains("alerts") ||
      !json["alerts"].is_array() || !json.contains("next") || !json["next"].is_number_unsigned())
    return refused();
  std::map<Key, Live> live;
  std::vector<Alert> resolved;
  uint64_t next = json["next"].get<uint64_t>();
  for (const Json& one : json["alerts"]) {
    auto alert = alert_of(one);
    if (!alert) return refused();
    next = std::max(next, alert->id + 1);
    if (alert->state == AlertState::kResolved) {
      resolved.push_back(std::move(*alert));
    } else if (find_alert_rule(alert->rule) != nullptr) {
      const Key key(alert->rule, alert->subject);
      live.emplace(key, Live{.alert = std::move(*alert), .since = clock_.now()});
    }
  }
  std::ranges::sort(resolved, {}, &Alert::resolved);
  next_ = next;
  live_ = std::move(live);
  resolved_ = std::move(resolved);
  forget_old();
  return {};
}

}  // namespace pnfsrdma::console
