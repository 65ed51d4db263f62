// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/status.h"

namespace pnfsrdma::nfs4 {

const char* to_string(Status status) {
  switch (status) {
#define PNFSRDMA_STATUS(enumerator, name, number) \
  case Status::enumerator:                        \
    return name;
    PNFSRDMA_NFS4_STATUSES(PNFSRDMA_STATUS)
#undef PNFSRDMA_STATUS
  }
  return "NFS4ERR_UNKNOWN";
}

}  // namespace pnfsrdma::nfs4
