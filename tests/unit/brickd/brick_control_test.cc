// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

class BrickControl : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(brick.claim().status, Status::kOk); }
  Status zero(uint64_t logical, uint64_t length, uint64_t epoch = kEpoch) {
    return brick.call(&Control::zero, RangesArguments{epoch, {{{logical, length}}}}).status;
  }
  Status copy(uint64_t source, uint64_t target, uint64_t length) {
    return brick.call(&Control::copy, CopyArguments{kEpoch, source, target, length}).status;
  }

  TestBrick brick{"memory", {.limits = {.sessions = 2, .grants_per_session = 3, .registrations = 4}}};
};

TEST_F(BrickControl, ClaimTellsWhatThePoolIs) {
  const ClaimResult claimed = brick.claim(5);
  ASSERT_EQ(claimed.status, Status::kOk);
  EXPECT_EQ(claimed.claimed_epoch, 5u);
  EXPECT_EQ(claimed.kind, "memory");
  EXPECT_EQ(claimed.durability, 0u);
  EXPECT_EQ(claimed.block_count, 8u);
  EXPECT_EQ(claimed.free_blocks, 8u);
  ASSERT_EQ(claimed.paths.size(), 1u);
  EXPECT_EQ(claimed.paths[0].netid, "memory");
  EXPECT_EQ(claimed.paths[0].address, brick.address());
}

TEST_F(BrickControl, TheTurnsOfItsLoopAreTold) {
  const LoopTurnsResult turns = brick.call(&Control::loop_turns);
  EXPECT_EQ(turns.status, Status::kOk);
  uint64_t count = 0;
  for (const uint64_t of_bucket : turns.counts) count += of_bucket;
  EXPECT_GT(count, 0u);
}

TEST_F(BrickControl, WhoseItIsIsToldWithoutAClaim) {
  ASSERT_EQ(brick.alloc(0, 2), Status::kOk);
  const IdentifyResult found = brick.call(&Control::identify);
  EXPECT_EQ(found.status, Status::kOk);
  EXPECT_EQ(found.uuid, brick.claim(7).uuid);
  EXPECT_EQ(found.claimed_epoch, kEpoch);
  EXPECT_NE(found.owner, "");
  EXPECT_EQ(found.block_count, 8u);
  EXPECT_EQ(found.used_blocks, 2u);
  ASSERT_EQ(brick.call(&Control::claim, ClaimArguments{8, ""}).status, Status::kOk);
  EXPECT_EQ(brick.call(&Control::identify).owner, "");
}

TEST_F(BrickControl, ErasingNamesThePoolAndSparesWhatIsInUse) {
  const auto uuid = brick.claim(2).uuid;
  const auto erase = [&](uint64_t epoch, const xdr::FixedOpaque<16>& named) {
    return brick.call(&Control::erase, EraseArguments{epoch, named, 0, 8}).status;
  };
  EXPECT_EQ(erase(2, {}), Status::kInvalid);
  EXPECT_EQ(erase(1, uuid), Status::kStaleEpoch);
  EXPECT_EQ(erase(2, uuid), Status::kOk);
  const auto zeroed = [&] { return brick.call(&Control::statistics).clean_blocks == 8; };
  for (int i = 0; i < 400 && !zeroed(); ++i) std::this_thread::sleep_for(Milliseconds(5));
  EXPECT_TRUE(zeroed());
  ASSERT_EQ(brick.call(&Control::alloc, AllocArguments{2, 0, 1, true}).status, Status::kOk);
  EXPECT_EQ(erase(2, uuid), Status::kBusy);
}

TEST_F(BrickControl, OlderEpochsAreRefusedInEveryChangingCall) {
  ASSERT_EQ(brick.alloc(0, 2), Status::kOk);
  ASSERT_EQ(brick.claim(2).status, Status::kOk);
  const ClaimResult late = brick.claim(2);
  EXPECT_EQ(late.status, Status::kStaleEpoch);
  EXPECT_EQ(late.claimed_epoch, 2u);
  const BlocksArguments blocks{kEpoch, {{{0, 1}}}};
  EXPECT_EQ(brick.alloc(10 * kBlock, 1), Status::kStaleEpoch);
  EXPECT_EQ(brick.call(&Control::free, blocks).status, Status::kStaleEpoch);
  EXPECT_EQ(brick.call(&Control::unmap, blocks).status, Status::kStaleEpoch);
  EXPECT_EQ(brick.call(&Control::map, MapArguments{kEpoch, 0, 0, 1}).status, Status::kStaleEpoch);
  EXPECT_EQ(brick.open_session(), Status::kStaleEpoch);
  EXPECT_EQ(brick.close_session(), Status::kStaleEpoch);
  EXPECT_EQ(brick.expose(0, 1).status, Status::kStaleEpoch);
  EXPECT_EQ(brick.withdraw(1), Status::kStaleEpoch);
  EXPECT_EQ(zero(0, 1), Status::kStaleEpoch);
  EXPECT_EQ(copy(0, kBlock, 1), Status::kStaleEpoch);
  EXPECT_EQ(brick.call(&Control::persist, RangesArguments{kEpoch, {}}).status, Status::kStaleEpoch);
  EXPECT_EQ(zero(0, 1, 3), Status::kInvalid);  // claimed by nobody
  const ListResult list = brick.call(&Control::list, ListArguments{0, 10});
  EXPECT_EQ(list.runs.at(0).run, (brick::Run{0, 2}));
}

