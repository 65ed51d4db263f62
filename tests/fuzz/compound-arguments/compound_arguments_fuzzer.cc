// SPDX-License-Identifier: Apache-2.0
// What a client can send a server: COMPOUND arguments, whole and one operation at a time.
#include "shared/nfs4/compound.h"
#include "tests/fuzz/round_trip.h"

using namespace pnfsrdma;

namespace {

// The reader may never hand out more operations than were announced, and stops at the first bad one.
void read_one_by_one(ByteSpan input) {
  auto reader = nfs4::CompoundReader::open(input);
  if (!reader) return;
  for (uint32_t taken = 0; reader->left() > 0; ++taken) {
    CHECK(taken < reader->operation_count());
    const auto item = reader->next();
    if (item.arguments) {
      CHECK(nfs4::operation_of(*item.arguments) == item.operation);
    } else {
      CHECK(reader->left() == 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan input(reinterpret_cast<const std::byte*>(data), size);
  read_one_by_one(input);
  check_round_trip<nfs4::CompoundArguments>(input);
  return 0;
}
