// SPDX-License-Identifier: Apache-2.0
#include "server/console/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/console/audit_words.h"
#include "server/console/authenticate.h"
#include "server/console/etag.h"
#include "server/console/metrics.h"
#include "server/console/page.h"
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

// Different for whatever is different: each part behind its length.
std::string question_of(const HttpRequest& request) {
  std::string question = fmt::format("{}:{}", request.path.size(), request.path);
  for (const auto& [name, value] : request.query)
    question += fmt::format("?{}:{}={}:{}", name.size(), name, value.size(), value);
  return question;
}

// What was asked for, without what nobody may read again.
Json without_secrets(Json body) {
  if (!body.is_object()) return body;
  for (const char* name : {"password", "old_password", "new_password", "token", "secret"}) body.erase(name);
  return body;
}

// An answer that the caller has already is not sent again (RFC 9110, 13.1.2).
HttpResponse unless_known(const HttpRequest& request, HttpResponse answer) {
  if (answer.status != 200 || answer.stream || answer.body.empty()) return answer;
  const auto given = std::ranges::find(answer.headers, "ETag", &std::pair<std::string, std::string>::first);
  const std::string etag = etag_of_answer(given == answer.headers.end() ? "" : given->second, answer.body);
  if (given == answer.headers.end()) {
    answer.with("ETag", etag);
  } else {
    given->second = etag;
  }
  if (!is_known(request.header("if-none-match"), etag)) return answer;
  answer.status = 304;
  answer.body.clear();
  return answer;
}

}  // namespace

bool match(std::string_view pattern, std::string_view path, PathParameters& parameters) {
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
    return refuse("not-found", "This server supports only /api/v1.");
  if (path.starts_with("/api/")) return respond_api(request, path.substr(kPrefix.size()));
  if (request.method != "GET") return refuse("method-not-allowed", "Files can only be read.");
  return files_.get(request);
}

Answer<HttpResponse> Api::respond_api(const HttpRequest& request, std::string_view path) {
  std::string allowed;
  for (const Route& route : routes()) {
    PathParameters parameters;
    if (!match(route.path, path, parameters)) continue;
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    if (route.method != request.method) continue;
    Call call{request, backend_.document.operation(route.id), {}, {}, {}};
    auto answer = respond_call(route, call, parameters);
    if (request.method == "GET") return answer ? unless_known(request, std::move(*answer)) : answer;
    if (call.replayed) return answer;
    note_change();
    TRY(audit(call, answer));
    return answer;
  }
  if (allowed.empty())
    return refuse("not-found", "There is no resource " + request.path + ".", "See /api/v1/.");
  HttpResponse response = to_response({.name = "method-not-allowed", .detail = "It takes " + allowed + "."});
  return response.with("Allow", allowed);
}

Answer<HttpResponse> Api::respond_call(const Route& route, Call& call, const PathParameters& path) {
  TRY(admit(route, call));
  if (route.answers == Answers::kShared && call.request.body.empty())
    return respond_shared(route, call, path);
  TRY(read_arguments(call, path));
  if (route.method == "POST" && route.role != Role::kPublic) return respond_once(route, call);
  return route.respond(backend_, call);
}

// Cursors leave and come back sealed; in between they are places in lists.
Answer<> Api::read_arguments(Call& call, const PathParameters& path) {
  TRY_ASSIGN(call.arguments, backend_.document.parse(call.operation, path, call.request));
  const auto cursor = call.arguments.query.find("cursor");
  if (cursor == call.arguments.query.end()) return {};
  const auto place = unseal_cursor(cursor->get<std::string>());
  if (!place) return strange_cursor();
  *cursor = *place;
  return {};
}

// A request that is repeated with its Idempotency-Key, because its answer was lost, is done once.
Answer<HttpResponse> Api::respond_once(const Route& route, Call& call) {
  const std::string given(call.request.header("idempotency-key"));
  if (given.empty()) return route.respond(backend_, call);
  const std::string key = call.caller.user + " " + call.request.path + " " + given;
  TRY_ASSIGN(auto known, repeats_.begin(key, call.request.body));
  if (known) {
    call.replayed = true;
    return known->with("Idempotency-Replayed", "true");
  }
  auto answer = route.respond(backend_, call);
  repeats_.end(key, answer);
  return answer;
}

