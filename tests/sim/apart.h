// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

namespace pnfsrdma::sim {

// What `run` returns, in a process of its own with so many seconds of processor time: a failure ends that. A signal
// that has ended it is told with the seed.
template <typename Run>
std::optional<std::invoke_result_t<Run>> run_apart(uint64_t seed, rlim_t processor_seconds, const Run& run) {
  using Totals = std::invoke_result_t<Run>;
  static_assert(std::is_trivially_copyable_v<Totals>);
  int pipes[2];
  if (pipe(pipes) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{processor_seconds, processor_seconds};
    setrlimit(RLIMIT_CPU, &limit);
    const Totals totals = run();
    (void)!write(pipes[1], &totals, sizeof totals);
    _exit(0);
  }
  close(pipes[1]);
  Totals totals;
  const bool told = read(pipes[0], &totals, sizeof totals) == sizeof totals;
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    std::fprintf(stderr, "seed %llu: signal %d\n", static_cast<unsigned long long>(seed), WTERMSIG(status));
  if (!told || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return totals;
}

}  // namespace pnfsrdma::sim
