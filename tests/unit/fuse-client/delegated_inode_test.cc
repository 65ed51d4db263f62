// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/open_operations.h"
#include "tests/unit/fuse-client/inode_case.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace inode_case;

// A file that this reader has opened and closed, under a delegation.
class DelegatedInodeTest : public InodeTest {
 protected:
  void SetUp() override {
    learn(1, start);
    for (const uint32_t access : {nfs4::kShareAccessBoth, nfs4::kShareAccessRead}) {
      EXPECT_FALSE(wants_delegation());
      open(access);
      close();
      ASSERT_TRUE(inode.begin_close());
      inode.closed();
    }
    EXPECT_TRUE(wants_delegation());
    open();
    inode.delegated({.stateid = kDelegation,
                     .times = {.asked_at = start + 1s, .answered_at = start + 1500ms},
                     .opener = kReader});
    learn(1, start + 1s);
    EXPECT_FALSE(wants_delegation());
    EXPECT_TRUE(close());
  }
  void learn(uint64_t change, SteadyTime at, nlink_t links = 1) {
    client::FileAttributes said = attributes(change);
    said.status.st_nlink = links;
    inode.learn(said, at, timeouts, kNow);
  }
  void open(uint32_t access = nfs4::kShareAccessRead) {
    inode.begin_open();
    inode.opened(stateid(1, 1), access, kReader);
  }
  bool wants_delegation() const {
    return inode.wanted_delegation(nfs4::kShareAccessRead) == nfs4::kShareAccessWantReadDelegation;
  }
  // Is it kept open?
  bool close() {
    EXPECT_TRUE(inode.release());
    return inode.settled();
  }
  bool opens(const initiator::Credential& reader, SteadyTime now, uint32_t access = nfs4::kShareAccessRead) {
    inode.begin_open();
    const bool opened = inode.open_under_delegation(reader, access, now, kLeaseEnd).has_value();
    if (!opened && inode.open_failed()) inode.settled();
    return opened;
  }
  bool opens() { return opens(kReader, start + 1s); }

  const nfs4::Stateid kDelegation = stateid(9, 1);
  const initiator::Credential kReader{10, 10, {}};
  const SteadyTime kLeaseEnd = start + 30s;
};

TEST_F(DelegatedInodeTest, IsOpenedWithoutTheServerUntilTheLeaseEnds) {
  EXPECT_FALSE(inode.begin_close());
  EXPECT_TRUE(opens(kReader, kLeaseEnd - 1ms));
  EXPECT_TRUE(inode.open_state(false));
  EXPECT_TRUE(close());
  EXPECT_FALSE(opens(kReader, kLeaseEnd));
}

TEST_F(DelegatedInodeTest, ItsAttributesAreBelievedUntilTheLeaseEnds) {
  EXPECT_TRUE(inode.believed(start + 20s, std::nullopt, 0, kLeaseEnd));
  EXPECT_GT(inode.believed(start + 20s, std::nullopt, 0, kLeaseEnd)->left, 0ms);
  EXPECT_FALSE(inode.believed(kLeaseEnd, std::nullopt, 0, kLeaseEnd));
}

TEST_F(DelegatedInodeTest, WhatWasAskedBesideItIsNotBelievedLonger) {
  learn(1, start + 1400ms);
  EXPECT_FALSE(inode.believed(start + 20s, std::nullopt, 0, kLeaseEnd));
  EXPECT_FALSE(opens());
  learn(1, start + 1500ms);
  EXPECT_TRUE(inode.believed(start + 20s, std::nullopt, 0, kLeaseEnd));
  EXPECT_TRUE(opens());
}

TEST_F(DelegatedInodeTest, WhatWasAskedBeforeItIsNotBelievedLonger) {
  inode.delegated({.stateid = kDelegation,
                   .times = {.asked_at = start + 2s, .answered_at = start + 2s},
                   .opener = kReader});
  EXPECT_FALSE(inode.believed(start + 20s, std::nullopt, 0, kLeaseEnd));
  EXPECT_FALSE(opens());
}

