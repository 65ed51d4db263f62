// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/header.h"

#include <gtest/gtest.h>

#include "shared/base/random.h"
#include "shared/rpc_rdma/limits.h"
#include "shared/rpc_rdma/private_data.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::rpc_rdma {
namespace {

uint32_t number_below(Random& random, uint32_t bound) {
  std::byte bytes[4];
  random.fill(bytes);
  return load_big_endian<uint32_t>(bytes) % bound;
}

Segment random_segment(Random& random) {
  return {number_below(random, UINT32_MAX), number_below(random, UINT32_MAX),
          uint64_t{number_below(random, UINT32_MAX)} << 20};
}

ChunkLists random_lists(Random& random) {
  ChunkLists lists;
  const auto chunk = [&] {
    WriteChunk made(number_below(random, 5));
    for (Segment& segment : made) segment = random_segment(random);
    return made;
  };
  for (uint32_t left = number_below(random, 8); left > 0; --left) {
    lists.reads.push_back({number_below(random, 4096), random_segment(random)});
  }
  for (uint32_t left = number_below(random, 4); left > 0; --left) lists.writes.push_back(chunk());
  if (number_below(random, 2) == 1) lists.reply = chunk();
  return lists;
}

TEST(TransportHeader, WhatIsEncodedIsDecoded) {
  SeededRandom random(8166);
  for (int i = 0; i < 500; ++i) {
    const ChunkLists lists = random_lists(random);
    const FixedHeader header{number_below(random, UINT32_MAX), 1, 32, Procedure::kNoMessage};
    Bytes bytes;
    xdr::Encoder encoder(bytes);
    encode(encoder, header);
    encode(encoder, lists);
    EXPECT_EQ(bytes.size(), kFixedHeaderSize + encoded_size(lists));
    xdr::Decoder decoder(bytes);
    FixedHeader header_back;
    ChunkLists lists_back;
    ASSERT_TRUE(decode_fixed(decoder, header_back));
    ASSERT_TRUE(decode_lists(decoder, lists_back));
    EXPECT_EQ(decoder.remaining(), 0U);
    EXPECT_EQ(header_back, header);
    EXPECT_EQ(lists_back, lists);
    // Every shorter prefix is refused, and nothing beyond it is read (the sanitizer looks).
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
      xdr::Decoder shorter(cut);
      EXPECT_FALSE(decode_fixed(shorter, header_back) && decode_lists(shorter, lists_back));
    }
  }
}

TEST(TransportHeader, NoChunksAreThreeZeroWords) {
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  encode(encoder, FixedHeader{0x01020304, 1, 7, Procedure::kMessage});
  encode(encoder, ChunkLists{});
  EXPECT_EQ(to_hex(bytes), "01020304000000010000000700000000000000000000000000000000");
  EXPECT_EQ(bytes.size(), kHeaderSizeMin);
}

TEST(TransportHeader, AReadChunkIsWhereTheRfcHasIt) {
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  ChunkLists lists;
  lists.reads.push_back({.position = 0x5c, .target = {0xaabbccdd, 0x1000, 0x1122334455667788}});
  encode(encoder, lists);
  EXPECT_EQ(to_hex(bytes), "000000010000005caabbccdd000010001122334455667788000000000000000000000000");
}

TEST(TransportHeader, MoreSegmentsThanAllowedAreRefused) {
  ChunkLists lists;
  lists.reads.resize(kSegmentsMax + 1);
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  encode(encoder, lists);
  xdr::Decoder decoder(bytes);
  ChunkLists back;
  EXPECT_FALSE(decode_lists(decoder, back));
  EXPECT_EQ(decoder.error(), xdr::DecodeError::kBound);
}

TEST(TransportHeader, AnAnnouncedCountAllocatesNothing) {
  // A write chunk of four thousand million segments, in 12 bytes.
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  encoder.put_u32(0);
  encoder.put_u32(1);
  encoder.put_u32(UINT32_MAX);
  xdr::Decoder decoder(bytes);
  ChunkLists back;
  EXPECT_FALSE(decode_lists(decoder, back));
}

TEST(TransportHeader, ErrorsAreDecoded) {
  for (const ErrorBody& error : {ErrorBody{ErrorCode::kVersion, 1, 2}, ErrorBody{ErrorCode::kChunk, 0, 0}}) {
    Bytes bytes;
    xdr::Encoder encoder(bytes);
    encode(encoder, error);
    xdr::Decoder decoder(bytes);
    ErrorBody back;
    ASSERT_TRUE(decode_error(decoder, back));
    EXPECT_EQ(back, error);
  }
}

TEST(PrivateData, BothEndsAgreeOnTheSmallerThreshold) {
  const Bytes ours = our_private_data();
  EXPECT_EQ(to_hex(ours), "f6ab0e1801000303");
  EXPECT_EQ(agree(ours), (Thresholds{4096, 4096}));
  Bytes theirs = ours;
  theirs[6] = std::byte{1};     // sends 2 KiB
  theirs[7] = std::byte{0xff};  // takes 256 KiB
  EXPECT_EQ(agree(theirs), (Thresholds{.send = 4096, .receive = 2048}));
}

TEST(PrivateData, IsFoundBehindWhatOthersPutInFront) {
  Bytes data(5, std::byte{0xf6});
  const Bytes ours = our_private_data();
  data.insert(data.end(), ours.begin(), ours.end());
  data.resize(data.size() + 40);
  EXPECT_EQ(agree(data), (Thresholds{4096, 4096}));
}

TEST(PrivateData, NoneOrAnotherVersionMeansTheDefault) {
  const Thresholds standard{kInlineThresholdDefault, kInlineThresholdDefault};
  EXPECT_EQ(agree({}), standard);
  Bytes data = our_private_data();
  data[4] = std::byte{2};
  EXPECT_EQ(agree(data), standard);
  data.pop_back();
  data[4] = std::byte{1};
  EXPECT_EQ(agree(data), standard);
}

}  // namespace
}  // namespace pnfsrdma::rpc_rdma
