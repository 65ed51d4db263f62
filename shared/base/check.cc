// SPDX-License-Identifier: Apache-2.0
#include "shared/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace pnfsrdma {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", file, line, condition);
  std::abort();
}

}  // namespace pnfsrdma
