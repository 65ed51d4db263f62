// SPDX-License-Identifier: Apache-2.0
#include "library/process.h"

#include <pthread.h>

#include <atomic>
#include <charconv>
#include <fstream>
#include <string>

#include "shared/base/log.h"

namespace pnfsrdma::library {
namespace {

std::atomic<uint64_t> forks = 0;

void decide_on_log(bool quiet) {
  static const bool decided = [quiet] {
    if (quiet) set_log_level(LogLevel::kOff);
    return true;
  }();
  (void)decided;
}

}  // namespace

uint64_t forks_before() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
    ++forks;
    // Somebody may have been writing to it: its locks are held for ever.
    set_log_level(LogLevel::kOff);
  });
  (void)registered;
  return forks;
}

void keep_quiet() {
  decide_on_log(true);
}

void let_log() {
  decide_on_log(false);
}

// proc(5); umask(2) would have to change it to tell it.
mode_t process_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Umask:")) continue;
    const size_t digit = line.find_first_of("01234567");
    mode_t mask = 0;
    if (digit != std::string::npos) std::from_chars(line.data() + digit, line.data() + line.size(), mask, 8);
    return mask;
  }
  return 022;
}

}  // namespace pnfsrdma::library
