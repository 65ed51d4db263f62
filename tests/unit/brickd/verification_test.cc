// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "shared/base/crc32c.h"
#include "tests/unit/brickd/pools.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"

namespace pnfsrdma::brick {
namespace {

// Persistent memory: what is stored is in a cache until it is flushed, and what is evicted is loaded from the medium.
class CachedPersistence final : public pmem::Persistence {
 public:
  explicit CachedPersistence(std::atomic<int>& evicted) : evicted_(evicted) {}
  void copy(std::byte* target, ByteSpan source) override { inner_.copy(target, source); }
  void zero(MutableByteSpan target) override { inner_.zero(target); }
  Result<> flush(ByteSpan) override { return {}; }
  Result<> fence() override { return {}; }
  bool evict(ByteSpan memory) override {
    evicted_ += static_cast<int>(memory.size());
    return true;
  }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return false; }

 private:
  pmem::UnflushedPersistence inner_{Durability::kPower};
  std::atomic<int>& evicted_;
};

// What a brick reads back, over each transport.
class BrickVerification : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { begin(); }
  void begin(std::unique_ptr<Pool> pool = nullptr) {
    client.reset();  // before the brick whose transport it has
    brick.emplace(GetParam(), BrickOptions{.lease = Milliseconds(60000)}, std::move(pool));
    ASSERT_EQ(brick->claim().status, Status::kOk);
    ASSERT_EQ(brick->alloc(0, 3), Status::kOk);
    ASSERT_EQ(brick->open_session(), Status::kOk);
    client = std::move(*TestClient::connect(brick->transport(), brick->address(), ticket_of(1)));
    ASSERT_TRUE(client->hello());
  }
  Grant grant(uint64_t blocks = 1, bool writable = true) {
    return brick->expose(0, blocks * kBlock, writable).grants.at(0);
  }
  VerifyReply verify(std::vector<PersistTarget> targets) {
    VerifyCall call{.id = 77};
    call.ranges.assign(targets.begin(), targets.end());
    const auto reply = client->ask<VerifyReply>(call);
    EXPECT_TRUE(reply);
    EXPECT_EQ(reply->id, 77u);
    return *reply;
  }
  void write(const Grant& target, uint64_t offset, uint32_t length) {
    for (uint32_t i = 0; i < length; ++i) client->scratch()[i] = static_cast<std::byte>(i * 7);
    ASSERT_EQ(client->write(target, offset, length), rdma::Outcome::kSuccess);
  }

  // The brick's pool uses these until it ends, so they end after it.
  SystemRandom random;
  std::atomic<int> evicted = 0;
  std::atomic<int> failures = 0;
  std::optional<TestBrick> brick;
  std::unique_ptr<TestClient> client;
};

TEST_P(BrickVerification, TellsTheChecksumOfWhatIsThereAndFindsAFlippedBit) {
  EXPECT_NE(client->said().understands & kUnderstandsVerify, 0u);
  const Grant target = grant();
  write(target, 1000, 500'000);
  const uint32_t written = crc32c(ByteSpan(client->scratch()).first(500'000));
  const VerifyReply good =
      verify({{target.grant, 1000, 500'000}, {target.grant, 0, 0}, {target.grant, 1000, 4}});
  EXPECT_EQ(good.status, PersistStatus::kOk);
  EXPECT_FALSE(good.medium) << "a pool in plain memory";
  EXPECT_EQ(good.checksums,
            (std::vector<uint32_t>{written, 0, crc32c(ByteSpan(client->scratch()).first(4))}));
  brick->memory(0)[1000 + 400'123] ^= std::byte{0x10};
  const VerifyReply bad = verify({{target.grant, 1000, 500'000}});
  EXPECT_EQ(bad.status, PersistStatus::kOk);
  EXPECT_NE(bad.checksums.at(0), written);
}

TEST_P(BrickVerification, PersistentMemoryIsReadBehindItsCaches) {
  begin(make_pool(std::make_unique<CachedPersistence>(evicted), random));
  const Grant target = grant();
  write(target, 0, 600'000);
  const VerifyReply reply = verify({{target.grant, 0, 600'000}});
  EXPECT_TRUE(reply.medium);
  EXPECT_EQ(reply.checksums.at(0), crc32c(ByteSpan(client->scratch()).first(600'000)));
  EXPECT_EQ(evicted, 600'000);
}

TEST_P(BrickVerification, NothingIsReadThatIsNotGranted) {
  const Grant target = grant(3);
  const auto refused = [&](const PersistTarget& wrong) {
    const VerifyReply reply = verify({{target.grant, 0, 8}, wrong});
    EXPECT_TRUE(reply.checksums.empty());
    return reply.status;
  };
  EXPECT_EQ(refused({target.grant + 1, 0, 8}), PersistStatus::kUnknownGrant);
  EXPECT_EQ(refused({target.grant, 3 * kBlock, 1}), PersistStatus::kBounds);
  EXPECT_EQ(refused({target.grant, UINT64_MAX, 2}), PersistStatus::kBounds);
  EXPECT_EQ(refused({target.grant, 0, kVerifyBytesPerMessage}), PersistStatus::kBounds)
      << "with the others too much";
  EXPECT_EQ(verify({{target.grant, 0, kVerifyBytesPerMessage}}).status, PersistStatus::kOk);
  ASSERT_EQ(brick->withdraw(target.grant), Status::kOk);
  EXPECT_EQ(refused({target.grant, 0, 8}), PersistStatus::kUnknownGrant);
}

TEST_P(BrickVerification, AGrantIsWithdrawnWhileItIsRead) {
  for (int round = 0; round < 20; ++round) {
    const Grant target = grant(2);
    std::thread withdraws([&] { EXPECT_EQ(brick->withdraw(target.grant), Status::kOk); });
    const VerifyReply reply = verify({{target.grant, 0, 2 * kBlock}});
    withdraws.join();
    EXPECT_TRUE(reply.status == PersistStatus::kOk ? reply.checksums.size() == 1
                                                   : reply.status == PersistStatus::kUnknownGrant);
  }
}

TEST_P(BrickVerification, WhatCannotBeFlushedIsNotRead) {
  begin(make_faulty_pool(failures, random));
  const Grant target = grant();
  failures = 1;
  const VerifyReply reply = verify({{target.grant, 0, 8}});
  EXPECT_EQ(reply.status, PersistStatus::kIo);
  EXPECT_TRUE(reply.checksums.empty());
}

INSTANTIATE_TEST_SUITE_P(Transports, BrickVerification, testing::Values("memory", "iwarp"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pnfsrdma::brick
