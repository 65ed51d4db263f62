// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "server/brickd/check_command.h"
#include "server/brickd/flush_gate.h"
#include "tests/unit/brickd/pools.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

TEST(BrickOnFile, RestartKeepsBytesEpochAndVerifierAndOnlyARebootChangesIt) {
  SystemRandom random;
  const FilePool file(random);
  Verifier first{};
  {
    TestBrick brick("memory", {}, file.open());
    const ClaimResult claimed = brick.claim(4);
    ASSERT_EQ(claimed.status, Status::kOk);
    first = claimed.verifier;
    ASSERT_EQ(brick.call(&Control::alloc, AllocArguments{4, kBlock, 2}).status, Status::kOk);
    std::memset(brick.memory(kBlock), 0x33, 2 * kBlock);
    EXPECT_EQ(brick.call(&Control::persist, RangesArguments{4, {{{kBlock, 2 * kBlock}}}}).verifier, first);
  }
  {
    TestBrick brick("memory", {}, file.open());
    EXPECT_EQ(brick.claim(4).status, Status::kStaleEpoch);
    EXPECT_EQ(brick.call(&Control::alloc, AllocArguments{4, 0, 1}).status, Status::kLapsed);
    const ClaimResult claimed = brick.claim(5);
    EXPECT_EQ(claimed.verifier, first);
    EXPECT_EQ(brick.memory(kBlock)[2 * kBlock - 1], std::byte{0x33});
    EXPECT_EQ(brick.call(&Control::list, ListArguments{0, 9}).runs.at(0).run, (brick::Run{kBlock, 2}));
  }
  BootId other{};
  other[0] = std::byte{1};
  TestBrick brick("memory", {}, file.open(), other);
  EXPECT_NE(brick.claim(6).verifier, first);
}

TEST(BrickOnFile, EveryCallWorksWhereFlushesWaitForADisk) {
  SystemRandom random;
  const FilePool file(random);
  {
    TestBrick brick("iwarp", {}, file.open());
    const ClaimResult claimed = brick.claim();
    EXPECT_EQ(claimed.durability, 2u);
    ASSERT_EQ(brick.alloc(0, 3), Status::kOk);
    ASSERT_EQ(brick.open_session(), Status::kOk);
    auto client = TestClient::connect(brick.transport(), brick.address(), ticket_of(1));
    ASSERT_TRUE(client);
    ASSERT_TRUE((*client)->hello());
    const Grant grant = brick.expose(0, 3 * kBlock).grants.at(0);
    std::memset((*client)->scratch().data(), 0x44, 65536);
    EXPECT_EQ((*client)->write(grant, 0, 65536), rdma::Outcome::kSuccess);
    EXPECT_EQ((*client)->flush(grant, 0, 65536), rdma::Outcome::kSuccess);
    EXPECT_EQ((*client)->persist({1, {{{grant.grant, 0, 65536}}}})->status, PersistStatus::kOk);
    EXPECT_EQ(brick.call(&Control::zero, RangesArguments{kEpoch, {{{10, 10}}}}).status, Status::kOk);
    EXPECT_EQ(brick.call(&Control::copy, CopyArguments{kEpoch, 0, kBlock, 4096}).status, Status::kOk);
    EXPECT_EQ(brick.withdraw(grant.grant), Status::kOk);
    EXPECT_EQ(brick.call(&Control::free, BlocksArguments{kEpoch, {{{0, 1}}}}).status, Status::kOk);
    EXPECT_EQ(brick.close_session(), Status::kOk);
  }
  const auto mapping = pmem::Mapping::open(file.path());
  const auto report = check_pool((*mapping)->bytes());
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->problems.empty());
  EXPECT_EQ(report->allocated, 2u);
}

class FailingFlush : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<TestClient> greeted(uint8_t ticket) {
    auto client = TestClient::connect(brick.transport(), brick.address(), ticket_of(ticket));
    EXPECT_TRUE(client);
    EXPECT_TRUE((*client)->hello());
    return std::move(*client);
  }

  std::atomic<int> failures = 0;
  SystemRandom random;
  TestBrick brick{GetParam(), {}, make_faulty_pool(failures, random)};
};

TEST_P(FailingFlush, ChangesTheVerifierForEverybody) {
  const Verifier before = brick.claim().verifier;
  ASSERT_EQ(brick.alloc(0, 2), Status::kOk);
  ASSERT_EQ(brick.open_session(7, 1), Status::kOk);
  ASSERT_EQ(brick.open_session(8, 2), Status::kOk);
  const auto first = greeted(1);
  const auto second = greeted(2);
  const Grant one = brick.expose(0, kBlock, true, 7).grants.at(0);
  const Grant two = brick.expose(kBlock, kBlock, true, 8).grants.at(0);

  failures = 1;
  const auto failed = first->persist({1, {{{one.grant, 0, 4096}}}});
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->status, PersistStatus::kIo);
  EXPECT_NE(failed->verifier, before);
  // The second client's bytes may be gone as well: its flush must not succeed as if nothing had been.
  EXPECT_NE(second->flush(two, 0, 4096), rdma::Outcome::kSuccess);
  EXPECT_TRUE(second->ends());
  const auto again = greeted(2);
  EXPECT_EQ(again->persist({2})->verifier, failed->verifier);
  // The table is not concerned.
  EXPECT_EQ(brick.alloc(5 * kBlock, 1), Status::kOk);
}

TEST_P(FailingFlush, OfTheTableStopsAllChanges) {
  ASSERT_EQ(brick.claim().status, Status::kOk);
  failures = 1;
  EXPECT_EQ(brick.alloc(0, 1), Status::kIo);
  EXPECT_EQ(brick.alloc(kBlock, 1), Status::kIo);
  EXPECT_EQ(brick.claim(9).status, Status::kIo);
}

INSTANTIATE_TEST_SUITE_P(Transports, FailingFlush, testing::Values("memory", "iwarp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pnfsrdma::brick
