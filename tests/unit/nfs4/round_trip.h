// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/doubles/seeded_random.h"
#include "tests/values/equal.h"
#include "tests/values/random_operation.h"

namespace pnfsrdma::nfs4 {

// decode(encode(v)) == v for random values of T; every shorter prefix is refused.
template <typename T>
void expect_round_trips(const char* name) {
  SeededRandom random(std::hash<std::string>()(name));
  for (int i = 0; i < 60; ++i) {
    T value{};
    xdr::randomize(random, value);
    const Bytes bytes = xdr::encode_to_bytes(value);
    const auto decoded = xdr::decode_from<T>(bytes);
    ASSERT_TRUE(decoded.has_value()) << name << " " << to_hex(bytes) << ": " << to_string(decoded.error());
    EXPECT_TRUE(xdr::equal(*decoded, value)) << name << " " << to_hex(bytes);
    EXPECT_EQ(to_hex(xdr::encode_to_bytes(*decoded)), to_hex(bytes)) << name;
    for (size_t size = 0; size < bytes.size(); size += 4) {
      EXPECT_FALSE(xdr::decode_from<T>(ByteSpan(bytes).first(size)).has_value())
          << name << " cut at " << size;
    }
  }
}

}  // namespace pnfsrdma::nfs4
