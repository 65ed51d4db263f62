// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/output.h"
#include "cli/output/prompter.h"

namespace pnfsrdma::cli {

struct RestoreOptions {
  std::string snapshot;
  std::string destination;  // "": what `snapshot` is a snapshot of
  bool dry_run = false;
  bool remove_new = false;
  bool content = false;
  bool yes = false;  // nobody is asked
};

// `pnfsrdma restore`: kDone, kFailed (some of it could not be restored: named), kTrouble (refused, nothing has changed)
// or kInterrupted. With dry_run, as run_diff of the snapshot and the destination.
ExitCode run_restore(const RestoreOptions& options, Prompter& prompter, Output& output);

}  // namespace pnfsrdma::cli
