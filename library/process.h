// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pnfsrdma::library {

// How often this process's ancestors have forked since the library was first used: another number than the one a
// connection was made at means that it is a parent's.
uint64_t forks_before();

// umask(2) without changing it.
mode_t process_umask();

}  // namespace pnfsrdma::library
