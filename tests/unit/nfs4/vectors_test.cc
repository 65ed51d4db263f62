// SPDX-License-Identifier: Apache-2.0
// Bytes worked out by hand from the XDR of RFC 8881, 7862 and 8276.
#include <gtest/gtest.h>

#include "shared/nfs4/compound.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::nfs4 {
namespace {

template <typename T>
std::string hex(const T& value) {
  return to_hex(xdr::encode_to_bytes(value));
}

TEST(Vectors, PutRootFileHandleAndGetAttributes) {
  CompoundArguments compound;
  compound.header.tag = "ab";
  compound.header.minor_version = 2;
  compound.operations.emplace_back(PutRootFileHandleArguments{});
  compound.operations.emplace_back(
      GetAttributesArguments{Bitmap::of(Attribute::kType, Attribute::kSize, Attribute::kMode)});
  EXPECT_EQ(hex(compound),
            "00000002"
            "61620000"  // tag
            "00000002"  // minor version
            "00000002"  // two operations
            "00000018"  // PUTROOTFH
            "00000009"  // GETATTR
            "00000002"
            "00000012"
            "00000002");  // bitmap of two words: bits 1, 4 and 33
}

TEST(Vectors, OpenThatCreatesByName) {
  OpenArguments open;
  open.share_access = kShareAccessBoth | kShareAccessWantNoDelegation;
  open.owner = {7, OwnerId(as_bytes("own"))};
  Attributes attributes;
  attributes.mode = 0644;
  open.how = OpenHow::make<OpenType::kCreate>(CreateHow::make<CreateMode::kGuarded>(attributes));
  open.claim = OpenClaim::make<ClaimType::kNull>(Component("f"));
  EXPECT_EQ(hex(open),
            "00000000"
            "00000403"
            "00000000"  // seqid, access, deny
            "0000000000000007"
            "00000003"
            "6f776e00"  // owner
            "00000001"
            "00000001"  // create, guarded
            "00000002"
            "00000000"
            "00000002"  // mask: bit 33
            "00000004"
            "000001a4"  // values
            "00000000"
            "00000001"
            "66000000");  // claim by name
}

TEST(Vectors, LayoutCommitWithSizeAndWithoutTime) {
  LayoutCommitArguments commit;
  commit.offset = 1;
  commit.length = 2;
  commit.stateid.seqid = 3;
  commit.last_write_offset = 0x0a;
  commit.update = {kLayoutTypePmem, LayoutOpaque(ByteSpan())};
  EXPECT_EQ(hex(commit),
            "0000000000000001"
            "0000000000000002"
            "00000000"
            "00000003"
            "000000000000000000000000"
            "00000001"
            "000000000000000a"  // new offset
            "00000000"          // no new time
            "80524d41"
            "00000000");
}

TEST(Vectors, ReadDirectoryIsALinkedList) {
  ReadDirectoryResult result;
  result.entries.push_back({3, Component("a"), {}});
  result.end = true;
  EXPECT_EQ(hex(ReadDirectoryResponse(result)),
            "00000000"
            "0000000000000000"
            "00000001"
            "0000000000000003"
            "00000001"
            "61000000"
            "00000000"
            "00000000"
            "00000000"
            "00000001");
}

TEST(Vectors, ErrorsCarryTheBodiesTheRfcGivesThem) {
  EXPECT_EQ(hex(LayoutGetResponse::failed({true})),
            "0000274a"
            "00000001");
  EXPECT_EQ(hex(LayoutGetResponse(Status::kLayoutUnavailable)), "0000274b");
  EXPECT_EQ(hex(GetDeviceInfoResponse::failed({4096})),
            "00002715"
            "00001000");
  EXPECT_EQ(hex(SetAttributesResponse(Status::kPerm)),
            "00000001"
            "00000000");
  EXPECT_EQ(hex(SetAttributesResponse(SetAttributesResult{Bitmap::of(Attribute::kMode)})),
            "00000000"
            "00000002"
            "00000000"
            "00000002");
  EXPECT_EQ(hex(LockTestResponse::failed({1, 2, LockType::kWrite, {}})),
            "0000271a"
            "0000000000000001"
            "0000000000000002"
            "00000002"
            "0000000000000000"
            "00000000");
  EXPECT_EQ(hex(CopyResponse::failed({true, false})),
            "0000276e"
            "00000001"
            "00000000");
}

TEST(Vectors, SequenceIsThirtySixBytesOfArguments) {
  SequenceArguments sequence;
  sequence.sequence_id = 1;
  sequence.slot_id = 2;
  sequence.highest_slot_id = 3;
  sequence.cache_this = true;
  EXPECT_EQ(hex(sequence),
            "00000000000000000000000000000000"
            "00000001"
            "00000002"
            "00000003"
            "00000001");
}

TEST(Vectors, OurLayoutBody) {
  LayoutBody body;
  body.connection = 1;
  body.segments.push_back({{}, 0x200000, 0x400000, {9, 8, 7}, {}});
  EXPECT_EQ(hex(body),
            "00000001"
            "00000001"
            "00000000000000000000000000000000"
            "0000000000200000"
            "0000000000400000"
            "0000000000000009"
            "00000008"
            "0000000000000007"
            "0000000000000000"
            "00000000"
            "0000000000000000");
}

}  // namespace
}  // namespace pnfsrdma::nfs4
