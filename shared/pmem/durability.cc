// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/persistence.h"

namespace pnfsrdma::pmem {

std::string_view to_string(Durability durability) {
  switch (durability) {
    case Durability::kVolatile:
      return "volatile";
    case Durability::kProcess:
      return "process";
    case Durability::kPower:
      return "power";
  }
  return "unknown";
}

}  // namespace pnfsrdma::pmem
