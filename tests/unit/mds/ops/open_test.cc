// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class OpenTest : public ::testing::Test {
 protected:
  OpenTest() { client_.connect(); }

  nfs4::OpenArguments create(const std::string& name, nfs4::CreateMode mode, nfs4::Attributes attributes,
                             uint32_t access = kShareBoth) {
    auto arguments = client_.open_arguments(name, access);
    arguments.how = creating(create_how(mode, std::move(attributes)));
    return arguments;
  }
  nfs4::OpenArguments exclusive(const std::string& name, uint8_t verifier) {
    auto arguments = client_.open_arguments(name, kShareBoth);
    nfs4::Verifier bytes{};
    bytes[0] = std::byte{verifier};
    arguments.how = creating(nfs4::CreateHow::make<nfs4::CreateMode::kExclusive>(bytes));
    return arguments;
  }
  nfs4::OpenResponse make(const std::string& name) {
    return client_.open(create(name, nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
  }
  nfs4::ArgumentOperation handle() const { return nfs4::PutFileHandleArguments{client_.last_handle}; }
  Status close(const nfs4::Stateid& stateid) {
    nfs4::CloseArguments arguments;
    arguments.open_stateid = stateid;
    return client_.status({handle(), arguments});
  }
  uint64_t size() {
    const auto results =
        client_.call({handle(), nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kSize)}});
    return *response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes.size;
  }
  Status write(const nfs4::Stateid& stateid, std::string_view text) {
    nfs4::WriteArguments arguments;
    arguments.stateid = stateid;
    arguments.data = nfs4::Data::view_of(as_bytes(text));
    return client_.status({handle(), arguments});
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
};

TEST_F(OpenTest, OfANameThatIsNotThere) {
  EXPECT_EQ(client_.open(client_.open_arguments("f", kShareRead)).status, Status::kNoEnt);
}

TEST_F(OpenTest, UncheckedCreatesOrOpensAndTruncatesOnlyWithSizeZero) {
  const auto made = make("f");
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made.result.change.atomic);
  EXPECT_NE(made.result.change.before, made.result.change.after);
  EXPECT_NE(made.result.flags & nfs4::kOpenResultPreserveUnlinked, 0U);
  ASSERT_EQ(write(made.result.stateid, "hello"), Status::kOk);
  nfs4::Attributes attributes = mode_attribute(0600);
  attributes.size = 3;
  const auto again = client_.open(create("f", nfs4::CreateMode::kUnchecked, attributes));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again.result.attributes_set.none());
  EXPECT_EQ(size(), 5U);
  attributes.size = 0;
  const auto truncated = client_.open(create("f", nfs4::CreateMode::kUnchecked, attributes));
  EXPECT_TRUE(truncated.result.attributes_set.test(nfs4::Attribute::kSize));
  EXPECT_EQ(size(), 0U);
}

TEST_F(OpenTest, GuardedRefusesWhatExists) {
  EXPECT_TRUE(client_.open(create("f", nfs4::CreateMode::kGuarded, mode_attribute(0644))).ok());
  EXPECT_EQ(client_.open(create("f", nfs4::CreateMode::kGuarded, mode_attribute(0644))).status,
            Status::kExist);
}

TEST_F(OpenTest, ExclusiveKnowsItsRetryByTheVerifier) {
  const auto first = client_.open(exclusive("f", 1));
  ASSERT_TRUE(first.ok());
  const auto retried = client_.open(exclusive("f", 1));
  ASSERT_TRUE(retried.ok());
  EXPECT_EQ(first.result.stateid.other, retried.result.stateid.other);
  EXPECT_EQ(client_.open(exclusive("f", 2)).status, Status::kExist);
}

TEST_F(OpenTest, Exclusive41SetsAttributesAtOnce) {
  auto arguments = client_.open_arguments("f", kShareBoth);
  nfs4::ExclusiveCreate how;
  how.attributes = mode_attribute(0640);
  arguments.how = creating(nfs4::CreateHow::make<nfs4::CreateMode::kExclusive41>(how));
  const auto opened = client_.open(arguments);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.result.attributes_set.test(nfs4::Attribute::kMode));
}

