// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/attributes.h"

#include <gtest/gtest.h>

#include "shared/xdr/codec.h"

namespace pnfsrdma::nfs4 {
namespace {

Bytes fattr(const Bitmap& mask, ByteSpan values) {
  Bytes bytes;
  xdr::Encoder encoder(bytes);
  xdr::encode(encoder, mask);
  encoder.put_opaque(values);
  return bytes;
}

TEST(Attributes, StandInTheOrderOfTheirNumbers) {
  Attributes attributes;
  attributes.mode = 0755;
  attributes.type = FileType::kDirectory;
  attributes.xattr_support = true;
  EXPECT_EQ(to_hex(xdr::encode_to_bytes(attributes)),
            "00000003000000020000000200040000"  // bits 1, 33, 82
            "0000000c00000002000001ed00000001");
}

// draft-ietf-nfsv4-posix-acls and RFC 8275 in bytes.
TEST(Attributes, AclsAndTheUmask) {
  Attributes attributes;
  attributes.mode_umask = {.mode = 0666, .umask = 022};
  attributes.acl_true_form = AclModel::kPosixDraft;
  attributes.acl_true_form_scope = AclScope::kFileSystem;
  attributes.posix_default_acl.emplace();
  attributes.posix_access_acl = {{PosixAceTag::kUserObject, 6, ""}, {PosixAceTag::kUser, 4, "7"}};
  EXPECT_EQ(to_hex(xdr::encode_to_bytes(attributes)),
            "0000000300000000000000001e020000"  // bits 81, 89 to 92
            "00000034"
            "000001b600000012"
            "00000002"
            "00000002"
            "00000000"
            "00000002"
            "000000010000000600000000"
            "00000002000000040000000137000000");
  const auto again = xdr::decode_from<Attributes>(xdr::encode_to_bytes(attributes));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, attributes);
  Bytes unknown_tag = xdr::encode_to_bytes(attributes);
  unknown_tag[unknown_tag.size() - 13] = std::byte{7};
  EXPECT_FALSE(xdr::decode_from<Attributes>(unknown_tag));
}

// RFC 9754, 3.1 and 5.2, in bytes.
TEST(Attributes, TimesOfADelegationAndWhatOpenUnderstands) {
  Attributes attributes;
  attributes.time_delegated_access = Time{1, 2};
  attributes.time_delegated_modify = Time{3, 4};
  attributes.open_arguments = OpenSupport{.share_access = Bitmap::of(1U, 2U, 3U),
                                          .share_access_want = Bitmap::of(20U, 21U),
                                          .open_claim = Bitmap::of(0U)};
  EXPECT_EQ(to_hex(xdr::encode_to_bytes(attributes)),
            "00000003000000000000000000700000"  // bits 84 to 86
            "00000038"
            "000000000000000100000002"
            "000000000000000300000004"
            "000000010000000e"
            "00000000"
            "0000000100300000"
            "0000000100000001"
            "00000000");
  const auto again = xdr::decode_from<Attributes>(xdr::encode_to_bytes(attributes));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, attributes);
}

TEST(Attributes, OneOutsideTheTableIsReportedAndNothingElseIsTaken) {
  Bitmap mask = Bitmap::of(Attribute::kMode);
  mask.set(12u);  // acl
  const Bytes bytes = fattr(mask, Bytes(8));
  const auto decoded = xdr::decode_from<Attributes>(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_TRUE(decoded->unsupported);
  EXPECT_FALSE(decoded->mode.has_value());
}

TEST(Attributes, ValuesHaveToFillTheirSpaceExactly) {
  const Bitmap mask = Bitmap::of(Attribute::kMode);
  EXPECT_TRUE(xdr::decode_from<Attributes>(fattr(mask, Bytes(4))).has_value());
  EXPECT_FALSE(xdr::decode_from<Attributes>(fattr(mask, Bytes(8))).has_value());
  EXPECT_FALSE(xdr::decode_from<Attributes>(fattr(mask, Bytes())).has_value());
  EXPECT_FALSE(xdr::decode_from<Attributes>(fattr(Bitmap(), Bytes(4))).has_value());
}

TEST(Attributes, KeepOnlyForgetsTheRest) {
  Attributes attributes;
  attributes.mode = 0755;
  attributes.size = 5;
  attributes.keep_only(Bitmap::of(Attribute::kSize));
  EXPECT_FALSE(attributes.mode.has_value());
  EXPECT_EQ(attributes.mask(), Bitmap::of(Attribute::kSize));
}

TEST(Attributes, TheTableIsInWireOrderAndNamed) {
  int previous = -1;
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  EXPECT_GT(number, previous) << #member;                    \
  previous = number;
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  EXPECT_STREQ(name_of(Attribute::kSize), "size");
  EXPECT_EQ(name_of(static_cast<Attribute>(12)), nullptr);
}

TEST(Bitmap, WordsBeyondTheLastCountAsZero) {
  Bitmap bitmap{1, 0, 0};
  EXPECT_EQ(bitmap, Bitmap{1});
  EXPECT_FALSE(bitmap.test(95u));
  EXPECT_FALSE(bitmap.test(4000u));
  bitmap.set(70u);
  EXPECT_TRUE(bitmap.contains(Bitmap::of(0u, 70u)));
  EXPECT_FALSE(bitmap.contains(Bitmap::of(1u)));
  EXPECT_EQ(bitmap.without(Bitmap::of(70u)), Bitmap{1});
  bitmap.reset(70u);
  EXPECT_EQ(bitmap.size(), 1u);
}

}  // namespace
}  // namespace pnfsrdma::nfs4
