// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>

namespace pnfsrdma::cli {

// What the program ends with; scripts rely on it (README.md).
enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,        // refused or failed; doctor: a problem was found
  kUsage = 2,         // the command line makes no sense
  kUnreachable = 3,   // no answer: not running, wrong address, network
  kNotPermitted = 4,  // not logged in, wrong role, file permissions
  kNotFound = 5,      // no such brick, export, mount...
  kConflict = 6,      // somebody else changed it meanwhile, or it is in use
  kCannotRun = 126,   // pnfsrdma run, as env(1)
  kNoProgram = 127,
  kInterrupted = 130,
};

// Why a command did not do what was asked: for a human, with what to do about it.
struct Failure {
  ExitCode code = ExitCode::kFailed;
  std::string title;   // "The brick still holds data"
  std::string detail;  // may be empty
  std::string fix;     // may be empty; a command or a sentence
};

template <typename T = void>
using Outcome = std::expected<T, Failure>;

inline std::unexpected<Failure> refuse(ExitCode code, std::string title, std::string detail = {},
                                       std::string fix = {}) {
  return std::unexpected<Failure>(Failure{code, std::move(title), std::move(detail), std::move(fix)});
}

}  // namespace pnfsrdma::cli
