// SPDX-License-Identifier: Apache-2.0
#include "server/console/resources.h"
#include "server/console/time_text.h"
#include "server/console/webhook.h"

namespace pnfsrdma::console {

namespace {

Json text_json(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// The secret goes in and never comes out.
Json to_json(const std::optional<WebhookTarget>& target, const WebhookStatus& status) {
  const auto time = [](const std::optional<WallTime>& at) { return at ? Json(rfc3339(*at)) : Json(); };
  return {{"url", target ? Json(target->url) : Json()},
          {"signed", target && !target->secret.empty()},
          {"ca_file", target ? text_json(target->ca_file) : Json()},
          {"severity", target ? target->least : "warning"},
          {"status",
           {{"delivered", time(status.delivered)},
            {"failed", time(status.failed)},
            {"failure", text_json(status.failure)},
            {"deliveries", status.deliveries},
            {"failures", status.failures},
            {"waiting", status.waiting},
            {"dropped", status.dropped}}}};
}

Json current_webhook(Backend& backend) {
  return to_json(backend.webhook.target(), backend.webhook.status());
}

// What of it an administrator has chosen.
Json choices_of(const Json& webhook) {
  Json chosen = webhook;
  chosen.erase("status");
  return chosen;
}

}  // namespace

Response get_webhook(Backend& backend, Call&) {
  return ok(current_webhook(backend));
}

Response put_webhook(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_webhook);
  const Json& body = call.arguments.body;
  call.before = choices_of(current_webhook(backend));
  const auto before = backend.webhook.target();
  WebhookTarget wanted{.url = body.at("url").get<std::string>(),
                       .secret = before ? before->secret : "",
                       .ca_file = body.contains("ca_file") && body["ca_file"].is_string()
                                      ? body["ca_file"].get<std::string>()
                                      : "",
                       .least = body.value("severity", "warning")};
  if (body.contains("secret"))
    wanted.secret = body["secret"].is_string() ? body["secret"].get<std::string>() : "";
  if (const auto kept = backend.webhook.set(std::move(wanted)); !kept)
    return std::unexpected(Problem::from(kept.error()));
  return ok(current_webhook(backend));
}

Response delete_webhook(Backend& backend, Call& call) {
  const std::lock_guard changing(backend.changing_webhook);
  call.before = choices_of(current_webhook(backend));
  if (const auto kept = backend.webhook.set(std::nullopt); !kept)
    return std::unexpected(Problem::from(kept.error()));
  return no_content();
}

Response post_webhook_test(Backend& backend, Call& call) {
  call.before = choices_of(current_webhook(backend));
  TRY_ASSIGN(const WebhookPost::Outcome outcome, or_problem(backend.webhook.test()));
  return ok({{"delivered", outcome.delivered()},
             {"http_status", outcome.status == 0 ? Json() : Json(outcome.status)},
             {"detail", outcome.detail}});
}

}  // namespace pnfsrdma::console
