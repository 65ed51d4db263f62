// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/check.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma {

// Whatever decodes has to encode, and what that gives has to decode to a value that encodes to the same
// bytes. The input itself need not come back: it may have bitmap words or attributes that decode to less.
template <typename T>
void check_round_trip(ByteSpan input) {
  const auto value = xdr::decode_prefix<T>(input);
  if (!value) return;
  const Bytes encoded = xdr::encode_to_bytes(*value);
  CHECK(encoded.size() == xdr::encoded_size(*value));
  const auto again = xdr::decode_from<T>(encoded);
  CHECK(again.has_value());
  CHECK(xdr::encode_to_bytes(*again) == encoded);
}

}  // namespace pnfsrdma
