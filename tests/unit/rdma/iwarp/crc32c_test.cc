// SPDX-License-Identifier: Apache-2.0
#include "shared/base/crc32c.h"

#include <gtest/gtest.h>

#include "shared/base/random.h"
#include "shared/rdma/iwarp/wire_format.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

TEST(Crc32c, KnowsTheCheckValue) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c_by_table(as_bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, KnowsTheFpduOfTheMpaSpecification) {
  // A Send of 24 zero bytes, MSN 1, without markers; protocols.md 4.1.
  Bytes frame(kUntaggedHeader + 24);
  encode_untagged(frame.data(), Message::kSend, true, kSendQueue, 1, 0, 24);
  EXPECT_EQ(to_hex(ByteSpan(frame).first(kUntaggedHeader)), "002a414300000000000000000000000100000000");
  EXPECT_EQ(crc32c(frame), 0xC33E24B7u);  // on the wire b7 24 3e c3
}

TEST(Crc32c, KnowsTheMarkedFpdusOfTheMpaSpecification) {
  Bytes first(4 + kUntaggedHeader + 24);  // a zero marker in front
  encode_untagged(first.data() + 4, Message::kSend, true, kSendQueue, 1, 0, 24);
  EXPECT_EQ(crc32c(first), 0x83992352u);  // 52 23 99 83
  // MSN 2, with a marker pointing 0x14 bytes back in the middle.
  Bytes second(kUntaggedHeader);
  encode_untagged(second.data(), Message::kSend, true, kSendQueue, 2, 0, 24);
  for (int b : {0, 0, 0, 0x14}) second.push_back(static_cast<std::byte>(b));
  second.resize(second.size() + 24);
  EXPECT_EQ(crc32c(second), 0x98589284u);  // 84 92 58 98
}

TEST(Crc32c, InstructionAndTableAgreeAtEveryLengthAndAlignment) {
  Bytes bytes(20000);
  SeededRandom(1).fill(bytes);
  for (size_t length = 0; length < 1200; ++length) {
    ByteSpan part = ByteSpan(bytes).subspan(length % 17, length);
    ASSERT_EQ(crc32c(part, 77), crc32c_by_table(part, 77)) << length;
  }
  for (size_t length = 6000; length < 19000; length += 997) {
    ASSERT_EQ(crc32c(ByteSpan(bytes).first(length)), crc32c_by_table(ByteSpan(bytes).first(length)))
        << length;
  }
}

TEST(Crc32c, PiecesGiveTheSameAsTheWhole) {
  Bytes bytes(9000);
  SeededRandom(2).fill(bytes);
  for (size_t cut : {0, 1, 7, 4096, 8999, 9000}) {
    EXPECT_EQ(crc32c(ByteSpan(bytes).subspan(cut), crc32c(ByteSpan(bytes).first(cut))), crc32c(bytes));
  }
}

TEST(Crc32c, OfTwoPiecesIsJoinedFromTheirSums) {
  SeededRandom random(3);
  Bytes bytes(10'000);
  random.fill(bytes);
  for (const size_t at : {size_t{0}, size_t{1}, size_t{7}, size_t{4096}, size_t{9'999}, bytes.size()}) {
    const ByteSpan front = ByteSpan(bytes).first(at), back = ByteSpan(bytes).subspan(at);
    EXPECT_EQ(crc32c_joined(crc32c(front), crc32c(back), back.size()), crc32c(bytes)) << at;
  }
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp
