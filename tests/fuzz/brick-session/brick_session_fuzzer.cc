// SPDX-License-Identifier: Apache-2.0
// What a client and a brick say to each other on their data connection, and in the private data of its beginning.
#include <algorithm>

#include "shared/base/check.h"
#include "shared/brick/session_codec.h"

using namespace pnfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan input(reinterpret_cast<const std::byte*>(data), size);
  (void)brick::decode_connect(input);
  (void)brick::decode_accept(input);
  const auto message = brick::decode_session_message(input);
  if (!message) return 0;
  Bytes encoded(brick::kSessionMessageMax);
  encoded.resize(brick::encode_session_message(*message, encoded));
  CHECK(ByteSpan(encoded).size() == input.size());
  CHECK(std::equal(encoded.begin(), encoded.end(), input.begin()));
  return 0;
}
