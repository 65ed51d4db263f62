// SPDX-License-Identifier: Apache-2.0
#include "shared/base/heap_settings.h"

#include <malloc.h>

namespace pnfsrdma {

void set_heap_for_short_turns() {
  // The replies of one turn are a few megabytes, freed together. By default malloc gives them back to the kernel each
  // time, and each reply of the next turn begins with page faults: a quarter of the time of a READDIR. What a burst
  // leaves is still given back (HeapTrimmer).
  constexpr int kKept = 8 << 20;
  constexpr int kMapped = 4 << 20;  // set as well: setting one of them ends malloc's own adjusting of both
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kMapped);
  // Small pieces are joined with their neighbours as they are freed. By default all of them wait for the next large
  // piece that is freed, or asked for: with 100,000 layouts that went one by one a turn of 25 ms.
  mallopt(M_MXFAST, 0);
}

}  // namespace pnfsrdma
