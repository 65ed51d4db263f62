// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/message.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc {
namespace {

CallHeader a_call() {
  CallHeader header{7, 100003, 4, 1, to_opaque(AuthSys{1, "host", 1000, 100, {4, 24}}), {}};
  return header;
}

TEST(CallHeader, HasTheBytesOfTheRfc) {
  EXPECT_EQ(to_hex(xdr::encode_to_bytes(CallHeader{7, 100003, 4, 1, {}, {}})),
            "0000000700000000000000020001"
            "86a300000004000000010000000000000000"
            "0000000000000000");
}

TEST(CallHeader, CarriesAuthSys) {
  const Bytes bytes = xdr::encode_to_bytes(a_call());
  xdr::Decoder decoder(bytes);
  const auto header = decode_call(decoder);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(decoder.remaining(), 0u);
  const auto credential = to_auth_sys(header->credential);
  ASSERT_TRUE(credential.has_value());
  EXPECT_EQ(credential->uid, 1000u);
  EXPECT_EQ(credential->gids, (xdr::List<uint32_t, 16>{4, 24}));
  EXPECT_EQ(credential->machine_name, "host");
}

TEST(CallHeader, OtherFlavoursStayOpaqueAndMalformedAuthSysIsNone) {
  EXPECT_FALSE(to_auth_sys({AuthFlavor::kGss, {}}).has_value());
  OpaqueAuth bad = to_opaque(AuthSys{});
  bad.body.push_back(std::byte{0});
  EXPECT_FALSE(to_auth_sys(bad).has_value());
  AuthSys crowd;
  crowd.gids.resize(16);
  OpaqueAuth seventeen = to_opaque(crowd);
  store_big_endian(seventeen.body.data() + 16, uint32_t{17});
  seventeen.body.resize(seventeen.body.size() + 4);
  EXPECT_FALSE(to_auth_sys(seventeen).has_value());
}

TEST(DecodeCall, AnotherRpcVersionIsRpcMismatch) {
  Bytes bytes = xdr::encode_to_bytes(a_call());
  store_big_endian(bytes.data() + 8, uint32_t{3});
  xdr::Decoder decoder(bytes);
  const auto header = decode_call(decoder);
  ASSERT_FALSE(header.has_value());
  ASSERT_TRUE(header.error().reply.has_value());
  EXPECT_EQ(to_hex(xdr::encode_to_bytes(*header.error().reply)),
            "0000000700000001000000010000000000000002"
            "00000002");
}

TEST(DecodeCall, ACredentialThatIsTooLongIsAuthError) {
  Bytes bytes = xdr::encode_to_bytes(a_call());
  store_big_endian(bytes.data() + 28, uint32_t{401});
  xdr::Decoder decoder(bytes);
  const auto header = decode_call(decoder);
  ASSERT_FALSE(header.has_value());
  ASSERT_TRUE(header.error().reply.has_value());
  EXPECT_EQ(header.error().reply->to_error().number(), EACCES);
}

TEST(DecodeCall, WhatIsNoCallHasNoReply) {
  const Bytes reply = xdr::encode_to_bytes(ReplyHeader::success(1));
  xdr::Decoder reply_decoder(reply);
  EXPECT_FALSE(decode_call(reply_decoder).error().reply.has_value());
  xdr::Decoder empty(ByteSpan{});
  EXPECT_FALSE(decode_call(empty).error().reply.has_value());
}

TEST(ReplyHeader, EveryOutcomeComesBackAsItWent) {
  const std::pair<ReplyHeader, int> cases[] = {
      {ReplyHeader::success(1), 0},
      {ReplyHeader::refusal(2, AcceptStatus::kProgramUnavailable), EPROTONOSUPPORT},
      {ReplyHeader::program_mismatch(3, {4, 4}), EPROTONOSUPPORT},
      {ReplyHeader::refusal(4, AcceptStatus::kProcedureUnavailable), EOPNOTSUPP},
      {ReplyHeader::refusal(5, AcceptStatus::kGarbageArguments), EBADMSG},
      {ReplyHeader::refusal(6, AcceptStatus::kSystemError), EIO},
      {ReplyHeader::rpc_mismatch(7), EPROTONOSUPPORT},
      {ReplyHeader::auth_error(8, AuthStatus::kTooWeak), EACCES},
      {ReplyHeader::auth_error(9, AuthStatus::kGssContextProblem), EACCES},
  };
  for (const auto& [header, number] : cases) {
    const Bytes bytes = xdr::encode_to_bytes(header);
    const auto decoded = xdr::decode_from<ReplyHeader>(bytes);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->xid, header.xid);
    EXPECT_EQ(xdr::encode_to_bytes(*decoded), bytes);
    EXPECT_EQ(decoded->successful(), number == 0);
    if (number != 0) {
      EXPECT_EQ(decoded->to_error().number(), number);
    }
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(xdr::decode_from<ReplyHeader>(ByteSpan(bytes).first(size)).has_value());
    }
  }
}

TEST(ReplyHeader, UnknownStatusesAreRefused) {
  Bytes bytes = xdr::encode_to_bytes(ReplyHeader::success(1));
  store_big_endian(bytes.data() + bytes.size() - 4, uint32_t{6});
  EXPECT_FALSE(xdr::decode_from<ReplyHeader>(bytes).has_value());
  bytes = xdr::encode_to_bytes(ReplyHeader::auth_error(1, AuthStatus::kFailed));
  store_big_endian(bytes.data() + bytes.size() - 4, uint32_t{15});
  EXPECT_FALSE(xdr::decode_from<ReplyHeader>(bytes).has_value());
}

}  // namespace
}  // namespace pnfsrdma::rpc
