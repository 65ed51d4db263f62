// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/result.h"

namespace pnfsrdma::library {

// Remembers why this thread's call failed; returns the negative errno for it.
int failed(const Error& error);
// What it remembers: "" at first. Valid until the thread's next failure.
const char* last_error();
// The errno that a program understands of a file.
int to_number(const Error& error);

}  // namespace pnfsrdma::library
