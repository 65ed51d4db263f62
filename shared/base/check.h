// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma {

// Prints the failed condition and its place to stderr and aborts. Never returns.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace pnfsrdma

// An invariant of our own code. On in every build. Input from a peer, a file or a user never reaches one:
// that is a Status or an Error.
#define CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::pnfsrdma::check_failed(#condition, __FILE__, __LINE__))
