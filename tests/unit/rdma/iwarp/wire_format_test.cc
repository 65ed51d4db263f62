// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/wire_format.h"

#include <gtest/gtest.h>

namespace pnfsrdma::rdma::iwarp {
namespace {

// The control words of protocols.md 4.3.
TEST(WireFormat, ControlWordsAreTheSpecifications) {
  std::byte to[kTerminateSizeMax];
  auto control = [&](size_t) { return to_hex({to + 2, 2}); };
  EXPECT_EQ(control(encode_tagged(to, Message::kWrite, true, 1, 2, 0)), "c140");
  EXPECT_EQ(control(encode_tagged(to, Message::kWrite, false, 1, 2, 0)), "8140");
  EXPECT_EQ(control(encode_tagged(to, Message::kReadResponse, true, 1, 2, 0)), "c142");
  EXPECT_EQ(control(encode_read_request(to, 1, {})), "4141");
  EXPECT_EQ(control(encode_untagged(to, Message::kSend, true, 0, 1, 0, 0)), "4143");
  EXPECT_EQ(control(encode_untagged(to, Message::kSendInvalidate, true, 0, 1, 0, 0)), "4144");
  EXPECT_EQ(control(encode_untagged(to, Message::kSendSolicited, true, 0, 1, 0, 0)), "4145");
  EXPECT_EQ(control(encode_untagged(to, Message::kSendSolicitedInvalidate, true, 0, 1, 0, 0)), "4146");
  EXPECT_EQ(control(encode_terminate(to, kCrcError, {})), "4147");
  EXPECT_EQ(control(encode_flush_request(to, 1, {})), "414c");
  EXPECT_EQ(control(encode_untagged(to, Message::kFlushResponse, true, 3, 1, 0, 0)), "414d");
}

TEST(WireFormat, HeaderSizesAreTheSpecifications) {
  std::byte to[kTerminateSizeMax];
  EXPECT_EQ(encode_tagged(to, Message::kWrite, true, 0x01020304, 0x1122334455667788, 5), 16u);
  EXPECT_EQ(to_hex({to, 16}), "0013c140010203041122334455667788");
  EXPECT_EQ(encode_untagged(to, Message::kSend, true, 0, 7, 9, 3), 20u);
  EXPECT_EQ(to_hex({to, 20}),
            "00154143000000000000000000000007"
            "00000009");
  EXPECT_EQ(encode_read_request(to, 2,
                                {.sink_stag = 0xA1,
                                 .sink_offset = 0xB2,
                                 .length = 0xC3,
                                 .source_stag = 0xD4,
                                 .source_offset = 0xE5}),
            48u);
  EXPECT_EQ(to_hex({to, 48}),
            "002e4141000000000000000100000002"
            "00000000000000a1"
            "00000000000000b2000000c3000000d400000000000000e5");
  EXPECT_EQ(encode_flush_request(to, 3, {.stag = 0xA1, .length = 0xB2, .offset = 0xC3, .flags = 1}), 40u);
  EXPECT_EQ(to_hex({to, 40}),
            "0026414c000000000000000100000003"
            "00000000000000a1"
            "000000b200000000000000c300000001");
}

TEST(WireFormat, PaddingMakesFramesMultiplesOfFour) {
  for (size_t length = 0; length < 100; ++length) {
    EXPECT_EQ((2 + length + padding_of(length)) % 4, 0u);
    EXPECT_LT(padding_of(length), 4u);
  }
}

TEST(WireFormat, TerminateQuotesWhatTheSpecificationWants) {
  std::byte request[kReadRequestSize], write[kTaggedHeader], to[kTerminateSizeMax];
  encode_read_request(request, 5, {.length = 1});
  encode_tagged(write, Message::kWrite, true, 0xAB, 0xCD, 100);
  // RDMAP protection error of a Read Request: length, DDP and RDMAP headers.
  size_t size = encode_terminate(to, kReadBounds, request);
  EXPECT_EQ(size, 20u + 4 + 2 + 18 + 28);
  EXPECT_EQ(to_hex({to + 20, 4}), "0101e000");
  // DDP error: length and DDP header.
  size = encode_terminate(to, kTaggedInvalidStag, write);
  EXPECT_EQ(size, 20u + 4 + 2 + 14);
  EXPECT_EQ(to_hex({to + 20, 4}), "1100c000");
  auto received = decode_terminate({to + 20, size - 20});
  EXPECT_EQ(received.code, kTaggedInvalidStag);
  ASSERT_TRUE(received.has_segment);
  EXPECT_EQ(received.segment.stag, 0xABu);
  EXPECT_EQ(received.segment.offset, 0xCDu);
  // LLP errors quote nothing.
  EXPECT_EQ(encode_terminate(to, kCrcError, write), 24u);
  EXPECT_EQ(to_hex({to + 20, 4}), "20020000");
}

TEST(WireFormat, TerminatesAreReadLeniently) {
  for (size_t size = 0; size < 60; ++size) {
    Bytes bytes(size, std::byte{0xFF});
    decode_terminate(bytes);  // any bytes: no crash
  }
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp
