// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

struct RunOptions {
  std::vector<std::string> words;  // the program and its arguments
  std::string library;             // "": the one that is installed beside this program
  bool statistics = false;
  bool kernel_reads = false;
};

// `pnfsrdma run`. Returns only if the program cannot be started: 127 where there is none, else 126, as env(1).
ExitCode run_program(const RunOptions& options, Output& output);

// Why the file will not load the library, whatever LD_PRELOAD says.
std::optional<std::string> why_not_preloaded(const std::string& path);

}  // namespace pnfsrdma::cli