TEST_F(OpenTest, CreationWithASizeAsksNoBrick) {
  nfs4::Attributes attributes = mode_attribute(0644);
  attributes.size = 100;
  server_.layouts.hold = true;
  const auto made = client_.open(create("f", nfs4::CreateMode::kGuarded, attributes));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made.result.attributes_set.test(nfs4::Attribute::kSize));
  EXPECT_EQ(server_.layouts.size_changes, 0);
  EXPECT_EQ(size(), 100U);
}

TEST_F(OpenTest, WhatIsPutOffHasCreatedNothing) {
  const auto first = make("f");
  ASSERT_TRUE(first.ok());
  server_.limits.opens_per_client_max = 1;
  EXPECT_EQ(client_.open(create("g", nfs4::CreateMode::kGuarded, mode_attribute(0644))).status,
            Status::kDelay);
  EXPECT_EQ(client_.open(client_.open_arguments("g", kShareRead)).status, Status::kNoEnt);
  ASSERT_EQ(close(first.result.stateid), Status::kOk);
  EXPECT_TRUE(client_.open(create("g", nfs4::CreateMode::kGuarded, mode_attribute(0644))).ok());
}

// A crash, or a store that refuses the second batch, would leave a name that the next GUARDED one meets.
TEST_F(OpenTest, AFileAndTheOpenThatMakesItAreOneBatch) {
  for (const auto mode : {nfs4::CreateMode::kGuarded, nfs4::CreateMode::kUnchecked}) {
    const std::string name = mode == nfs4::CreateMode::kGuarded ? "guarded" : "unchecked";
    const Sequence before = host_.store.last_sequence();
    const auto made = client_.open(create(name, mode, mode_attribute(0644)));
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(host_.store.last_sequence(), before + 1);
    EXPECT_EQ(write(made.result.stateid, "x"), Status::kOk);
    EXPECT_EQ(close(made.result.stateid), Status::kOk);
  }
  EXPECT_EQ(server_.opens.size(), 0U);
}

TEST_F(OpenTest, TruncationThatWaitsForABrickHappensOnce) {
  ASSERT_TRUE(make("f").ok());
  nfs4::Attributes attributes = mode_attribute(0644);
  attributes.size = 0;
  server_.layouts.hold = true;
  const auto reply = server_.begin({client_.next_sequence(), nfs4::PutRootFileHandleArguments{},
                                    create("f", nfs4::CreateMode::kUnchecked, attributes)});
  host_.turn();
  EXPECT_EQ(*reply, nullptr);
  server_.layouts.release();
  host_.turn();
  ASSERT_NE(*reply, nullptr);
  const auto results = xdr::decode_from<nfs4::CompoundResults>(**reply);
  EXPECT_EQ(results->status, Status::kOk);
  EXPECT_EQ(server_.layouts.size_changes, 1);
}

TEST_F(OpenTest, ArgumentsAreChecked) {
  EXPECT_EQ(client_.open(client_.open_arguments("f", 0)).status, Status::kInval);
  EXPECT_EQ(client_.open(client_.open_arguments("f", kShareRead, 4)).status, Status::kInval);
  EXPECT_EQ(client_.open(client_.open_arguments("", kShareRead)).status, Status::kInval);
  EXPECT_EQ(client_.open(client_.open_arguments("..", kShareRead)).status, Status::kBadName);
  EXPECT_EQ(client_.open(client_.open_arguments(std::string(300, 'x'), kShareRead)).status,
            Status::kNameTooLong);
  auto wrong_size = mode_attribute(0644);
  wrong_size.time_modify = nfs4::Time{};
  EXPECT_EQ(client_.open(create("f", nfs4::CreateMode::kUnchecked, wrong_size)).status, Status::kInval);
}

TEST_F(OpenTest, OnlyRegularFilesAreOpened) {
  nfs4::CreateArguments directory;
  directory.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  directory.name = "d";
  nfs4::CreateArguments link;
  link.type = nfs4::CreateType::make<nfs4::FileType::kLink>("target");
  link.name = "l";
  ASSERT_EQ(client_.status({nfs4::PutRootFileHandleArguments{}, directory}), Status::kOk);
  ASSERT_EQ(client_.status({nfs4::PutRootFileHandleArguments{}, link}), Status::kOk);
  EXPECT_EQ(client_.open(client_.open_arguments("d", kShareRead)).status, Status::kIsDir);
  EXPECT_EQ(client_.open(client_.open_arguments("l", kShareRead)).status, Status::kSymlink);
}

