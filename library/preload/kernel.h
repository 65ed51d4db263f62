// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace pnfsrdma::preload {

// A system call of our own: no point of cancellation, no function that is ours, and the program's errno stays. Its
// result, or a negative errno.
template <typename... Arguments>
long kernel(long number, Arguments... arguments) {
  const int before = errno;
  long result = ::syscall(number, arguments...);
  if (result < 0) result = -errno;
  errno = before;
  return result;
}

inline int process() {
  return static_cast<int>(kernel(SYS_getpid));
}

}  // namespace pnfsrdma::preload
