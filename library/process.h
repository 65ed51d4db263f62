// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pnfsrdma::library {

// How often this process's ancestors have forked since the library was first used: another number than the one a
// connection was made at means that it is a parent's.
uint64_t forks_before();

// Nothing is logged before the program has said where to: each way to connect says the first, pnfsrdma_set_log() the
// second. What is said first stays.
void keep_quiet();
void let_log();

// umask(2) without changing it.
mode_t process_umask();

}  // namespace pnfsrdma::library