TEST_F(DelegatedInodeTest, TheServerDecidesForEachReaderOnce) {
  const initiator::Credential other{20, 20, {}};
  EXPECT_FALSE(opens(other, start + 1s));
  inode.begin_open();
  inode.opened(stateid(1, 2), nfs4::kShareAccessRead, other);
  EXPECT_TRUE(close());
  inode.admit(other, nfs4::kShareAccessRead, start + 1400ms);
  EXPECT_FALSE(opens(other, start + 2s)) << "the server was asked before it gave the delegation";
  inode.admit(other, nfs4::kShareAccessRead, start + 2s);
  EXPECT_TRUE(opens(other, start + 2s));
}

// Another's open may be the one that the server knows; it may have been refused to that one since.
TEST_F(DelegatedInodeTest, ItIsReadInTheNameOfWhoOpenedItLast) {
  const initiator::Credential other{20, 20, {}};
  inode.admit(other, nfs4::kShareAccessRead, start + 2s);
  ASSERT_TRUE(opens(other, start + 2s));
  EXPECT_EQ(inode.open_state(false)->credential, other);
  ASSERT_TRUE(opens());
  EXPECT_EQ(inode.open_state(false)->credential, kReader);
}

TEST_F(DelegatedInodeTest, RightsThatChangeAreAskedForAnew) {
  inode.rights_changed(start + 2s);
  EXPECT_FALSE(opens());
  inode.admit(kReader, nfs4::kShareAccessRead, start + 3s);
  EXPECT_TRUE(opens()) << "asked while they change";
  inode.rights_changed(start + 4s);
  inode.admit(kReader, nfs4::kShareAccessRead, start + 3s);
  EXPECT_FALSE(opens()) << "its answer came behind the change";
  inode.admit(kReader, nfs4::kShareAccessRead, start + 5s);
  EXPECT_TRUE(opens());
}

TEST_F(DelegatedInodeTest, OneThatCameBesideAChangeOfRightsAdmitsNobody) {
  inode.rights_changed(start + 3s);
  inode.delegated({.stateid = stateid(10, 1),
                   .times = {.asked_at = start + 2s, .answered_at = start + 4s},
                   .opener = kReader});
  learn(1, start + 5s);
  EXPECT_FALSE(opens());
}

TEST_F(DelegatedInodeTest, IsClosedAndReturnedWhenItEnds) {
  EXPECT_TRUE(inode.has_delegation(kDelegation));
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_FALSE(inode.end_delegation());
  EXPECT_FALSE(opens());
  EXPECT_FALSE(inode.believed(start + 1s, std::nullopt, 0, kLeaseEnd));
  const auto owed = inode.begin_close();
  ASSERT_TRUE(owed && owed->open && owed->delegation);
  EXPECT_EQ(owed->open->stateid, stateid(1, 1));
  EXPECT_EQ(owed->delegation->stateid, kDelegation);
  inode.closed();
  EXPECT_FALSE(inode.begin_close());
  EXPECT_FALSE(wants_delegation());
  EXPECT_FALSE(inode.delegated({.stateid = kDelegation,
                                .times = {.asked_at = start + 2s, .answered_at = start + 3s},
                                .opener = kReader}))
      << "another OPEN's answer brought it, too";
  inode.delegation_returned(stateid(10, 1));
  EXPECT_FALSE(wants_delegation());
  inode.delegation_returned(kDelegation);
  EXPECT_TRUE(wants_delegation());
}

TEST_F(DelegatedInodeTest, WhoHasItOpenKeepsItOpenWhenItEnds) {
  ASSERT_TRUE(opens());
  ASSERT_TRUE(inode.end_delegation());
  const auto owed = inode.begin_close();
  ASSERT_TRUE(owed);
  EXPECT_FALSE(owed->open);
  inode.delegation_returned(kDelegation);
  EXPECT_FALSE(close());
  ASSERT_TRUE(inode.begin_close()->open);
}

TEST_F(DelegatedInodeTest, AnOpenForWritingIsNotKept) {
  open(nfs4::kShareAccessWrite);
  EXPECT_FALSE(close());
  const auto owed = inode.begin_close();
  ASSERT_TRUE(owed && owed->open);
  EXPECT_FALSE(owed->delegation);
  inode.closed();
  EXPECT_FALSE(opens());  // there is no open to use
  open();
  EXPECT_TRUE(close());
  EXPECT_TRUE(opens());
}

