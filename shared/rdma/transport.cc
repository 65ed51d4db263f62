// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma {

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSuccess:
      return "success";
    case Outcome::kFlushed:
      return "flushed";
    case Outcome::kLocalProtection:
      return "local protection";
    case Outcome::kRemoteAccess:
      return "remote access refused";
    case Outcome::kRemoteOperation:
      return "remote operation failed";
    case Outcome::kLengthError:
      return "message too long";
    case Outcome::kConnectionLost:
      return "connection lost";
  }
  return "unknown";
}

}  // namespace pnfsrdma::rdma
