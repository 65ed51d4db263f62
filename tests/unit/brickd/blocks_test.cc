// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "server/brickd/brick.h"
#include "server/brickd/pool.h"
#include "shared/pmem/mapping.h"
#include "tests/unit/brickd/test_brick.h"
#include "tests/unit/brickd/test_client.h"
#include "tests/unit/brickd/test_owner.h"

namespace pnfsrdma::brick {
namespace {

using BlocksStatus = blocks::Status;
using testing::ElementsAre;

constexpr uint8_t kSecret = 9;

std::unique_ptr<Pool> owned_pool(uint64_t count, const std::string& name = "tank", uint8_t secret = kSecret,
                                 uint64_t quota = 0) {
  SystemRandom random;
  auto mapping = std::move(*pmem::Mapping::anonymous(format::data_offset(kBlock, count) + count * kBlock));
  auto persistence = mapping->make_persistence(pmem::FileFlush::kPageCache);
  format::Ownership ownership{.quota_blocks = quota};
  std::memcpy(ownership.name.data(), name.data(), name.size());
  ownership.secret = TestOwner::key(name, secret).secret;
  EXPECT_TRUE(
      Pool::format(mapping->bytes(), *persistence, {.known_zero = true, .ownership = ownership}, random));
  return std::move(*Pool::open(std::move(mapping), std::move(persistence), SystemClock().now()));
}

class Blocks : public testing::Test {
 protected:
  explicit Blocks(BrickOptions options = {}, uint64_t quota = 0)
      : brick_("memory", options, owned_pool(8, "tank", kSecret, quota)), address_(serve(brick_)) {}

  static std::string serve(TestBrick& brick) {
    std::string address;
    brick.in_loop([&](Brick& inside) { address = *inside.serve_owner("127.0.0.1:0"); });
    return address;
  }
  // One that has attached.
  std::unique_ptr<TestOwner> owner() {
    auto made = std::make_unique<TestOwner>(address_, "tank", kSecret);
    EXPECT_TRUE(made->secured && *made->secured) << (*made->secured).error().to_string();
    attached_ = made->attach();
    EXPECT_EQ(attached_.status, BlocksStatus::kOk);
    return made;
  }
  std::unique_ptr<TestClient> client(TestBrick& brick, const blocks::AttachResult& attached) {
    auto made = TestClient::connect(brick.transport(), brick.address(), attached.ticket);
    EXPECT_TRUE(made) << made.error().to_string();
    EXPECT_TRUE((*made)->hello());
    return std::move(*made);
  }