TEST_F(DelegatedInodeTest, OwnOperationsOnItsNamesLetTheServerBeAsked) {
  inode.name_changed(0, 1);
  EXPECT_FALSE(opens());
  learn(2, start + 2s, 2);  // any of its names may lead elsewhere by now
  EXPECT_FALSE(opens(kReader, start + 2s));
  learn(3, start + 3s);
  EXPECT_TRUE(opens(kReader, start + 3s));
}

TEST_F(DelegatedInodeTest, AnOpenThatIsKeptIsNotReclaimed) {
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_FALSE(inode.to_reclaim());
  open();
  EXPECT_TRUE(inode.to_reclaim());
}

// The same of a file that is written.
class WrittenInodeTest : public DelegatedInodeTest {
 protected:
  void SetUp() override {
    learn(1, start);
    const auto wanted = [&] { return inode.wanted_delegation(nfs4::kShareAccessBoth); };
    for (const uint32_t access : {nfs4::kShareAccessWrite, nfs4::kShareAccessBoth}) {
      EXPECT_EQ(wanted(), nfs4::kShareAccessWantNoDelegation);
      open(access);
      close();
      ASSERT_TRUE(inode.begin_close());
      inode.closed();
    }
    EXPECT_EQ(wanted(), nfs4::kShareAccessWantWriteDelegation);
    open(nfs4::kShareAccessBoth);
    inode.delegated({.stateid = kDelegation,
                     .allows = nfs4::kShareAccessBoth,
                     .times = {.asked_at = start + 1s, .answered_at = start + 1500ms},
                     .opener = kReader,
                     .change = 1});
    learn(1, start + 1s);
    EXPECT_EQ(wanted(), nfs4::kShareAccessWantNoDelegation);
    EXPECT_TRUE(close());
  }
};

TEST_F(WrittenInodeTest, IsOpenedForAnythingWithoutTheServer) {
  for (const uint32_t access : {nfs4::kShareAccessRead, nfs4::kShareAccessWrite, nfs4::kShareAccessBoth}) {
    EXPECT_TRUE(opens(kReader, start + 2s, access));
    EXPECT_TRUE(inode.open_state(true));
    EXPECT_TRUE(close());
  }
  EXPECT_FALSE(opens(kReader, kLeaseEnd, nfs4::kShareAccessBoth));
}

TEST_F(WrittenInodeTest, WhoWasAdmittedToReadIsNotAdmittedToWrite) {
  const initiator::Credential other{20, 20, {}};
  inode.admit(other, nfs4::kShareAccessRead, start + 2s);
  EXPECT_TRUE(opens(other, start + 2s));
  EXPECT_FALSE(opens(other, start + 2s, nfs4::kShareAccessWrite));
  inode.admit(other, nfs4::kShareAccessWrite, start + 2s);
  EXPECT_TRUE(opens(other, start + 2s, nfs4::kShareAccessBoth));
}

TEST_F(WrittenInodeTest, OneToReadAllowsNoWriting) {
  inode.delegated({.stateid = stateid(10, 1), .times = {}, .opener = kReader});
  inode.admit(kReader, nfs4::kShareAccessBoth, start + 1s);
  EXPECT_TRUE(opens());
  EXPECT_FALSE(opens(kReader, start + 1s, nfs4::kShareAccessWrite));
}

TEST_F(WrittenInodeTest, IsReclaimedWhileItsLastCloseSettlesTheData) {
  ASSERT_TRUE(opens(kReader, start + 2s, nfs4::kShareAccessBoth));
  ASSERT_TRUE(inode.release());
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_TRUE(inode.to_reclaim()) << "what is settled may have to be written anew";
  EXPECT_FALSE(inode.settled());
  EXPECT_FALSE(inode.to_reclaim());
}

TEST_F(WrittenInodeTest, IsClosedAndReturnedWhenItEnds) {
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_FALSE(inode.to_reclaim());
  const auto owed = inode.begin_close();
  ASSERT_TRUE(owed && owed->open && owed->delegation);
}

TEST_F(WrittenInodeTest, TheServerIsToldWhatWasLearntLastWithTheChangeOfTheGrant) {
  learn(5, start + 2s);  // by our own writes
  const auto told = inode.told_of_held();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->change, 1u);
  inode.expire();
  EXPECT_TRUE(inode.told_of_held()) << "the server knows of what has happened to the file";
  inode.end_delegation();
  EXPECT_FALSE(inode.told_of_held());
}

