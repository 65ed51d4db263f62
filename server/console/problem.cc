// SPDX-License-Identifier: Apache-2.0
#include "server/console/problem.h"

#include <algorithm>
#include <cerrno>

#include "server/console/json.h"
#include "shared/base/check.h"

namespace pnfsrdma::console {

namespace {

constexpr ProblemType kTypes[] = {
    {"bad-request", 400, "The request cannot be understood"},
    {"not-logged-in", 401, "Log in first"},
    {"wrong-credentials", 401, "User or password is wrong"},
    {"not-permitted", 403, "Not permitted"},
    {"csrf", 403, "The X-CSRF-Token header is missing or wrong"},
    {"not-found", 404, "The resource does not exist"},
    {"method-not-allowed", 405, "The resource does not support this method"},
    {"conflict", 409, "The change conflicts with the current state"},
    {"brick-in-use", 409, "The brick still holds data"},
    {"setup-done", 409, "A password has been set already"},
    {"changed-meanwhile", 412, "It was changed meanwhile"},
    {"too-large", 413, "The request is too large"},
    {"unsupported-media-type", 415, "The body must be application/json"},
    {"invalid", 422, "The request is not valid"},
    {"brick-unreachable", 422, "The brick does not answer"},
    {"precondition-required", 428, "If-Match is missing"},
    {"too-many-requests", 429, "Too many requests"},
    {"busy", 503, "The server did not answer in time"},
};
constexpr int kRetrySeconds = 1;

}  // namespace

std::span<const ProblemType> problem_types() {
  return kTypes;
}

const ProblemType* find_problem_type(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &ProblemType::name);
  return found == std::end(kTypes) ? nullptr : found;
}

Problem Problem::from(const Error& error) {
  switch (error.number()) {
    case ENOENT:
      return {.name = "not-found", .detail = error.what()};
    case EEXIST:
    case EBUSY:
      return {.name = "conflict", .detail = error.what()};
    case EINVAL:
    case ENOTSUP:
      return {.name = "invalid", .detail = error.what()};
    case EHOSTUNREACH:
      return {.name = "brick-unreachable",
              .detail = error.what(),
              .fix = "Check that pnfsrdma-brickd runs there and that its control address is this one."};
    case ETIMEDOUT:
    case EAGAIN:
      return {.name = "busy", .detail = error.what(), .retry_after_seconds = kRetrySeconds};
    default:
      return {.name = "busy",
              .detail = error.to_string(),
              .fix = "See the server's log.",
              .retry_after_seconds = kRetrySeconds};
  }
}

Problem problem_of_status(int status) {
  switch (status) {
    case 413:
    case 414:
      return {.name = "too-large", .detail = "Path or body is longer than this server accepts."};
    case 415:
      return {.name = "unsupported-media-type",
              .detail = "Bodies are JSON, not compressed.",
              .fix = "Send Content-Type: application/json."};
    case 500:
      return {
          .name = "busy", .detail = "The server failed to answer this.", .fix = "See its log and report it."};
    default:
      return {.name = "bad-request", .detail = "This is not HTTP/1.1 as this server understands it."};
  }
}

HttpResponse to_response(const Problem& problem) {
  const ProblemType* type = find_problem_type(problem.name);
  CHECK(type != nullptr);
  Json json{{"type", "/api/v1/problems/" + std::string(type->name)},
            {"title", type->title},
            {"status", type->status}};
  if (!problem.detail.empty()) json["detail"] = problem.detail;
  if (!problem.fix.empty()) json["fix"] = problem.fix;
  for (const Problem::Wrong& wrong : problem.errors) {
    json["errors"].push_back({{"pointer", wrong.pointer}, {"detail", wrong.detail}});
  }
  if (problem.holders) {
    json["holders"] = {{"files", problem.holders->files},
                       {"bytes", problem.holders->bytes},
                       {"exports", problem.holders->exports}};
  }
  HttpResponse response{
      .status = type->status, .content_type = "application/problem+json", .body = to_text(json)};
  if (type->status == 401) response.with("WWW-Authenticate", "Bearer realm=\"pnfsrdma\"");
  if (type->status == 429 || type->status == 503)
    response.with("Retry-After", std::to_string(std::max(problem.retry_after_seconds, kRetrySeconds)));
  return response;
}

}  // namespace pnfsrdma::console