  TestBrick brick_;
  const std::string address_;
  blocks::AttachResult attached_;
};

TEST_F(Blocks, WithoutTheKeyNothingIsAnswered) {
  TestOwner nobody(address_);
  for (uint32_t procedure = 0; procedure < 16; ++procedure) {
    const auto answer = nobody.bare_call(blocks::kProgram, blocks::kVersion, procedure, {});
    ASSERT_FALSE(answer) << procedure;
  }
  EXPECT_FALSE(nobody.bare_call(kProgram, kVersion, static_cast<uint32_t>(Procedure::kIdentify), {}));
}

TEST_F(Blocks, AWrongKeyIsRefusedAndPutsItsHostOff) {
  {
    TestOwner wrong(address_, "tank", kSecret + 1);
    ASSERT_TRUE(wrong.secured && !*wrong.secured);
    EXPECT_EQ(wrong.secured->error().number(), EACCES);
  }
  TestOwner right(address_, "tank", kSecret);
  ASSERT_TRUE(right.secured && !*right.secured);
  EXPECT_NE(right.secured->error().number(), EACCES) << "put off, not refused";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(owner()->list().size(), 0u);
}

// What connects in `call` is another user's: of this thread alone (setreuid(2), "C library/kernel differences").
void as_another_user(const std::function<void()>& call) {
  constexpr uid_t kAnother = 65534;
  ASSERT_EQ(syscall(SYS_setresuid, -1, kAnother, -1), 0);
  call();
  ASSERT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
}

TEST_F(Blocks, AWrongKeyPutsNoOtherUserOfThisHostOff) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  std::string folder = "/var/tmp/brick-test.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  chmod(folder.c_str(), 0755);
  const std::string path = "unix:" + folder + "/owner.sock";
  brick_.in_loop([&](Brick& inside) { EXPECT_TRUE(inside.serve_owner(path)); });
  const auto secured = [&](uint8_t secret) { return TestOwner(path, "tank", secret).secured->has_value(); };
  as_another_user([&] { EXPECT_FALSE(secured(kSecret + 1)); });
  EXPECT_TRUE(secured(kSecret));
  as_another_user([&] { EXPECT_FALSE(secured(kSecret)) << "put off"; });
  brick_.stop();
  rmdir(folder.c_str());
}

TEST_F(Blocks, TheProgramOfAnMdsIsNotThere) {
  const auto one = owner();
  const auto answer = one->bare_call(kProgram, kVersion, static_cast<uint32_t>(Procedure::kIdentify), {});
  ASSERT_FALSE(answer);
  brick_.in_loop([](Brick& inside) {
    EXPECT_EQ(inside.serve_control_tcp("127.0.0.1:0").error().number(), EPERM);
    EXPECT_EQ(inside.serve_control_unix("/nowhere/x.sock").error().number(), EPERM);
  });
}

TEST(BlocksOfAnMds, AreNotServedToAnOwner) {
  TestBrick brick("memory");
  brick.in_loop([](Brick& inside) { EXPECT_EQ(inside.serve_owner("127.0.0.1:0").error().number(), EPERM); });
}

TEST_F(Blocks, AnAllocThatIsRepeatedIsAnsweredAsBefore) {
  const auto one = owner();
  const auto first = one->alloc(2, 77);
  EXPECT_EQ(first.status, BlocksStatus::kOk);
  const auto again = one->alloc(2, 77);
  EXPECT_EQ(again.status, BlocksStatus::kOk);
  EXPECT_EQ(again.address, first.address);
  EXPECT_NE(one->alloc(2, 78).address, first.address);
  ASSERT_EQ(one->list().size(), 1u);
  EXPECT_EQ(one->list()[0].count, 4u);
}

// Of a call that was cut short between its table entries: nobody has been told of it.
TEST_F(Blocks, WhatWasLeftOfAnAllocIsTakenBackAndDoneAnew) {
  const auto one = owner();
  const auto part = one->alloc(1, 77);
  const auto whole = one->alloc(3, 77);
  EXPECT_EQ(whole.status, BlocksStatus::kOk);
  EXPECT_NE(whole.address, part.address);
  ASSERT_EQ(one->list().size(), 1u);
  EXPECT_EQ(one->list()[0].address, whole.address);
  EXPECT_EQ(one->list()[0].count, 3u);
}

TEST_F(Blocks, AnAddressIsNotGivenAgainByTheSameProcess) {
  const auto one = owner();
  const uint64_t first = one->alloc(8, 1).address;
  EXPECT_EQ(one->free(first, 8), BlocksStatus::kOk);
  const uint64_t second = one->alloc(8, 2).address;
  EXPECT_EQ(one->free(first, 8), BlocksStatus::kNotFound) << "a free that comes late meets nothing";
  EXPECT_EQ(one->list()[0].address, second);
}

TEST_F(Blocks, WhatCannotBeIsRefused) {
  const auto one = owner();
  EXPECT_EQ(one->alloc(0, 1).status, BlocksStatus::kInvalid);
  EXPECT_EQ(one->alloc(1, 0).status, BlocksStatus::kInvalid);
  EXPECT_EQ(one->alloc(9, 1).status, BlocksStatus::kNoSpace);
  EXPECT_EQ(one->alloc(UINT64_MAX, 1).status, BlocksStatus::kNoSpace);
  EXPECT_EQ(one->alloc(1, 1, 512).status, BlocksStatus::kInvalid);
  EXPECT_EQ(one->alloc(1, 1, uint64_t{1} << 56).status, BlocksStatus::kInvalid);
  EXPECT_EQ(one->alloc(2, 1, (uint64_t{1} << 56) - kBlock).status, BlocksStatus::kInvalid);
  EXPECT_EQ(one->alloc(1, 1, (uint64_t{1} << 56) - kBlock).status, BlocksStatus::kOk);
  EXPECT_EQ(one->alloc(1, 2, (uint64_t{1} << 56) - kBlock).status, BlocksStatus::kExists);
  EXPECT_EQ(one->alloc(1, 3).status, BlocksStatus::kOk) << "behind the last address there is none: in a gap";
  EXPECT_EQ(one->free(64 * kBlock, 1), BlocksStatus::kNotFound);
  EXPECT_EQ(one->map(1, 64 * kBlock, 1).status, BlocksStatus::kNotFound);
  one->attachment += 1;
  EXPECT_EQ(one->alloc(1, 4).status, BlocksStatus::kUnknown);
  EXPECT_EQ(one->free(0, 1), BlocksStatus::kUnknown);
}

TEST_F(Blocks, AMappingIsReachedByRdmaAndEndsWithItsRelease) {
  const auto one = owner();
  const uint64_t at = one->alloc(2, 1).address;
  EXPECT_TRUE(one->map(1, at, 2).grants.size() == 1);
  const auto rdma = client(brick_, attached_);
  const auto mapped = one->map(1, at, 2, true, false, blocks::How::kAgain);
  ASSERT_EQ(mapped.status, BlocksStatus::kOk);
  const Grant& grant = mapped.grants[0];
  EXPECT_EQ(grant.length, 2 * kBlock);
  std::memset(rdma->scratch().data(), 0x5a, 64);
  EXPECT_EQ(rdma->write_and_persist(grant, 100, 64)->status, PersistStatus::kOk);
  EXPECT_EQ(brick_.memory(at)[100], std::byte{0x5a});
  EXPECT_EQ(one->release(1), BlocksStatus::kOk);
  EXPECT_NE(rdma->write(grant, 100, 64), rdma::Outcome::kSuccess);
  EXPECT_EQ(one->map(1, at, 2, true, false, blocks::How::kAgain).status, BlocksStatus::kRevoked);
}

TEST_F(Blocks, AReadOnlyMappingIsNotWritten) {
  const auto one = owner();
  const uint64_t at = one->alloc(1, 1).address;
  const auto rdma = client(brick_, attached_);
  const auto mapped = one->map(1, at, 1, false);
  EXPECT_EQ(rdma->read(mapped.grants[0], 0, 64), rdma::Outcome::kSuccess);
  EXPECT_NE(rdma->write(mapped.grants[0], 0, 64), rdma::Outcome::kSuccess);
  const auto written = one->call<blocks::CommitResult>(
      blocks::Procedure::kWrite, blocks::WriteArguments{one->attachment, 1, 0, false, Bytes(8)});
  EXPECT_EQ(written.status, BlocksStatus::kReadOnly);
}

TEST_F(Blocks, AnUnmapEndsWhatOthersHaveMapped) {
  const auto one = owner();
  const auto rdma = client(brick_, attached_);
  const uint64_t at = one->alloc(4, 1).address;
  const auto lost = one->map(1, at, 2);
  EXPECT_EQ(one->map(2, at + 2 * kBlock, 2).status, BlocksStatus::kOk);
  const auto other = owner();
  EXPECT_EQ(other->map(1, at, 1).status, BlocksStatus::kConflict);
  EXPECT_EQ(other->unmap(at + kBlock, 1), BlocksStatus::kOk);
  EXPECT_NE(rdma->write(lost.grants[0], 0, 64), rdma::Outcome::kSuccess) << "also where it was not named";
  EXPECT_EQ(other->map(1, at, 2).status, BlocksStatus::kOk);
  EXPECT_EQ(one->map(1, at, 2, true, false, blocks::How::kAgain).status, BlocksStatus::kRevoked);
  EXPECT_EQ(one->map(2, at + 2 * kBlock, 2, true, false, blocks::How::kAgain).status, BlocksStatus::kOk);
  const auto written = one->call<blocks::CommitResult>(
      blocks::Procedure::kWrite, blocks::WriteArguments{one->attachment, 1, 0, true, Bytes(8)});
  EXPECT_EQ(written.status, BlocksStatus::kRevoked);
}

// Who has not noticed that does not reclaim behind a restart what others have had.
TEST_F(Blocks, WhatEndsMappingsRaisesTheEpoch) {
  const auto one = owner();
  const uint64_t epoch = attached_.epoch;
  const auto now = [&] { return one->attach(one->attachment).epoch; };
  const uint64_t at = one->alloc(1, 1).address;
  one->map(1, at, 1);
  EXPECT_EQ(one->release(1), BlocksStatus::kOk);
  EXPECT_EQ(one->unmap(at, 1), BlocksStatus::kOk);
  EXPECT_EQ(now(), epoch) << "nothing was mapped";
  one->map(2, at, 1);
  EXPECT_EQ(one->unmap(at, 1), BlocksStatus::kOk);
  EXPECT_EQ(now(), epoch + 1);
  one->map(3, at, 1);
  EXPECT_EQ(one->free(at, 1), BlocksStatus::kOk);
  EXPECT_EQ(now(), epoch + 2);
}

TEST_F(Blocks, AFreeEndsWhatOthersHaveMapped) {
  const auto one = owner();
  const auto rdma = client(brick_, attached_);
  const uint64_t at = one->alloc(2, 1).address;
  const auto lost = one->map(1, at, 2);
  EXPECT_EQ(owner()->free(at, 2), BlocksStatus::kOk);
  EXPECT_NE(rdma->read(lost.grants[0], 0, 64), rdma::Outcome::kSuccess);
  EXPECT_TRUE(one->list().empty());
}

TEST_F(Blocks, WhatHandlesOfAnotherOwnersPartitionReachIsNothing) {
  TestBrick pond("memory", {}, owned_pool(8, "pond", kSecret + 1));
  const std::string pond_address = serve(pond);
  TestOwner theirs(pond_address, "pond", kSecret + 1);
  const auto their_attachment = theirs.attach();
  const uint64_t their_at = theirs.alloc(1, 1).address;
  const auto their_grant = theirs.map(1, their_at, 1).grants[0];
  // Neither their door by our key,
  TestOwner us(pond_address, "tank", kSecret);
  EXPECT_FALSE(*us.secured);
  // nor our connection by their ticket, nor their memory by their handles.
  EXPECT_FALSE(TestClient::connect(brick_.transport(), brick_.address(), their_attachment.ticket));
  const auto one = owner();
  EXPECT_EQ(one->attach(their_attachment.attachment).status, BlocksStatus::kUnknown);
  one->attach();
  const auto rdma = client(brick_, attached_);
  EXPECT_NE(rdma->read(their_grant, 0, 64), rdma::Outcome::kSuccess);
}

TEST_F(Blocks, AttachmentsOfOneOwnerHaveHandlesOfTheirOwn) {
  const auto one = owner();
  const auto my_rdma = client(brick_, attached_);
  const uint64_t at = one->alloc(1, 1).address;
  const auto mine = one->map(1, at, 1).grants[0];
  EXPECT_EQ(my_rdma->write(mine, 0, 64), rdma::Outcome::kSuccess);
  const auto other = owner();
  const auto rdma = client(brick_, attached_);
  EXPECT_NE(rdma->write(mine, 0, 64), rdma::Outcome::kSuccess);
}

TEST_F(Blocks, AnAttachmentOutlivesItsConnection) {
  auto one = owner();
  const auto before = attached_;
  const uint64_t at = one->alloc(1, 1).address;
  EXPECT_EQ(one->map(1, at, 1).status, BlocksStatus::kOk);
  auto again = std::make_unique<TestOwner>(address_, "tank", kSecret);
  const auto attached = again->attach(before.attachment);
  EXPECT_EQ(attached.status, BlocksStatus::kOk);
  EXPECT_EQ(attached.ticket, before.ticket);
  EXPECT_EQ(again->map(1, at, 1, true, false, blocks::How::kAgain).status, BlocksStatus::kOk);
  one->run_for(Milliseconds(200));
  EXPECT_FALSE(one->is_open()) << "what it has still on its way would be late";
}

TEST_F(Blocks, BytesGoByTheControlConnectionToo) {
  const auto one = owner();
  const uint64_t at = one->alloc(2, 1).address;
  EXPECT_EQ(one->map(1, at, 2).status, BlocksStatus::kOk);
  const Bytes data(1000, std::byte{3});
  const auto written = one->call<blocks::CommitResult>(
      blocks::Procedure::kWrite, blocks::WriteArguments{one->attachment, 1, kBlock - 500, true, data});
  EXPECT_EQ(written.status, BlocksStatus::kOk);
  EXPECT_EQ(written.verifier, attached_.verifier);
  const auto read = one->call<blocks::ReadResult>(
      blocks::Procedure::kRead, blocks::ReadArguments{one->attachment, 1, kBlock - 500, 1000});
  EXPECT_EQ(static_cast<const Bytes&>(read.data), data);
  const auto beyond = one->call<blocks::ReadResult>(
      blocks::Procedure::kRead, blocks::ReadArguments{one->attachment, 1, 2 * kBlock - 8, 16});
  EXPECT_EQ(beyond.status, BlocksStatus::kInvalid);
}

TEST_F(Blocks, WhatIsMappedIsListed) {
  const auto one = owner();
  const uint64_t at = one->alloc(3, 1).address;
  one->map(5, at, 2, true, true);
  const auto listed = one->call<blocks::MappingsResult>(blocks::Procedure::kListMappings,
                                                        blocks::AttachmentArguments{one->attachment});
  EXPECT_THAT(listed.mappings, ElementsAre(blocks::MappingEntry{one->attachment, 5, at, 2, true, true}));
}

class BlocksWithQuota : public Blocks {
 protected:
  BlocksWithQuota() : Blocks({}, 3) {}
};

TEST_F(BlocksWithQuota, NoMoreIsAllocated) {
  const auto one = owner();
  EXPECT_EQ(attached_.quota_blocks, 3u);
  EXPECT_EQ(one->alloc(4, 1).status, BlocksStatus::kQuota);
  const uint64_t at = one->alloc(3, 1).address;
  EXPECT_EQ(one->alloc(1, 2).status, BlocksStatus::kQuota);
  EXPECT_EQ(one->free(at, 1), BlocksStatus::kOk);
  EXPECT_EQ(one->alloc(1, 2).status, BlocksStatus::kOk);
}

class BlocksOfAShortLease : public Blocks {
 protected:
  BlocksOfAShortLease() : Blocks({.lease = Milliseconds(1000)}) {}
};

TEST_F(BlocksOfAShortLease, WhoSaysNothingLosesWhatItHadMapped) {
  const auto silent = owner();
  const auto rdma = client(brick_, attached_);
  const uint64_t at = silent->alloc(1, 1).address;
  const auto lost = silent->map(1, at, 1);
  const auto other = owner();
  EXPECT_EQ(other->map(1, at, 1).status, BlocksStatus::kConflict);
  BlocksStatus status = BlocksStatus::kConflict;
  for (int i = 0; i < 100 && status == BlocksStatus::kConflict; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = other->map(1, at, 1).status;
  }
  EXPECT_EQ(status, BlocksStatus::kOk);
  EXPECT_NE(rdma->write(lost.grants[0], 0, 64), rdma::Outcome::kSuccess);
  EXPECT_EQ(silent->free(at, 1), BlocksStatus::kUnknown);
  EXPECT_EQ(silent->attach(silent->attachment).status, BlocksStatus::kUnknown);
}

}  // namespace
}  // namespace pnfsrdma::brick
