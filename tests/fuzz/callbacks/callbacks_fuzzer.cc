// SPDX-License-Identifier: Apache-2.0
// CB_COMPOUND in both directions. The first byte says which.
#include "shared/nfs4/compound.h"
#include "tests/fuzz/round_trip.h"

using namespace pnfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteSpan input(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    check_round_trip<nfs4::CallbackCompoundArguments>(input);
    if (auto reader = nfs4::CallbackCompoundReader::open(input)) {
      while (reader->left() > 0) (void)reader->next();
    }
  } else {
    check_round_trip<nfs4::CallbackCompoundResults>(input);
    if (auto reader = nfs4::CallbackResultReader::open(input)) {
      while (reader->next()) {
      }
    }
  }
  return 0;
}
