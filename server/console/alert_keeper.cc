// SPDX-License-Identifier: Apache-2.0
#include "server/console/alert_keeper.h"

#include <algorithm>
#include <cstdio>

#include "server/console/audit_words.h"
#include "shared/base/log.h"

namespace pnfsrdma::console {

AlertKeeper::AlertKeeper(Parts parts)
    : parts_(std::move(parts)),
      file_(parts_.directory + "/alerts.json"),
      table_(parts_.clock),
      readings_(parts_.server) {
  load();
  starts_.push_back(parts_.clock.wall_now().seconds);
  unkept_ = true;
}

AlertKeeper::~AlertKeeper() {
  running_.lock()->stopping = true;
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AlertKeeper::load() {
  const auto read = file_.load();
  if (read && !*read) return;
  const auto loaded = read ? table_.lock()->load(**read) : Result<>(std::unexpected(read.error()));
  if (!loaded) {
    const std::string aside = file_.path() + ".unreadable";
    log_error("console", "alerts-unreadable error=\"{}\" kept_as={}", loaded.error().to_string(), aside);
    std::rename(file_.path().c_str(), aside.c_str());
    return;
  }
  for (const Json& start : (*read)->value("starts", Json::array())) {
    if (start.is_number_integer()) starts_.push_back(start.get<int64_t>());
  }
  for (const Alert& alert : table_.lock()->all()) {
    if (shouts(alert, parts_.clock.wall_now())) parts_.tell(alert);
  }
}

void AlertKeeper::start() {
  thread_ = Thread([this] {
    for (;;) {
      evaluate();
      auto running = running_.lock();
      if (running.wait_until(stopped_, steady_now() + kEvery,
                             [](const Running& now) { return now.stopping; }))
        return;
    }
  });
}

size_t AlertKeeper::starts_in_window() {
  const AlertRule* const rule = find_alert_rule("PnfsrdmaMdsRestarts");
  const int64_t oldest = parts_.clock.wall_now().seconds - window_of(*rule).count();
  std::erase_if(starts_, [oldest](int64_t start) { return start < oldest; });
  return starts_.size();
}

void AlertKeeper::evaluate() {
  const auto numbers = parts_.numbers();
  if (!numbers) return;  // the loop is busy: what was true a moment ago is so for a moment longer
  const std::optional<double> certificate = parts_.certificate_seconds_left();
  std::vector<Alert> changed;
  {
    const std::lock_guard lock(changing_);
    const auto conditions = readings_.evaluate({.numbers = **numbers,
                                                .certificate_seconds_left = certificate,
                                                .starts = starts_in_window(),
                                                .now = parts_.clock.now()});
    changed = table_.lock()->update(conditions);
    unkept_ = unkept_ || !changed.empty();
    if (unkept_) {
      const auto kept = keep();
      if (!kept && !failing_)
        log_warning("console", "alerts-not-kept error=\"{}\"", kept.error().to_string());
      failing_ = !kept;
    }
  }
  for (const Alert& alert : changed) {
    log(alert);
    parts_.tell(alert);
  }
}

Result<> AlertKeeper::keep() {
  Json json = table_.lock()->to_json();
  json["starts"] = starts_;
  TRY(file_.store(json));
  unkept_ = false;
  return {};
}

void AlertKeeper::log(const Alert& alert) {
  const std::string summary = plain_text(alert.summary);
  if (alert.state == AlertState::kResolved) {
    log_info("console", "alert-resolved id={} alert={} subject={} what=\"{}\"", alert.id, alert.rule,
             alert.subject, summary);
  } else if (alert.severity == "critical") {
    log_error("console", "alert-fired id={} alert={} subject={} what=\"{}\"", alert.id, alert.rule,
              alert.subject, summary);
  } else {
    log_warning("console", "alert-fired id={} alert={} subject={} what=\"{}\"", alert.id, alert.rule,
                alert.subject, summary);
  }
}

std::vector<Alert> AlertKeeper::all() {
  return table_.lock()->all();
}

std::optional<Alert> AlertKeeper::find(uint64_t id) {
  auto table = table_.lock();
  const Alert* const found = table->find(id);
  return found == nullptr ? std::nullopt : std::optional<Alert>(*found);
}

Result<Alert> AlertKeeper::acknowledge(uint64_t id, std::optional<Acknowledgement> acknowledgement) {
  const std::lock_guard lock(changing_);
  const auto before = find(id);
  auto changed = table_.lock()->acknowledge(id, std::move(acknowledgement));
  if (!changed) return changed;
  if (const auto kept = keep(); !kept) {
    // Nobody is told of what a restart would forget. It was there a moment ago: it can be put back.
    static_cast<void>(table_.lock()->acknowledge(id, before->acknowledged));
    return std::unexpected(kept.error());
  }
  return changed;
}

}  // namespace pnfsrdma::console
