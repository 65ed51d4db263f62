// SPDX-License-Identifier: Apache-2.0
// What a server can send a client: COMPOUND results, whole and one at a time.
#include "shared/nfs4/compound.h"
#include "tests/fuzz/round_trip.h"

using namespace pnfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan input(reinterpret_cast<const std::byte*>(data), size);
  check_round_trip<nfs4::CompoundResults>(input);
  if (auto reader = nfs4::CompoundResultReader::open(input)) {
    while (reader->next()) {
    }
    CHECK(!reader->result<nfs4::OpenResponse>().has_value());
  }
  return 0;
}
