// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/private_data.h"

#include <gtest/gtest.h>

namespace pnfsrdma::rdma::verbs {
namespace {

Bytes of(std::string_view text) {
  const ByteSpan bytes = as_bytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

TEST(PrivateData, SurvivesThePaddingOfTheConnectionManager) {
  Bytes wire = encode_private_data({.prefixed = true, .native_flush = true, .user = of("ticket")});
  wire.resize(kRequestPrivateDataMax);
  const PrivateData data = decode_private_data(wire);
  EXPECT_TRUE(data.prefixed);
  EXPECT_TRUE(data.native_flush);
  EXPECT_EQ(data.user, of("ticket"));
}

TEST(PrivateData, CarriesEachOperationByItself) {
  for (const bool atomic_write : {false, true}) {
    const Bytes wire = encode_private_data(
        {.prefixed = true, .native_flush = !atomic_write, .atomic_write = atomic_write, .user = {}});
    const PrivateData data = decode_private_data(wire);
    EXPECT_EQ(data.native_flush, !atomic_write);
    EXPECT_EQ(data.atomic_write, atomic_write);
  }
}

TEST(PrivateData, OfALaterVersionOffersWhatIsKnownHere) {
  Bytes wire = encode_private_data({.prefixed = true, .native_flush = true, .user = of("abc")});
  wire[2] |= std::byte{0xF8};
  const PrivateData data = decode_private_data(wire);
  EXPECT_TRUE(data.native_flush);
  EXPECT_FALSE(data.atomic_write);
  EXPECT_EQ(data.user, of("abc"));
}

TEST(PrivateData, FillsTheRequestToItsLastByte) {
  const Bytes user(kUserPrivateDataMax, std::byte{0x5A});
  const Bytes wire = encode_private_data({.prefixed = true, .user = user});
  EXPECT_EQ(wire.size(), kRequestPrivateDataMax);
  const PrivateData data = decode_private_data(wire);
  EXPECT_FALSE(data.native_flush);
  EXPECT_EQ(data.user, user);
}

TEST(PrivateData, OfAForeignPeerIsLeftAsItIs) {
  const Bytes foreign = of("anything else");
  EXPECT_EQ(encode_private_data({.prefixed = false, .user = foreign}), foreign);
  const PrivateData data = decode_private_data(foreign);
  EXPECT_FALSE(data.prefixed);
  EXPECT_FALSE(data.native_flush);
  EXPECT_EQ(data.user, foreign);
  EXPECT_TRUE(decode_private_data({}).user.empty());
}

TEST(PrivateData, WhoseLengthRunsPastItsEndIsForeign) {
  Bytes wire = encode_private_data({.prefixed = true, .native_flush = true, .user = of("abc")});
  wire[3] = std::byte{4};
  const PrivateData data = decode_private_data(wire);
  EXPECT_FALSE(data.prefixed);
  EXPECT_FALSE(data.native_flush);
  EXPECT_EQ(data.user, wire);
}

}  // namespace
}  // namespace pnfsrdma::rdma::verbs
