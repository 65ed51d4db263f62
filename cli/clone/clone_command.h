// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

struct CloneOptions {
  std::string source;
  std::string target;  // a file that does not exist, or a directory
  bool force = false;  // or one that does: it is replaced
};

// `pnfsrdma clone`
Outcome<> run_clone(const CloneOptions& options, Output& output);

}  // namespace pnfsrdma::cli
