// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/output/output.h"

namespace pnfsrdma::cli {

// What the commands share while the command line is read. The chosen command leaves its work in `action`,
// which main() runs when the whole line made sense.
struct Context {
  Output& output;
  std::function<ExitCode()> action;

  // A command whose work says how it went.
  void does(std::function<Outcome<>()> work) {
    action = [this, work = std::move(work)] {
      const Outcome<> outcome = work();
      return outcome ? ExitCode::kDone : output.complain(outcome.error());
    };
  }
};

}  // namespace pnfsrdma::cli