Answer<HttpResponse> Api::respond_shared(const Route& route, Call& call, const PathParameters& path) {
  const AnswerCache::Moment now{.events = backend_.events.range().newest, .changes = changes_};
  const std::string question = question_of(call.request);
  if (auto known = answers_.find(question, now)) return *std::move(known);
  TRY(read_arguments(call, path));
  TRY_ASSIGN(HttpResponse made, route.respond(backend_, call));
  answers_.keep(question, now, made);
  return made;
}

// Whoever asks from now on sees what it did.
void Api::note_change() {
  ++changes_;
  backend_.blocks.outdate();
}

// Who asks, and whether they may.
Answer<> Api::admit(const Route& route, Call& call) {
  if (route.role == Role::kPublic) return {};
  TRY_ASSIGN(call.caller, authenticate(backend_, call.request));
  if (call.caller.role == Role::kPublic)
    return refuse("not-logged-in", "Not logged in.", "POST /api/v1/session, or send a token.");
  if (call.caller.role < route.role)
    return refuse("not-permitted", "This needs the role " + std::string(name_of(route.role)) + "; " +
                                       call.caller.user + " has " + std::string(name_of(call.caller.role)) +
                                       ".");
  return check_csrf(call.caller, call.request);
}

// What was done; what may have been done, when nobody waited for its end; and what somebody tried who may
// not, as often as it says something: whoever floods the log with refusals must not wash it out. Other
// refusals have changed nothing and would have been allowed.
bool Api::worth_auditing(const Call& call, int status) {
  if (status < 400 || status == 503) return true;
  if (status != 403) return status == 401 && call.operation.id == "postSession";
  const std::string who = call.caller.user == "-" ? "address " + network_of(call.request.peer.address)
                                                  : "user " + call.caller.user;
  if (refusals_.wait_seconds(who) > 0) return false;
  refusals_.failed(who);
  return true;
}

Answer<> Api::audit(const Call& call, const Answer<HttpResponse>& answer) {
  const int status = answer ? answer->status : to_response(answer.error()).status;
  if (!worth_auditing(call, status)) return {};
  const Json& body = call.arguments.body;
  const std::string named = body.is_object() ? body.value("user", "-") : "-";
  const std::string user = call.caller.user == "-" ? named : call.caller.user;
  const std::string origin = call.request.peer.local_socket ? "unix" : call.request.peer.address;
  const Json entry{{"time", rfc3339(backend_.clock.wall_now())},
                   {"user", user},
                   {"method", call.caller.method},
                   {"origin", origin},
                   {"action", call.operation.id},
                   {"subject", call.request.path},
                   {"status", status},
                   {"before", call.before},
                   {"after", without_secrets(body)}};
  const auto added = backend_.audit.add(entry);
  if (!added) {
    log_error("console", "audit-failed error=\"{}\"", added.error().to_string());
    if (status >= 400) return {};
    // The change is made and cannot be taken back; the caller must not take it for an ordinary one.
    return refuse(
        "busy",
        "The change was made, but could not be written to the audit log: " + added.error().to_string(),
        "Free space on the disk of the audit log.");
  }
  if (status < 400)
    log_info("console", "changed user={} origin={} action={} subject={} what=\"{}\"", user, origin,
             call.operation.id, call.request.path, plain_text(audit_summary(entry)));
  if (status == 403)
    log_warning("console", "refused user={} origin={} action={} what=\"{}\"", user, origin, call.operation.id,
                plain_text(audit_summary(entry)));
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
                                .events = backend_.events.range().newest,
                                .certificate_seconds_left = backend_.certificate_seconds_left()};
  return HttpResponse{.content_type = kMetricsType,
                      .body = metrics_text(*numbers, console, backend_.version)};
}

}  // namespace pnfsrdma::console