TEST_F(BrickControl, ZeroAndCopyWorkAcrossBlocksInlineAndInTheirThread) {
  ASSERT_EQ(brick.alloc(0, 4), Status::kOk);
  std::memset(brick.memory(0), 0x11, 2 * kBlock);
  ASSERT_EQ(copy(kBlock / 2, 2 * kBlock + 100, kBlock), Status::kOk);
  EXPECT_EQ(brick.memory(2 * kBlock)[99], std::byte{0});
  EXPECT_EQ(brick.memory(2 * kBlock)[100], std::byte{0x11});
  EXPECT_EQ(brick.memory(3 * kBlock)[99], std::byte{0x11});
  EXPECT_EQ(brick.memory(3 * kBlock)[100], std::byte{0});
  ASSERT_EQ(zero(10, 100), Status::kOk);
  EXPECT_EQ(brick.memory(0)[9], std::byte{0x11});
  EXPECT_EQ(brick.memory(0)[10], std::byte{0});
  EXPECT_EQ(brick.memory(0)[110], std::byte{0x11});
  EXPECT_EQ(copy(0, 100, 200), Status::kInvalid);
  EXPECT_EQ(copy(0, 100 * kBlock, 200), Status::kNotFound);
  EXPECT_EQ(zero(3 * kBlock, kBlock + 1), Status::kNotFound);
}

TEST_F(BrickControl, FreedBlocksComeBackZeroed) {
  ASSERT_EQ(brick.alloc(0, 8), Status::kOk);
  std::memset(brick.memory(0), 0x11, kBlock);
  ASSERT_EQ(brick.call(&Control::free, BlocksArguments{kEpoch, {{{0, 8}}}}).status, Status::kOk);
  EXPECT_EQ(brick.alloc(50 * kBlock, 8), Status::kTryLater);
  Status status = Status::kTryLater;
  for (int i = 0; i < 200 && status == Status::kTryLater; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    status = brick.alloc(50 * kBlock, 8);
  }
  ASSERT_EQ(status, Status::kOk);
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(brick.memory((50 + i) * kBlock)[0], std::byte{0});
}

TEST_F(BrickControl, LimitsAreAStatus) {
  ASSERT_EQ(brick.alloc(0, 4), Status::kOk);
  EXPECT_EQ(brick.open_session(0, 1), Status::kInvalid);
  ASSERT_EQ(brick.open_session(7, 1), Status::kOk);
  EXPECT_EQ(brick.open_session(8, 1), Status::kInvalid);  // another one's ticket
  ASSERT_EQ(brick.open_session(8, 2), Status::kOk);
  EXPECT_EQ(brick.open_session(9, 3), Status::kLimit);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(brick.expose(0, 1, true, 7).status, Status::kOk);
  EXPECT_EQ(brick.expose(0, 1, true, 7).status, Status::kLimit);
  EXPECT_EQ(brick.expose(0, 1, true, 8).status, Status::kOk);
  EXPECT_EQ(brick.expose(0, 1, true, 8).status, Status::kLimit);  // registrations of all
  ASSERT_EQ(brick.close_session(7), Status::kOk);
  EXPECT_EQ(brick.expose(0, 1, true, 8).status, Status::kOk);
  EXPECT_EQ(brick.expose(0, 1, true, 7).status, Status::kNotFound);
  EXPECT_EQ(brick.expose(4 * kBlock - 1, 2, true, 8).status, Status::kNotFound);
  EXPECT_EQ(brick.expose(0, 0, true, 8).status, Status::kInvalid);
}

