// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/nfs4/round_trip.h"

namespace pnfsrdma::nfs4 {
namespace {

#define PNFSRDMA_OPERATION(Name, number, text, first, last) \
  TEST(Callbacks, Name##ComesBackAsItWent) {                \
    expect_round_trips<Name##Arguments>(text " arguments"); \
    expect_round_trips<Name##Response>(text " results");    \
  }
PNFSRDMA_NFS4_CALLBACKS(PNFSRDMA_OPERATION)
#undef PNFSRDMA_OPERATION

}  // namespace
}  // namespace pnfsrdma::nfs4
