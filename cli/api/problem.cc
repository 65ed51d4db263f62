// SPDX-License-Identifier: Apache-2.0
#include "cli/api/problem.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

ExitCode code_of(int status) {
  switch (status) {
    case 401:
    case 403:
      return ExitCode::kNotPermitted;
    case 404:
    case 410:
      return ExitCode::kNotFound;
    case 409:
    case 412:
    case 428:
      return ExitCode::kConflict;
    case 502:
    case 504:
      return ExitCode::kUnreachable;
    default:
      return ExitCode::kFailed;
  }
}

std::string text(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "errors": which members were refused, and why.
std::string refused_members(const json& problem) {
  std::string all;
  const auto errors = problem.find("errors");
  if (errors == problem.end() || !errors->is_array()) return all;
  for (const json& error : *errors) {
    if (!error.is_object()) continue;
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", text(error, "pointer"), text(error, "detail"));
  }
  return all;
}

}  // namespace

Failure failure_of(int status, std::string_view body) {
  const json problem = json::parse(body, nullptr, false);
  Failure failure{.code = code_of(status)};
  if (!problem.is_object() || text(problem, "title").empty()) {
    failure.title = fmt::format("the answer is HTTP {} without a reason", status);
    failure.fix = "is this the address of a pnfsrdma-mdsd's console?";
    return failure;
  }
  failure.title = text(problem, "title");
  failure.detail = text(problem, "detail");
  failure.fix = text(problem, "fix");
  if (const std::string members = refused_members(problem); !members.empty()) {
    failure.detail += (failure.detail.empty() ? "" : " ") + members;
  }
  return failure;
}

}  // namespace pnfsrdma::cli
