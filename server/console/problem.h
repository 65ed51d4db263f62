// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/console/http.h"
#include "server/console/inventory.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// The types of problems (RFC 9457), by the last part of their URI. openapi.json has the same table.
struct ProblemType {
  std::string_view name;
  int status;
  std::string_view title;
};
std::span<const ProblemType> problem_types();
// Never null for a name of the table.
const ProblemType* find_problem_type(std::string_view name);

// Why a request was refused: it has changed nothing, unless the detail says otherwise.
struct Problem {
  struct Wrong {
    std::string pointer;  // JSON pointer into the body, or a parameter's name
    std::string detail;
  };
  std::string_view name;  // of a ProblemType
  std::string detail;
  std::string fix;
  std::vector<Wrong> errors;
  std::optional<Holders> holders;
  int retry_after_seconds = 0;

  // What the administration's errors are to a caller.
  static Problem from(const Error& error);
};
template <typename T = void>
using Answer = std::expected<T, Problem>;

inline std::unexpected<Problem> refuse(std::string_view name, std::string detail, std::string fix = {}) {
  return std::unexpected(Problem{.name = name, .detail = std::move(detail), .fix = std::move(fix)});
}

HttpResponse to_response(const Problem& problem);
// Of one that httplib has refused by itself.
Problem problem_of_status(int status);

}  // namespace pnfsrdma::console
