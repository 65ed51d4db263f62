// SPDX-License-Identifier: Apache-2.0
#include "shared/version/version.h"

namespace pnfsrdma {

// What the server says of itself: here always the same.
const char* version() {
  return "0";
}

}  // namespace pnfsrdma
