// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/console/inventory_json.h"
#include "server/console/inventory_names.h"
#include "server/console/reference_page.h"
#include "server/console/resources.h"

namespace pnfsrdma::console {

namespace {

// Of pages that carry their own style and nothing else.
HttpResponse page(std::string text) {
  HttpResponse response{.content_type = "text/html; charset=utf-8", .body = std::move(text)};
  return response.with(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'");
}

Json to_json(const HealthCheck& check) {
  return {{"name", check.name},
          {"status", to_string(check.status)},
          {"detail", check.detail},
          {"fix", check.fix.empty() ? Json() : Json(check.fix)}};
}

}  // namespace

Response get_open_api(Backend&, Call&) {
  return HttpResponse{.body = std::string(kOpenApiText)};
}

Response get_reference(Backend& backend, Call&) {
  return page(reference_page(backend.document));
}

Response get_problem(Backend& backend, Call& call) {
  std::string text = problem_page(backend.document, call.text("name"));
  if (text.empty()) return refuse("not-found", "There is no such type of problem.");
  return page(std::move(text));
}

Response get_version(Backend& backend, Call&) {
  return ok(
      {{"product", "pnfsrdma"}, {"version", backend.version}, {"api", "v1"}, {"protocols", {"4.1", "4.2"}}});
}

Response get_live(Backend&, Call&) {
  return ok({{"status", "ok"}});
}

Response get_health(Backend& backend, Call&) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  HealthStatus worst = HealthStatus::kOk;
  Json checks = Json::array();
  const auto add = [&](const HealthCheck& check) {
    worst = std::max(worst, check.status);
    checks.push_back(to_json(check));
  };
  for (const HealthCheck& check : numbers->checks) add(check);
  add(backend.check_certificate());
  return ok({{"status", to_string(worst)},
             {"checks", checks},
             {"uptime_seconds", numbers->uptime_seconds},
             {"start_count", numbers->start_count},
             {"grace_seconds_left", numbers->grace_seconds_left}});
}

Response get_cluster(Backend& backend, Call&) {
  TRY_ASSIGN(const auto numbers, or_problem(backend.numbers.get()));
  return ok(to_json(numbers->cluster));
}

}  // namespace pnfsrdma::console
