// SPDX-License-Identifier: Apache-2.0
#include "server/console/api.h"

#include <algorithm>

#include "server/console/authenticate.h"
#include "server/console/metrics.h"
#include "server/console/time_text.h"
#include "shared/base/log.h"

namespace pnfsrdma::console {

namespace {

constexpr std::string_view kPrefix = "/api/v1";

std::string_view next_part(std::string_view& path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

// Everything a browser may hold against us: no other site's page may frame, script or be scripted from here.
void add_headers(HttpResponse& response) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(response.headers, [&](const auto& header) { return header.first == name; });
  };
  response.with("X-Content-Type-Options", "nosniff")
      .with("X-Frame-Options", "DENY")
      .with("Referrer-Policy", "no-referrer")
      .with("Cross-Origin-Opener-Policy", "same-origin")
      .with("Cross-Origin-Resource-Policy", "same-origin")
      .with("Permissions-Policy", "camera=(), microphone=(), geolocation=()");
  if (!has("Cache-Control")) response.with("Cache-Control", "no-store");
  if (!has("Content-Security-Policy"))
    response.with("Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
                  "form-action 'self'; frame-ancestors 'none'");
}

// What was asked for, without what nobody may read again.
Json without_secrets(Json body) {
  if (!body.is_object()) return body;
  for (const char* name : {"password", "old_password", "new_password", "token", "secret"}) body.erase(name);
  return body;
}

}  // namespace

bool match(std::string_view pattern, std::string_view path,
           std::vector<std::pair<std::string, std::string>>& parameters) {
  parameters.clear();
  if (pattern == "/" || path == "/") return pattern == path;
  while (!pattern.empty() && !path.empty()) {
    const std::string_view wanted = next_part(pattern);
    const std::string_view given = next_part(path);
    if (wanted.starts_with('{')) {
      parameters.emplace_back(wanted.substr(1, wanted.size() - 2), given);
    } else if (wanted != given) {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

HttpResponse Api::handle(const HttpRequest& request) {
  ++backend_.requests;
  const Answer<HttpResponse> answer = respond(request);
  HttpResponse response = answer ? *answer : to_response(answer.error());
  if (response.status >= 400) ++backend_.refused;
  add_headers(response);
  return response;
}

Answer<HttpResponse> Api::respond(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path == "/metrics") return metrics(request);
  if (path == kPrefix) return HttpResponse{.status = 308}.with("Location", "/api/v1/");
  if (path.starts_with("/api/") && !path.starts_with("/api/v1/"))
    return refuse("not-found", "This server has /api/v1 alone.");
  if (path.starts_with("/api/")) return respond_api(request, path.substr(kPrefix.size()));
  if (request.method != "GET") return refuse("method-not-allowed", "Files can only be read.");
  return files_.get(request);
}

Answer<HttpResponse> Api::respond_api(const HttpRequest& request, std::string_view path) {
  const Route* route = nullptr;
  std::string allowed;
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const Route& candidate : routes()) {
    std::vector<std::pair<std::string, std::string>> found;
    if (!match(candidate.path, path, found)) continue;
    allowed += (allowed.empty() ? "" : ", ") + std::string(candidate.method);
    if (candidate.method != request.method) continue;
    route = &candidate;
    parameters = std::move(found);
    break;
  }
  if (route == nullptr) {
    if (allowed.empty())
      return refuse("not-found", "There is no resource " + request.path + ".", "See /api/v1/.");
    HttpResponse response =
        to_response({.name = "method-not-allowed", .detail = "It takes " + allowed + "."});
    return response.with("Allow", allowed);
  }
  Caller caller;
  if (route->role != Role::kPublic) {
    TRY_ASSIGN(caller, authenticate(backend_, request));
    if (caller.role == Role::kPublic)
      return refuse("not-logged-in", "Nobody has logged in here.", "POST /api/v1/session, or send a token.");
    if (caller.role < route->role)
      return refuse("not-permitted", "This needs the role " + std::string(name_of(route->role)) + "; " +
                                         caller.user + " has " + std::string(name_of(caller.role)) + ".");
    TRY(check_csrf(caller, request));
  }
  const ApiDocument::Operation& operation = backend_.document.operation(route->id);
  TRY_ASSIGN(auto arguments, backend_.document.parse(operation, parameters, request));
  Call call{request, operation, std::move(caller), std::move(arguments), {}};
  auto answer = route->respond(backend_, call);
  if (request.method != "GET") TRY(audit(call, answer));
  return answer;
}

// Refused changes have changed nothing; what was refused for want of the right password is of interest all
// the same.
Answer<> Api::audit(const Call& call, const Answer<HttpResponse>& answer) {
  const int status = answer ? answer->status : to_response(answer.error()).status;
  const bool tried_password = status == 401;
  if (status >= 400 && !tried_password) return {};
  const auto added = backend_.audit.add(
      {{"time", rfc3339(backend_.clock.wall_now())},
       {"user", call.caller.user == "-" ? call.arguments.body.value("user", "-") : call.caller.user},
       {"method", call.caller.method},
       {"origin", call.request.peer.local_socket ? "unix" : call.request.peer.address},
       {"action", call.operation.id},
       {"subject", call.request.path},
       {"status", status},
       {"before", call.before},
       {"after", without_secrets(call.arguments.body)}});
  if (!added) {
    // The change is made and cannot be taken back; the caller must not take it for an ordinary one.
    log_error("console", "audit-failed error=\"{}\"", added.error().to_string());
    return refuse("busy",
                  "It was done, but could not be written to the audit log: " + added.error().to_string(),
                  "Make room where the audit log is.");
  }
  if (!tried_password)
    log_info("console", "changed user={} origin={} action={} subject={}", call.caller.user,
             call.request.peer.local_socket ? "unix" : call.request.peer.address, call.operation.id,
             call.request.path);
  return {};
}

Answer<HttpResponse> Api::metrics(const HttpRequest& request) {
  if (request.method != "GET") return refuse("method-not-allowed", "It can only be read.");
  TRY_ASSIGN(const Caller caller, authenticate(backend_, request));
  if (caller.role < Role::kViewer)
    return refuse("not-logged-in", "Metrics need the role viewer.",
                  "Give the scraper a token of role viewer.");
  TRY_ASSIGN(const auto numbers, or_problem(backend_.numbers.get()));
  const ConsoleCounters console{.requests = backend_.requests,
                                .refused = backend_.refused,
                                .streams = backend_.streams,
                                .events = backend_.events.range().newest};
  return HttpResponse{.content_type = kMetricsType,
                      .body = metrics_text(*numbers, console, backend_.version)};
}

}  // namespace pnfsrdma::console