TEST_F(OpenTest, WhoMayExecuteReads) {
  ASSERT_TRUE(client_.open(create("program", nfs4::CreateMode::kUnchecked, mode_attribute(0711))).ok());
  ASSERT_TRUE(client_.open(create("plain", nfs4::CreateMode::kUnchecked, mode_attribute(0600))).ok());
  client_.who = {.uid = 12, .gid = 12, .groups = {}};
  EXPECT_EQ(client_.open(client_.open_arguments("program", kShareRead)).status, Status::kOk);
  EXPECT_EQ(client_.open(client_.open_arguments("program", kShareWrite)).status, Status::kAccess);
  EXPECT_EQ(client_.open(client_.open_arguments("program", kShareBoth)).status, Status::kAccess);
  EXPECT_EQ(client_.open(client_.open_arguments("plain", kShareRead)).status, Status::kAccess);
}

TEST_F(OpenTest, UpgradeKeepsTheStateidAndMovesItsSeqid) {
  ASSERT_TRUE(make("f").ok());
  const auto again = client_.open(client_.open_arguments("f", kShareRead));
  EXPECT_EQ(again.result.stateid.seqid, 2U);
  EXPECT_EQ(server_.opens.size(), 1U);
  const auto other = client_.open(client_.open_arguments("f", kShareRead, 0, "another owner"));
  EXPECT_EQ(other.result.stateid.seqid, 1U);
  EXPECT_EQ(server_.opens.size(), 2U);
}

TEST_F(OpenTest, ShareReservationsAreKept) {
  ASSERT_TRUE(make("f").ok());
  EXPECT_EQ(client_.open(client_.open_arguments("f", kShareRead, kShareWrite, "b")).status,
            Status::kShareDenied);
  TestClient other(server_, "other");
  other.connect();
  EXPECT_TRUE(other.open(other.open_arguments("f", kShareRead)).ok());
  EXPECT_EQ(other.open(other.open_arguments("f", kShareRead, kShareRead)).status, Status::kShareDenied);
}

TEST_F(OpenTest, DenyTakesLayoutsBackFirst) {
  ASSERT_EQ(close(make("f").result.stateid), Status::kOk);
  ASSERT_TRUE(client_.open(client_.open_arguments("f", kShareBoth, kShareWrite)).ok());
  EXPECT_EQ(server_.layouts.access_changes, 1);
}

TEST_F(OpenTest, ModeOfAnOpenBoundsItsIo) {
  ASSERT_EQ(close(make("f").result.stateid), Status::kOk);
  const auto reading = client_.open(client_.open_arguments("f", kShareRead));
  EXPECT_EQ(write(reading.result.stateid, "x"), Status::kOpenMode);
}

TEST_F(OpenTest, StateidRules) {
  const auto opened = make("f");
  nfs4::Stateid stateid = opened.result.stateid;
  stateid.seqid = 2;
  EXPECT_EQ(write(stateid, "x"), Status::kBadStateid);
  ASSERT_TRUE(client_.open(client_.open_arguments("f", kShareRead)).ok());
  stateid.seqid = 1;
  EXPECT_EQ(write(stateid, "x"), Status::kOldStateid);
  stateid.seqid = 0;
  EXPECT_EQ(write(stateid, "x"), Status::kOk);
  stateid.other[5] ^= std::byte{1};
  EXPECT_EQ(write(stateid, "x"), Status::kBadStateid);
  EXPECT_EQ(write(nfs4::Stateid::invalid(), "x"), Status::kBadStateid);
  EXPECT_EQ(write(nfs4::Stateid::current(), "x"), Status::kBadStateid);
  EXPECT_EQ(write(nfs4::Stateid::anonymous(), "x"), Status::kOk);
}

