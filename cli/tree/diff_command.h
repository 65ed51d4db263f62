// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

// As of diff(1): what the commands of this folder end with, besides kDone.
inline constexpr ExitCode kDifferent = ExitCode::kFailed;
inline constexpr ExitCode kTrouble = ExitCode::kUsage;

struct DiffOptions {
  std::string before;
  std::string after;
  bool content = false;  // bytes are compared where the inode or its change time differs
};

// `pnfsrdma diff`: kDone (the same), kDifferent or kTrouble.
ExitCode run_diff(const DiffOptions& options, Output& output);

}  // namespace pnfsrdma::cli
