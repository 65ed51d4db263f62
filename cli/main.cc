// SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <csignal>

#include "cli/command/application.h"

int main(int count, char** arguments) {
  // For the width of characters only: numbers look the same everywhere.
  (void)std::setlocale(LC_CTYPE, "C.UTF-8");
  (void)std::signal(SIGPIPE, SIG_DFL);  // pnfsrdma ... | head ends quietly
  return pnfsrdma::cli::run_application(count, arguments);
}
