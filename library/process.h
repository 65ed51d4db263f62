// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>

namespace pnfsrdma::library {

// How often this process's ancestors have forked since the library was first used: another number than the one a
// connection was made at means that it is a parent's.
uint64_t forks_before();

// umask(2) without changing it.
mode_t process_umask();

// Threads that are started in its scope leave all signals to the program's own.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace pnfsrdma::library
