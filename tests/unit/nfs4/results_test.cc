// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nfs4/round_trip.h"

namespace pnfsrdma::nfs4 {
namespace {

#define PNFSRDMA_OPERATION(Name, number, text, first, last) \
  TEST(Results, Name##ComeBackAsTheyWent) {                 \
    expect_round_trips<Name##Response>(text);               \
  }
PNFSRDMA_NFS4_OPERATIONS(PNFSRDMA_OPERATION)
#undef PNFSRDMA_OPERATION

}  // namespace
}  // namespace pnfsrdma::nfs4
