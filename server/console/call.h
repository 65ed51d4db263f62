// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/api_document.h"
#include "server/console/caller.h"
#include "server/console/http.h"
#include "server/console/problem.h"

namespace pnfsrdma::console {

struct Backend;

// One request on its way through the API: who asks for what, checked against the document.
struct Call {
  const HttpRequest& request;
  const ApiDocument::Operation& operation;
  Caller caller;
  ApiDocument::Arguments arguments;
  Json before;            // for the audit log: what the change met
  bool replayed = false;  // answered as an earlier request with this Idempotency-Key was: nothing was done

  std::string text(const char* path_parameter) const { return arguments.path.at(path_parameter); }
  uint64_t number(const char* path_parameter) const { return arguments.path.at(path_parameter); }
  std::string query_text(const char* name) const { return arguments.query.value(name, ""); }
  uint64_t query_number(const char* name) const { return arguments.query.value(name, uint64_t{0}); }
  std::string cursor() const { return query_text("cursor"); }
  size_t limit() const { return arguments.query.value("limit", size_t{100}); }
  std::optional<std::string> if_match() const {
    const std::string_view value = request.header("if-match");
    return value.empty() ? std::nullopt : std::optional<std::string>(value);
  }
};

inline HttpResponse ok(const Json& json, int status = 200) {
  return {.status = status, .body = to_text(json)};
}
inline HttpResponse no_content() {
  return {.status = 204};
}
// The loop's answer, or the problem that its error is.
template <typename T>
Answer<T> or_problem(Result<T> result) {
  if (!result) return std::unexpected(Problem::from(result.error()));
  return std::move(*result);
}

}  // namespace pnfsrdma::console