// --- locks under it ---

constexpr LockOwner kLocker{LockOwner::Kind::kPosix, 7};
constexpr nfs4::LockRange kRange{0, 9, true};

TEST_F(WrittenInodeTest, IsLockedWithoutTheServerAsLongAsItAndTheLeaseLast) {
  using Verdict = FileLocks::Verdict;
  const auto lock = [&](SteadyTime now) { return inode.lock(kLocker, kRange, {}, now, kLeaseEnd); };
  std::optional<FileLocks::InTheWay> found;
  EXPECT_EQ(lock(kLeaseEnd), Verdict::kAskServer);
  inode.locks().asked_server();
  EXPECT_EQ(lock(start + 2s), Verdict::kGiven);
  EXPECT_EQ(inode.test_lock(kLocker, kRange, start + 2s, kLeaseEnd, found), Verdict::kGiven);
  EXPECT_EQ(lock(kLeaseEnd), Verdict::kWait);
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_EQ(lock(start + 2s), Verdict::kWait);
  EXPECT_EQ(inode.test_lock(kLocker, kRange, start + 2s, kLeaseEnd, found), Verdict::kWait);
  auto work = inode.locks().begin_hand_over();
  ASSERT_TRUE(work);
  ASSERT_TRUE(inode.locks().end_hand_over(*std::move(work)));
  EXPECT_EQ(lock(start + 2s), Verdict::kAskServer);
  inode.locks().asked_server();
}

TEST_F(InodeTest, ALockAsksForADelegationWhereTheFileIsNotLockedYet) {
  const LockOwner locker{LockOwner::Kind::kPosix, 7};
  EXPECT_FALSE(inode.asks_to_lock_here(start)) << "it was never opened to read and write";
  client::FileAttributes said = attributes(1);
  said.status.st_nlink = 1;
  inode.learn(said, start, timeouts, kNow);
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessBoth, {});
  ASSERT_EQ(inode.lock(locker, {0, 9, true}, {}, start, start + 1h), FileLocks::Verdict::kAskServer);
  EXPECT_FALSE(inode.asks_to_lock_here(start)) << "the server is asked";
  inode.locks().asked_server();
  EXPECT_TRUE(inode.asks_to_lock_here(start));
  EXPECT_FALSE(inode.asks_to_lock_here(start + 29s)) << "it was refused, perhaps";
  EXPECT_TRUE(inode.asks_to_lock_here(start + 30s));
  inode.delegated({.stateid = stateid(10, 1)});
  EXPECT_FALSE(inode.asks_to_lock_here(start + 1h)) << "there is one";
}

TEST_F(DelegatedInodeTest, OneToReadLeavesLocksToTheServer) {
  EXPECT_EQ(inode.lock(kLocker, {0, 9, false}, {}, start + 2s, kLeaseEnd), FileLocks::Verdict::kAskServer);
  inode.locks().asked_server();
}

TEST_F(WrittenInodeTest, IsReclaimedWithTheDelegationUnderWhichItIsLocked) {
  ASSERT_TRUE(opens(kReader, start + 2s, nfs4::kShareAccessBoth));
  ASSERT_EQ(inode.lock(kLocker, kRange, {}, start + 2s, kLeaseEnd), FileLocks::Verdict::kGiven);
  auto open = inode.to_reclaim();
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->with_write_delegation);
  // A recall was on the way: it is returned, under the new stateid.
  ASSERT_TRUE(inode.end_delegation());
  EXPECT_TRUE(inode.to_reclaim()->with_write_delegation);
  ASSERT_TRUE(inode.begin_close());
  inode.delegation_reclaimed(stateid(11, 1));
  EXPECT_EQ(inode.delegation(), stateid(11, 1));
  EXPECT_TRUE(inode.delegation_returned(kDelegation)) << "of before";
  const auto owed = inode.begin_close();
  ASSERT_TRUE(owed && owed->delegation);
  EXPECT_EQ(owed->delegation->stateid, stateid(11, 1));
  EXPECT_FALSE(inode.delegation_returned(stateid(11, 1)));
  EXPECT_FALSE(inode.delegation());
}

TEST_F(DelegatedInodeTest, OfAFileThatIsReadTheServerIsToldNothing) {
  EXPECT_FALSE(inode.told_of_held());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
