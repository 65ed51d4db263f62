// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_locks.h"

#include <gtest/gtest.h>

#include <thread>

#include "shared/initiator/cancellation.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr LockOwner kProcess{LockOwner::Kind::kPosix, 7};
constexpr LockOwner kOpenFile{LockOwner::Kind::kFlock, 7};

FileLocks::Held holding(uint64_t first, uint64_t last) {
  FileLocks::Held held;
  held.stateid = nfs4::Stateid{1, {std::byte{2}}};
  held.ranges.lock({first, last, true});
  held.process = 42;
  return held;
}

TEST(FileLocks, NameSaysWhichKindOfOwnerItIs) {
  EXPECT_EQ(as_text(kProcess.name()), "posix-0000000000000007");
  EXPECT_EQ(as_text(kOpenFile.name()), "flock-0000000000000007");
}

TEST(FileLocks, KeepsWhatAnOwnerHolds) {
  FileLocks locks;
  EXPECT_FALSE(locks.has(kProcess));
  EXPECT_FALSE(locks.held(kProcess).stateid);
  locks.keep(kProcess, holding(0, 9));
  EXPECT_TRUE(locks.has(kProcess));
  EXPECT_FALSE(locks.has(kOpenFile));
  EXPECT_EQ(locks.owners(), std::vector{kProcess});
  EXPECT_EQ(locks.held(kProcess).ranges.all().size(), 1u);
  EXPECT_EQ(locks.process_of(kProcess.name()), 42);
  EXPECT_EQ(locks.process_of(kOpenFile.name()), 0);
  locks.forget(kProcess);
  EXPECT_FALSE(locks.has(kProcess));
}

TEST(FileLocks, ReleasedOpenFileLeavesTheLocksThatWereLastAskedForByIt) {
  FileLocks locks;
  FileLocks::Held held = holding(0, 9);
  held.open_file = 3;
  locks.keep(kProcess, held);
  locks.keep(kOpenFile, held);
  EXPECT_EQ(locks.owners_by(3), (std::vector{kProcess, kOpenFile}));
  held.open_file = 4;
  locks.keep(kProcess, held);
  EXPECT_EQ(locks.owners_by(3), std::vector{kOpenFile});
  locks.forget(kOpenFile);
  EXPECT_TRUE(locks.owners_by(3).empty());
  EXPECT_TRUE(locks.owners_by(0).empty());
}

TEST(FileLocks, LostOnesAreSeenUntilTheirOwnerIsForgotten) {
  FileLocks locks;
  locks.keep(kOpenFile, holding(0, 9));
  FileLocks::Held lost = holding(0, 9);
  lost.lost = true;
  locks.keep(kProcess, lost);
  EXPECT_TRUE(locks.any_lost());
  locks.forget(kOpenFile);
  EXPECT_TRUE(locks.any_lost());
  locks.forget(kProcess);
  EXPECT_FALSE(locks.any_lost());
  locks.keep(kProcess, lost);
  locks.clear();
  EXPECT_FALSE(locks.any_lost());
}

TEST(FileLocks, OperationsOfOneOwnerWaitForEachOther) {
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  ASSERT_TRUE(locks.begin(kOpenFile));
  std::atomic<bool> second = false;
  std::thread waiting([&] {
    ASSERT_TRUE(locks.begin(kProcess));
    second = true;
    locks.end(kProcess);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(second);
  locks.end(kProcess);
  waiting.join();
  EXPECT_TRUE(second);
  locks.end(kOpenFile);
  EXPECT_FALSE(locks.has(kProcess));
}

TEST(FileLocks, KilledProcessDoesNotWait) {
  class Killed final : public initiator::Cancellation {
   public:
    bool requested() override { return true; }
  } killed;
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  std::thread([&] {
    const initiator::CancellationScope scope(killed);
    EXPECT_FALSE(locks.begin(kProcess));
  }).join();
  locks.end(kProcess);
}

TEST(FileLocks, OperationThatIsUnderWaySurvivesAClear) {
  FileLocks locks;
  ASSERT_TRUE(locks.begin(kProcess));
  locks.keep(kProcess, holding(0, 9));
  locks.clear();
  EXPECT_FALSE(locks.held(kProcess).stateid);
  locks.end(kProcess);
  EXPECT_FALSE(locks.has(kProcess));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
