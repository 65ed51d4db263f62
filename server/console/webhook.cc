// SPDX-License-Identifier: Apache-2.0
#include "server/console/webhook.h"

#include <algorithm>
#include <cerrno>

#include "server/console/audit_words.h"
#include "server/console/webhook_message.h"
#include "shared/base/log.h"

namespace pnfsrdma::console {

namespace {

std::string origin_of(const WebhookTarget& target) {
  const auto url = parse_webhook_url(target.url);
  return url ? url->origin() : "?";
}

bool is_wanted(const Alert& alert, const WebhookTarget& target) {
  return target.least != "critical" || alert.severity == "critical";
}

Json record_of(const WebhookTarget& target) {
  return {{"version", 1},
          {"url", target.url},
          {"secret", target.secret},
          {"ca_file", target.ca_file},
          {"severity", target.least}};
}

// nullopt: none of ours.
std::optional<WebhookTarget> target_of(const Json& json) {
  if (!json.is_object() || json.value("version", Json()) != 1) return std::nullopt;
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  WebhookTarget target{
      .url = text("url"), .secret = text("secret"), .ca_file = text("ca_file"), .least = text("severity")};
  return parse_webhook_url(target.url) ? std::optional(target) : std::nullopt;
}

}  // namespace

Webhook::Patience Webhook::usual_patience() {
  using std::chrono::seconds;
  // A quarter of an hour: a receiver can be restarted meanwhile.
  return {{seconds(1), seconds(2), seconds(5), seconds(10), seconds(30), seconds(60), seconds(120),
           seconds(240), seconds(480)}};
}

Webhook::Webhook(const Clock& clock, const std::string& directory, std::string server, Patience patience)
    : clock_(clock),
      file_(directory + "/webhook.json"),
      server_(std::move(server)),
      patience_(std::move(patience)) {
  load();
  thread_ = Thread([this] { run(); });
}

Webhook::~Webhook() {
  {
    auto state = state_.lock();
    state->stopping = true;
    for (const auto& post : state->running) post->stop();
  }
  woken_.notify_all();
  thread_.join();
}

void Webhook::load() {
  const auto read = file_.load();
  if (read && !*read) return;
  auto target = read ? target_of(**read) : std::nullopt;
  if (!target) log_error("console", "webhook-unreadable file={}", file_.path());
  state_.lock()->target = std::move(target);
}

std::optional<WebhookTarget> Webhook::target() {
  return state_.lock()->target;
}

Result<> Webhook::set(std::optional<WebhookTarget> target) {
  if (target) TRY(parse_webhook_url(target->url));
  const std::lock_guard lock(changing_);
  TRY(target ? file_.store(record_of(*target)) : file_.remove());
  auto state = state_.lock();
  state->target = std::move(target);
  ++state->version;
  state->attempts = 0;
  // What is known of another receiver says nothing of this one.
  state->status = WebhookStatus{};
  if (!state->target) state->waiting.clear();
  woken_.notify_all();
  return {};
}

WebhookStatus Webhook::status() {
  auto state = state_.lock();
  WebhookStatus status = state->status;
  status.waiting = state->waiting.size();
  return status;
}

void Webhook::tell(const Alert& alert) {
  bool dropped = false;
  {
    auto state = state_.lock();
    if (!state->target || !is_wanted(alert, *state->target)) return;
    if (state->waiting.size() >= kWaitingMax) {
      // The newest say more of how things are now.
      state->waiting.pop_front();
      state->status.dropped += 1;
      dropped = true;
    }
    state->waiting.push_back(alert);
  }
  woken_.notify_all();
  if (dropped)
    log_warning("console", "webhook-dropped why=\"too many alerts wait for the receiver\" alerts=1");
}

void Webhook::run() {
  auto state = state_.lock();
  while (!state->stopping) {
    state.wait(woken_, [](const State& now) { return now.stopping || (now.target && !now.waiting.empty()); });
    if (state->stopping) return;
    if (state->attempts > 0) {
      const uint64_t version = state->version;
      const auto until = steady_now() + patience_.pauses[state->attempts - 1];
      state.wait_until(woken_, until,
                       [&](const State& now) { return now.stopping || now.version != version; });
      if (state->stopping) return;
      if (state->version != version) continue;
    }
    const size_t count = std::min(state->waiting.size(), kMessageMax);
    const std::vector<Alert> alerts(state->waiting.begin(),
                                    state->waiting.begin() + static_cast<ptrdiff_t>(count));
    const WebhookTarget target = *state->target;
    const uint64_t version = state->version;
    state.unlock();
    deliver(target, version, alerts);
    state.relock();
  }
}

void Webhook::deliver(const WebhookTarget& target, uint64_t version, const std::vector<Alert>& alerts) {
  const WebhookPost::Outcome outcome = post(target, alerts);
  bool recovered = false, first_failure = false, given_up = false;
  {
    auto state = state_.lock();
    if (state->version != version || state->stopping) return;  // another one gets it
    if (outcome.delivered()) {
      recovered = state->attempts > 0;
      state->attempts = 0;
      state->status.delivered = clock_.wall_now();
      state->status.deliveries += 1;
    } else {
      first_failure = state->attempts == 0;
      state->attempts += 1;
      given_up = state->attempts > patience_.pauses.size();
      state->status.failed = clock_.wall_now();
      state->status.failure = outcome.detail;
      state->status.failures += 1;
      if (given_up) {
        state->attempts = 0;
        state->status.dropped += alerts.size();
      }
    }
    if (outcome.delivered() || given_up) {
      // By what they are: those in front may have made room meanwhile.
      std::erase_if(state->waiting, [&](const Alert& waiting) {
        return std::ranges::any_of(
            alerts, [&](const Alert& sent) { return sent.id == waiting.id && sent.state == waiting.state; });
      });
    }
  }
  const std::string origin = origin_of(target);
  if (recovered) log_info("console", "webhook-recovered receiver={}", origin);
  if (first_failure)
    log_warning("console", "webhook-failed receiver={} error=\"{}\"", origin, plain_text(outcome.detail));
  if (given_up)
    log_warning("console", "webhook-dropped why=\"{}\" alerts={}", plain_text(outcome.detail), alerts.size());
}

WebhookPost::Outcome Webhook::post(const WebhookTarget& target, const std::vector<Alert>& alerts) {
  const std::string body = to_text(webhook_message(alerts, server_));
  const auto post = std::make_shared<WebhookPost>(
      WebhookPost::Request{.url = *parse_webhook_url(target.url),
                           .ca_file = target.ca_file,
                           .signature = target.secret.empty() ? "" : signature_of(body, target.secret),
                           .body = body});
  {
    auto state = state_.lock();
    if (state->stopping) return {.status = 0, .detail = "the server is stopping"};
    state->running.insert(post);
  }
  const WebhookPost::Outcome outcome = post->send();
  state_.lock()->running.erase(post);
  return outcome;
}

Result<WebhookPost::Outcome> Webhook::test() {
  const auto current = target();
  if (!current) return fail(ENOENT, "no webhook is set");
  auto outcome = post(*current, {test_alert(clock_.wall_now())});
  auto state = state_.lock();
  if (outcome.delivered()) {
    state->status.delivered = clock_.wall_now();
    state->status.deliveries += 1;
  } else {
    state->status.failed = clock_.wall_now();
    state->status.failure = outcome.detail;
    state->status.failures += 1;
  }
  return outcome;
}

void Webhook::end_overdue() {
  // Without the lock: the end of a connection may take seconds.
  const auto running = state_.lock()->running;
  for (const auto& post : running) {
    if (post->overdue()) post->stop();
  }
}

}  // namespace pnfsrdma::console