TEST_F(OpenTest, CurrentStateidIsTheOneOpenLeft) {
  ASSERT_TRUE(make("f").ok());
  nfs4::CloseArguments close_current;
  close_current.open_stateid = nfs4::Stateid::current();
  EXPECT_EQ(client_.status(
                {nfs4::PutRootFileHandleArguments{}, client_.open_arguments("f", kShareRead), close_current}),
            Status::kOk);
  EXPECT_EQ(server_.opens.size(), 0U);
}

TEST_F(OpenTest, AnotherClientsStateidIsBad) {
  const auto opened = make("f");
  TestClient other(server_, "other");
  other.connect();
  nfs4::CloseArguments arguments;
  arguments.open_stateid = opened.result.stateid;
  EXPECT_EQ(other.status({handle(), arguments}), Status::kBadStateid);
}

TEST_F(OpenTest, CloseEndsItAndTellsTheLayouts) {
  const auto opened = make("f");
  EXPECT_EQ(close(opened.result.stateid), Status::kOk);
  EXPECT_EQ(server_.layouts.closed.size(), 1U);
  EXPECT_EQ(close(opened.result.stateid), Status::kBadStateid);
}

TEST_F(OpenTest, DowngradeGoesBackToWhatWasOpened) {
  ASSERT_EQ(close(make("f").result.stateid), Status::kOk);
  ASSERT_TRUE(client_.open(client_.open_arguments("f", kShareRead)).ok());
  const auto both = client_.open(client_.open_arguments("f", kShareBoth));
  nfs4::OpenDowngradeArguments downgrade;
  downgrade.open_stateid = both.result.stateid;
  downgrade.share_access = kShareWrite;  // no OPEN asked for this alone
  EXPECT_EQ(client_.status({handle(), downgrade}), Status::kInval);
  downgrade.share_access = kShareRead;
  EXPECT_EQ(client_.status({handle(), downgrade}), Status::kOk);
  nfs4::Stateid stateid = both.result.stateid;
  stateid.seqid = 3;
  EXPECT_EQ(write(stateid, "x"), Status::kOpenMode);
}

TEST_F(OpenTest, WishForADelegationIsAnswered) {
  ASSERT_TRUE(make("f").ok());
  auto arguments = client_.open_arguments("f", kShareRead | nfs4::kShareAccessWantNoDelegation);
  const auto opened = client_.open(arguments);
  const auto* none = opened.result.delegation.get_if<nfs4::DelegationType::kNoneExtended>();
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->discriminant(), nfs4::WhyNoDelegation::kNotWanted);
}

TEST_F(OpenTest, UnlinkedFileLivesUntilItsLastClose) {
  const auto opened = make("f");
  ASSERT_EQ(write(opened.result.stateid, "kept"), Status::kOk);
  ASSERT_EQ(client_.status({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}}), Status::kOk);
  EXPECT_EQ(server_.layouts.orphaned.size(), 1U);
  EXPECT_EQ(size(), 4U);
  EXPECT_EQ(close(opened.result.stateid), Status::kOk);
  EXPECT_EQ(server_.layouts.closed.size(), 1U);
}

TEST_F(OpenTest, ByFilehandle) {
  ASSERT_EQ(close(make("f").result.stateid), Status::kOk);
  auto arguments = client_.open_arguments("", kShareRead);
  arguments.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kFileHandle);
  EXPECT_EQ(client_.status({handle(), arguments}), Status::kOk);
  arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked));
  EXPECT_EQ(client_.status({handle(), arguments}), Status::kInval);
}

TEST_F(OpenTest, FreeAndTestStateid) {
  const auto opened = make("f");
  nfs4::TestStateidArguments test;
  test.stateids = {
      {opened.result.stateid, nfs4::Stateid{1, {std::byte{1}, std::byte{2}}}, nfs4::Stateid::anonymous()}};
  const auto results = client_.call({test});
  const auto& statuses = response_at<nfs4::TestStateidResponse>(results, 0).result.statuses;
  EXPECT_EQ(statuses, (std::vector<Status>{Status::kOk, Status::kBadStateid, Status::kBadStateid}));
  EXPECT_EQ(client_.status({nfs4::FreeStateidArguments{opened.result.stateid}}), Status::kLocksHeld);
}

}  // namespace
}  // namespace pnfsrdma::mds
