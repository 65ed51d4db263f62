// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma {

// malloc(3) for a program whose turns are to be short, whatever it holds. First thing in main(), before other threads.
void set_heap_for_short_turns();

}  // namespace pnfsrdma
