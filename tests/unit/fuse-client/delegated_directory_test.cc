// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/fuse-client/inode_case.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace inode_case;
using AskedFor = Inode::AskedFor;

// A directory of which this client knows some names.
class DelegatedDirectoryTest : public InodeTest {
 protected:
  DelegatedDirectoryTest() { learn(5, start); }
  void learn(uint64_t change, SteadyTime at) {
    client::FileAttributes said = attributes(change);
    said.status.st_mode = S_IFDIR | 0755;
    inode.learn(said, at, timeouts, kNow);
  }
  void delegate(SteadyTime asked_at, SteadyTime answered_at) {
    inode.delegated({.stateid = kDelegation, .times = {.asked_at = asked_at, .answered_at = answered_at}});
  }
  bool has(std::string_view name, SteadyTime now) const {
    return inode.found_name_at(name, now, timeouts, kLeaseEnd).has_value();
  }
  bool lacks(std::string_view name, SteadyTime now) const {
    return inode.lacks_name(name, now, timeouts, kLeaseEnd);
  }

  const nfs4::Stateid kDelegation = stateid(9, 1);
  const SteadyTime kLeaseEnd = start + 1h;
};

TEST_F(DelegatedDirectoryTest, NamesAndListingsAreBelievedUntilTheLeaseEnds) {
  inode.name_is_found("a", 5);
  inode.name_is_absent("b", 5);
  inode.listed(5, start);
  EXPECT_FALSE(has("a", start + 59min));
  delegate(start + 1s, start + 2s);
  EXPECT_FALSE(has("a", start + 59min)) << "it was not asked for since";
  learn(5, start + 1s);
  EXPECT_TRUE(inode.is_directory_delegated(start + 1s, kLeaseEnd));
  EXPECT_TRUE(has("a", start + 59min));
  EXPECT_TRUE(lacks("b", start + 59min));
  EXPECT_TRUE(inode.keeps_listing(start + 59min, timeouts, kLeaseEnd));
  EXPECT_TRUE(inode.is_as_listed(5, start - 10min, start + 59min, timeouts, kLeaseEnd));
  EXPECT_FALSE(inode.is_as_listed(4, start, start + 59min, timeouts, kLeaseEnd));
  EXPECT_TRUE(inode.believed(start + 59min, std::nullopt, 0, kLeaseEnd));
  EXPECT_FALSE(has("a", kLeaseEnd));
  EXPECT_FALSE(lacks("b", kLeaseEnd));
  EXPECT_FALSE(inode.is_directory_delegated(kLeaseEnd, kLeaseEnd));
  learn(5, start + 1500ms);  // beside it: it may be older than a change before it
  EXPECT_FALSE(has("a", start + 59min));
  learn(5, start + 2s);
  EXPECT_TRUE(has("a", start + 59min));
}

TEST_F(DelegatedDirectoryTest, OwnChangesAreFollowed) {
  delegate(start, start + 1s);
  inode.names_complete({"a", "b"}, 5);
  inode.change_names(
      [](DirectoryNames& names) { names.removed("a", {.atomic = true, .before = 5, .after = 6}); });
  EXPECT_FALSE(lacks("a", start + 50min)) << "until its attributes have come, too";
  learn(6, start + 2s);
  EXPECT_TRUE(lacks("a", start + 50min));
  EXPECT_FALSE(lacks("b", start + 50min));
}

TEST_F(DelegatedDirectoryTest, TheListOfSnapshotsComesAndGoesWithoutARecall) {
  delegate(start, start + 1s);
  inode.name_is_found(".snapshots", 5);
  EXPECT_TRUE(has(".snapshots", start + 1s));
  EXPECT_FALSE(has(".snapshots", start + 10min));
  EXPECT_FALSE(lacks(".snapshots", start + 1s));
}

TEST_F(DelegatedDirectoryTest, NothingIsBelievedBehindARecallBeforeTheServerIsAskedAgain) {
  delegate(start, start + 1s);
  inode.name_is_found("a", 5);
  inode.name_is_absent("b", 5);
  inode.listed(5, start);
  EXPECT_TRUE(inode.end_delegation());
  EXPECT_FALSE(has("a", start + 1s));
  EXPECT_FALSE(lacks("b", start + 1s));
  EXPECT_FALSE(inode.keeps_listing(start + 1s, timeouts, kLeaseEnd));
  EXPECT_FALSE(inode.believed(start + 1s, std::nullopt, 0, kLeaseEnd));
  EXPECT_FALSE(inode.is_directory_delegated(start + 1s, kLeaseEnd));
  EXPECT_EQ(inode.begin_close()->delegation->stateid, kDelegation);
  learn(5, start + 2s);
  EXPECT_FALSE(has("a", start + 2s));
  EXPECT_TRUE(inode.keeps_listing(start + 2s, timeouts, kLeaseEnd)) << "as without a delegation";
  inode.name_is_found("a", 5);
  EXPECT_TRUE(has("a", start + 2s));
  EXPECT_FALSE(has("a", start + 10min));
}

TEST_F(DelegatedDirectoryTest, IsAskedForAtTheSecondListingOrManyNamesInARow) {
  EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kListing, start));
  EXPECT_TRUE(inode.wants_directory_delegation(AskedFor::kListing, start));
  for (uint32_t i = 1; i < Inode::kLookUpsInARow; ++i)
    EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kName, start + i * 10ms));
  EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kName, start + 10s)) << "a row of its own";
  for (uint32_t i = 2; i < Inode::kLookUpsInARow; ++i)
    EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kName, start + 10s));
  EXPECT_TRUE(inode.wants_directory_delegation(AskedFor::kName, start + 10s));
  inode.directory_delegation_refused(start + 10s);
  EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kListing, start + 39s));
  EXPECT_TRUE(inode.wants_directory_delegation(AskedFor::kListing, start + 40s));
  delegate(start + 40s, start + 40s);
  EXPECT_FALSE(inode.wants_directory_delegation(AskedFor::kListing, start + 40s));
}

TEST_F(DelegatedDirectoryTest, ARecallWaitsForTheAnswerThatBringsIt) {
  EXPECT_EQ(inode.holds_delegation(kDelegation), Inode::Holds::kNo);
  inode.begin_asking();
  EXPECT_EQ(inode.holds_delegation(kDelegation), Inode::Holds::kPerhapsSoon);
  delegate(start, start + 1s);
  EXPECT_EQ(inode.holds_delegation(kDelegation), Inode::Holds::kYes);
  inode.end_asking();
  inode.drop_delegation();
  EXPECT_EQ(inode.holds_delegation(kDelegation), Inode::Holds::kNo);
  EXPECT_FALSE(inode.begin_close());
}

TEST_F(DelegatedDirectoryTest, TheSecondLapseInARowIsReasonToAskForMany) {
  EXPECT_FALSE(inode.lapses_in_a_row(start));
  EXPECT_TRUE(inode.lapses_in_a_row(start + 1ms));
  EXPECT_TRUE(inode.lapses_in_a_row(start + 500ms)) << "the next page";
  EXPECT_FALSE(inode.lapses_in_a_row(start + 10s));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
