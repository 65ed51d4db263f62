// SPDX-License-Identifier: Apache-2.0
#include "cli/api/problem.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output/json_member.h"
#include "cli/output/units.h"

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

// "errors": which members were refused, and why. One alone is what "detail" says already.
std::string refused_members(const json& problem) {
  std::string all;
  const auto errors = problem.find("errors");
  if (errors == problem.end() || !errors->is_array()) return all;
  if (errors->size() == 1 && !text(problem, "detail").empty()) return all;
  for (const json& error : *errors) {
    if (!error.is_object()) continue;
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", text(error, "pointer"), text(error, "detail"));
  }
  return all;
}

// "holders": who keeps a brick from being removed.
std::string holders_of(const json& problem) {
  const auto holders = problem.find("holders");
  if (holders == problem.end() || !holders->is_object()) return {};
  std::string exports;
  for (const json& path : holders->value("exports", json::array())) {
    if (path.is_string()) exports += (exports.empty() ? "" : ", ") + path.get<std::string>();
  }
  return fmt::format(" ({} files, {}{})", number_at(*holders, "/files"),
                     bytes_text(static_cast<double>(number_at(*holders, "/bytes"))),
                     exports.empty() ? "" : ", exported as " + exports);
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
  failure.detail += holders_of(problem);
  failure.fix = text(problem, "fix");
  if (const std::string members = refused_members(problem); !members.empty()) {
    failure.detail += (failure.detail.empty() ? "" : " ") + members;
  }
  return failure;
}

}  // namespace pnfsrdma::cli
