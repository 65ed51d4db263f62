// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

constexpr uint64_t kHole = 1 << 20;

// A hole needs no brick, so nothing but the server's word says whether it is still one.
class HoleTrustTest : public DataPathTest {
 protected:
  void SetUp() override {
    DataPathTest::SetUp();
    make_file(4 << 20);
    channel.holes = {kHole};
    expect_zeros();
    ASSERT_EQ(channel.layoutgets, 1);
  }
  void expect_zeros() {
    const BufferSlice sink = buffer->slice(0, 4096);
    std::memset(sink.data(), 0xee, sink.size());
    const auto count = file->read(kHole, sink);
    ASSERT_TRUE(count) << count.error().to_string();
    ASSERT_EQ(*count, sink.size());
    for (const std::byte byte : sink.bytes()) ASSERT_EQ(byte, std::byte{0});
  }
  // The server took the layout back, and somebody else has written there.
  void fill_the_hole() { channel.holes.clear(); }
};

TEST_F(HoleTrustTest, AHoleIsAnsweredWithoutAsking) {
  const int calls = channel.calls;
  for (int i = 0; i < 10; ++i) expect_zeros();
  EXPECT_EQ(channel.calls, calls);
}

TEST_F(HoleTrustTest, WhenTheServerShowsRevokedStateAHoleIsAskedForAnew) {
  fill_the_hole();
  path->layouts_in_doubt();
  expect_read(kHole, 4096, 0);
  EXPECT_EQ(channel.layoutgets, 2);
  // And what was granted since is believed.
  expect_read(kHole, 4096, 0);
  EXPECT_EQ(channel.layoutgets, 2);
}

TEST_F(HoleTrustTest, MemoryNeedsNoTrust) {
  expect_read(0, 4096, 0);
  const int calls = channel.calls;
  path->layouts_in_doubt();
  channel.lease_over = true;
  expect_read(0, 4096, 0);
  EXPECT_EQ(channel.calls, calls);
}

TEST_F(HoleTrustTest, BehindTheLeaseAHoleIsNotBelieved) {
  fill_the_hole();
  channel.lease_over = true;
  expect_read(kHole, 4096, 0);
}

TEST_F(HoleTrustTest, WithTheLeaseRenewedAndNothingTakenBackItIsBelievedAgain) {
  channel.lease_over = true;
  channel.lease_over = false;
  expect_zeros();
  EXPECT_EQ(channel.layoutgets, 1);
}

TEST_F(HoleTrustTest, WhileTheServerIsNotContentAHoleIsReadThroughIt) {
  channel.during_layoutget = [this] { path->layouts_in_doubt(); };
  path->layouts_in_doubt();
  for (uint64_t i = 0; i < 4096; ++i) brick.memory()[kHole + i] = std::byte{0};
  expect_zeros();
  expect_zeros();
  EXPECT_EQ(channel.reads, 2);
}

TEST_F(HoleTrustTest, WhereMemoryWasAskedForAHoleIsNoneAnyMore) {
  // The server has granted it, and the answer was lost: it knows of nobody who believes in the hole now.
  channel.during_layoutget = [this] { fill_the_hole(); };
  channel.refuse_layoutgets(
      {nfs4::Status::kOldStateid, nfs4::Status::kOldStateid, nfs4::Status::kOldStateid});
  write(kHole, 4096, 5);
  EXPECT_EQ(channel.writes, 1);
  expect_read(kHole, 4096, 5);
}

TEST_F(HoleTrustTest, NorWhereAnOpenHasAskedForIt) {
  (void)path->layout_at_open(true, file.get());
  fill_the_hole();
  expect_read(kHole, 4096, 0);
  EXPECT_EQ(channel.layoutgets, 2);
}

TEST_F(HoleTrustTest, AHoleOfAnOpenFromBeforeTheDoubtIsNoneAnyMore) {
  PendingLayout pending = path->layout_at_open(false);
  nfs4::LayoutGetResult result;
  result.stateid.seqid = 9;
  result.stateid.other.fill(std::byte{9});
  nfs4::Layout granted;
  granted.length = 4 << 20;
  granted.io_mode = nfs4::IoMode::kRead;
  granted.content.layout_type = nfs4::kLayoutTypePmem;
  nfs4::LayoutBody body;
  body.segments.push_back({.file_offset = 0, .length = 4 << 20});
  granted.content.body = xdr::encode_to_bytes(body);
  result.layouts.push_back(granted);
  path->layouts_in_doubt();
  fill_the_hole();
  file->take_layout(std::move(pending), result, channel.size);
  expect_read(kHole, 4096, 0);
}

}  // namespace
}  // namespace pnfsrdma::initiator