TEST_F(BrickControl, ScatteredRangesGetOneGrantPerRun) {
  ASSERT_EQ(brick.alloc(0, 1), Status::kOk);
  ASSERT_EQ(brick.alloc(9 * kBlock, 1), Status::kOk);
  ASSERT_EQ(brick.alloc(kBlock, 2), Status::kOk);
  ASSERT_EQ(brick.open_session(), Status::kOk);
  const ExposeResult exposed = brick.expose(4096, 2 * kBlock);
  ASSERT_EQ(exposed.status, Status::kOk);
  ASSERT_EQ(exposed.grants.size(), 2u);
  EXPECT_EQ(exposed.grants[0].length, kBlock - 4096);
  EXPECT_EQ(exposed.grants[1].logical, kBlock);
  EXPECT_EQ(exposed.grants[1].length, kBlock + 4096);
  EXPECT_EQ(brick.call(&Control::list_grants, ListGrantsArguments{kClient}).grants.size(), 2u);
  EXPECT_EQ(brick.call(&Control::list_sessions).sessions.at(0).grants, 2u);
}

TEST(BrickLists, ManyGrantsPageByPage) {
  TestBrick brick("memory");
  ASSERT_EQ(brick.claim().status, Status::kOk);
  ASSERT_EQ(brick.alloc(0, 1), Status::kOk);
  ASSERT_EQ(brick.open_session(), Status::kOk);
  std::set<uint64_t> exposed;
  while (exposed.size() < kListedGrantsPerCall + 3) exposed.insert(brick.expose(0, 4096).grants.at(0).grant);
  const GrantsResult first = brick.call(&Control::list_grants, ListGrantsArguments{kClient});
  EXPECT_TRUE(first.more);
  ASSERT_EQ(first.grants.size(), kListedGrantsPerCall);
  const GrantsResult second =
      brick.call(&Control::list_grants, ListGrantsArguments{kClient, first.grants.back().grant});
  EXPECT_FALSE(second.more);
  EXPECT_EQ(second.grants.size(), 3u);
  std::set<uint64_t> listed;
  for (const GrantsResult* page : {&first, &second}) {
    for (const Grant& grant : page->grants) {
      EXPECT_TRUE(listed.empty() || grant.grant > *listed.rbegin());
      listed.insert(grant.grant);
    }
  }
  EXPECT_EQ(listed, exposed);
}

// An MDS can be told of sixteen.
TEST(BrickListeners, OneThatCannotBeAdvertisedIsClosedAgain) {
  TestBrick brick("memory");
  const auto listen = [&](const std::string& address, std::vector<std::string> advertise = {}) {
    Result<std::string> bound;
    brick.in_loop([&](Brick& inside) {
      bound = inside.listen_data(brick.transport(),
                                 {.listen = address, .netid = "memory", .advertise = std::move(advertise)});
    });
    return bound;
  };
  EXPECT_FALSE(listen("brick:20", std::vector<std::string>(16, "name")));
  for (int i = 2; i <= 16; ++i) {
    const auto bound = listen("brick:" + std::to_string(i));
    ASSERT_TRUE(bound) << bound.error().to_string();
  }
  EXPECT_FALSE(listen("brick:17"));
  EXPECT_EQ(brick.claim().paths.size(), 16u);
  for (const std::string address : {"brick:20", "brick:17"}) {
    const auto client = TestClient::connect(brick.transport(), address, ticket_of(1));
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().what(), "nobody listens on " + address);
  }
}

TEST(BrickLease, SilentMdsLosesItsGrantsAndItsClaimAfterOneLease) {
  TestBrick brick("memory", {.lease = Milliseconds(1000)});
  ASSERT_EQ(brick.claim().status, Status::kOk);
  ASSERT_EQ(brick.alloc(0, 1), Status::kOk);
  ASSERT_EQ(brick.open_session(), Status::kOk);
  ASSERT_EQ(brick.expose(0, kBlock).status, Status::kOk);
  auto client = TestClient::connect(brick.transport(), brick.address(), ticket_of(1));
  ASSERT_TRUE(client);
  for (int i = 0; i < 8; ++i) {  // alive as long as it speaks
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    ASSERT_EQ(brick.call(&Control::persist, RangesArguments{kEpoch, {}}).status, Status::kOk);
  }
  ASSERT_TRUE((*client)->hello());
  EXPECT_TRUE((*client)->ends());
  EXPECT_EQ(brick.call(&Control::statistics).grants, 0u);
  EXPECT_EQ(brick.expose(0, kBlock).status, Status::kLapsed);
  EXPECT_EQ(brick.withdraw(1), Status::kLapsed);
  EXPECT_EQ(brick.call(&Control::free, BlocksArguments{kEpoch, {{{0, 1}}}}).status, Status::kLapsed);
  ASSERT_EQ(brick.claim(kEpoch + 1).status, Status::kOk);
  EXPECT_EQ(brick.call(&Control::free, BlocksArguments{kEpoch + 1, {{{0, 1}}}}).status, Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::brick
