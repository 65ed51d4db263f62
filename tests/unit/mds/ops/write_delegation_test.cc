// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/delegation_case.h"

// Write delegations as the network sees them (RFC 8881, 10.4).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::ClaimType;

// What conflicts with a write delegation, and with no other one.
const Act kUses[] = {
    {"OpenToRead",
     [](const TestClient& who, const auto&) { return opening(who.open_arguments("f", kShareRead)); }},
    {"OpenThatDeniesWriting",
     [](const TestClient& who, const auto&) {
       return opening(who.open_arguments("f", kShareRead, kShareWrite));
     }},
    {"TestOfALock",
     [](const TestClient&, const auto& file) -> Operations {
       nfs4::LockTestArguments test;
       test.type = nfs4::LockType::kRead;
       test.length = 1;
       test.owner.owner = nfs4::OwnerId(as_bytes("somebody"));
       return {nfs4::PutFileHandleArguments{file}, test};
     }},
};

class WriteDelegationTest : public DelegationCase {
 protected:
  uint64_t inode() { return server_->handles->decode(file_)->handle.inode; }
  uint64_t change() { return server_->names->get(inode()).value()->change; }
  nfs4::ArgumentOperation question() const {
    nfs4::GetAttributesArguments arguments;
    arguments.requested = nfs4::Bitmap::of(nfs4::Attribute::kChange, nfs4::Attribute::kSize);
    return arguments;
  }
  nfs4::Attributes see(TestClient& who) {
    const auto results = who.call({handle(), question()});
    EXPECT_EQ(results.status, Status::kOk);
    return response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes;
  }
  void says(uint64_t size, uint64_t change) {
    nfs4::CallbackGetAttributesResult result;
    result.attributes.size = size;
    result.attributes.change = change;
    holder_->attributes = result;
  }
  // By the delegation, for the holder's own programs.
  Status open_by(const nfs4::Stateid& held, uint32_t access, const std::string& owner = "local") {
    auto arguments = holder_->open_arguments("", access, 0, owner);
    arguments.claim = nfs4::OpenClaim::make<ClaimType::kDelegateCurrentFileHandle>(held);
    const auto results = holder_->call({handle(), arguments});
    if (results.status == Status::kOk) local_ = response_at<nfs4::OpenResponse>(results, 1).result.stateid;
    return results.status;
  }
  Status lock(TestClient& who, const nfs4::Stateid& open) {
    nfs4::LockArguments arguments;
    arguments.type = nfs4::LockType::kWrite;
    arguments.length = nfs4::kLengthToEnd;
    nfs4::OpenToLockOwner first;
    first.open_stateid = open;
    first.lock_owner.owner = nfs4::OwnerId(as_bytes("locker"));
    arguments.locker = nfs4::LockOwner::make<nfs4::Locker::kNewOwner>(first);
    return who.status({handle(), arguments});
  }

  nfs4::Stateid local_;
};

TEST_F(WriteDelegationTest, WhoReadsAndWritesAndAsksGetsOneAndWritesByIt) {
  begin();
  const auto held = write_delegation();
  EXPECT_EQ(test(held), Status::kOk);
  EXPECT_EQ(read(held), Status::kOk);
  nfs4::WriteArguments write;
  write.stateid = held;
  EXPECT_EQ(holder_->status({handle(), write}), Status::kOk);
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(holder_->status({handle(), write}), Status::kBadStateid);
}

TEST_F(WriteDelegationTest, NoSpaceIsKeptForWhatIsNotWritten) {
  begin();
  const auto opened = open(*holder_, "f", kShareBoth | nfs4::kShareAccessWantAnyDelegation);
  const auto* given = opened.result.delegation.get_if<nfs4::DelegationType::kWrite>();
  ASSERT_NE(given, nullptr);
  const auto* limit = given->space_limit.get_if<nfs4::LimitBy::kSize>();
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(*limit, 0U);
}

TEST_F(WriteDelegationTest, WhoMakesAFileGetsOneToo) {
  begin();
  auto arguments = holder_->open_arguments("new", kWantsWrite);
  arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0600)));
  EXPECT_TRUE(holder_->open(arguments).result.delegation.is<nfs4::DelegationType::kWrite>());
}

TEST_F(WriteDelegationTest, WhoSaysNothingGetsNone) {
  begin();
  EXPECT_TRUE(open(*holder_, "f", kShareBoth).result.delegation.is<nfs4::DelegationType::kNone>());
}

TEST_F(WriteDelegationTest, WhoMayNotReadByItGetsNone) {
  begin();
  EXPECT_EQ(refusal(open(*holder_, "f", kShareWrite | nfs4::kShareAccessWantWriteDelegation)),
            WhyNoDelegation::kResource);
  TestClient deaf(*server_, "deaf");
  deaf.connect();
  EXPECT_EQ(refusal(open(deaf, "g", kWantsWrite)), WhyNoDelegation::kResource) << "nor who cannot be called";
}

TEST_F(WriteDelegationTest, NoneOfAFileThatAnotherUses) {
  begin();
  const auto reading = open(*other_, "f", kShareRead | nfs4::kShareAccessWantNoDelegation);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsWrite)), WhyNoDelegation::kContention) << "by an open";
  close(*other_, reading.result.stateid);
  const auto inode = server_->names->lookup(kRootInode, "f").value()->id;
  server_->layouts.read.insert(inode);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsWrite)), WhyNoDelegation::kContention) << "by a layout";
  server_->layouts.read.clear();
  auto hold = server_->delegations.hold(inode, other_->id, FileAct::kUse);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsWrite)), WhyNoDelegation::kContention) << "by what it does now";
  hold = server_->delegations.hold(inode, holder_->id);
  write_delegation();
}

TEST_F(WriteDelegationTest, TheOnesToReadOfOthersAreRecalledFirst) {
  begin();
  ASSERT_TRUE(open(*other_, "f", kWantsRead).result.delegation.is<nfs4::DelegationType::kRead>());
  const auto reply =
      ask(*holder_, {nfs4::PutRootFileHandleArguments{}, holder_->open_arguments("f", kWantsWrite)});
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(other_->recalls.size(), 1U);
}

TEST_F(WriteDelegationTest, NoneToReadBesideIt) {
  begin();
  write_delegation();
  nfs4::WantDelegationArguments wish;
  wish.claim = nfs4::DelegationClaim::make<ClaimType::kFileHandle>(xdr::Void{});
  wish.want = nfs4::kShareAccessWantReadDelegation;
  const auto results = other_->call({handle(), wish});
  EXPECT_FALSE(response_at<nfs4::WantDelegationResponse>(results, 1)
                   .result.delegation.is<nfs4::DelegationType::kRead>());
}

// --- recalls ---

class ChangeOfAWrittenFile : public WriteDelegationTest, public ::testing::WithParamInterface<Act> {};
class UseOfAWrittenFile : public WriteDelegationTest, public ::testing::WithParamInterface<Act> {};
constexpr auto kNameOfAct = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Acts, ChangeOfAWrittenFile, ::testing::ValuesIn(kChanges), kNameOfAct);
INSTANTIATE_TEST_SUITE_P(Acts, UseOfAWrittenFile, ::testing::ValuesIn(kUses), kNameOfAct);

TEST_P(ChangeOfAWrittenFile, WaitsUntilItIsReturned) {
  begin();
  const auto held = write_delegation();
  const auto reply = ask(*other_, GetParam().operations(*other_, file_));
  EXPECT_EQ(status(reply), std::nullopt);
  ASSERT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(holder_->recalls[0].stateid, held);
  EXPECT_EQ(read(held), Status::kOk) << "it is in force until then";
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_P(UseOfAWrittenFile, WaitsUntilItIsReturned) {
  begin();
  const auto held = write_delegation();
  const auto reply = ask(*other_, GetParam().operations(*other_, file_));
  EXPECT_EQ(status(reply), std::nullopt);
  ASSERT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_P(UseOfAWrittenFile, OnesOwnRecallsNothing) {
  begin();
  write_delegation();
  EXPECT_EQ(holder_->status(GetParam().operations(*holder_, file_)), Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
  EXPECT_TRUE(holder_->questions.empty());
}

TEST_P(UseOfAWrittenFile, DoesNotDisturbAReader) {
  begin();
  delegation();
  EXPECT_EQ(other_->status(GetParam().operations(*other_, file_)), Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
}

// RFC 8881, 10.2.1 and 10.4.4.
TEST_F(WriteDelegationTest, OpensAndLocksUnderItAreGivenToTheServerBeforeItIsReturned) {
  begin();
  const auto held = write_delegation();
  const auto reply =
      ask(*other_, {nfs4::PutRootFileHandleArguments{}, other_->open_arguments("f", kShareBoth)});
  ASSERT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(open_by(held, kShareBoth), Status::kOk);
  EXPECT_EQ(lock(*holder_, local_), Status::kOk);
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  ASSERT_EQ(status(reply), Status::kOk);
  const auto results = *xdr::decode_from<nfs4::CompoundResults>(**reply);
  EXPECT_EQ(lock(*other_, response_at<nfs4::OpenResponse>(results, 2).result.stateid), Status::kDenied);
  EXPECT_EQ(open_by(held, kShareBoth), Status::kBadStateid);
}

TEST_F(WriteDelegationTest, WhatIsNotReturnedInALeaseIsRevoked) {
  begin();
  const auto held = write_delegation();
  ask(*other_, write_open());
  let_it_be_revoked();
  EXPECT_TRUE(shown_as_revoked());
  server_->clients.lengthen_leases(Milliseconds(30'000));
  EXPECT_EQ(other_->status(write_open()), Status::kOk);
  EXPECT_EQ(open_by(held, kShareBoth), Status::kDelegRevoked);
  EXPECT_EQ(holder_->status({nfs4::FreeStateidArguments{held}}), Status::kOk);
}

// Others may lock what its holder has locked from then on.
TEST_F(WriteDelegationTest, ItIsRevokedWhenItsHolderCannotWriteByHimself) {
  begin();
  const auto held = write_delegation();
  ask(*other_, write_open());
  server_->layouts.hold = true;
  let_it_be_revoked();
  const auto fenced = std::vector{std::pair(holder_->id, inode())};
  EXPECT_EQ(server_->layouts.fenced, fenced);
  EXPECT_FALSE(shown_as_revoked());
  server_->clients.lengthen_leases(Milliseconds(30'000));
  EXPECT_EQ(status(ask(*other_, write_open())), std::nullopt) << "waits";
  server_->layouts.release();
  turns();
  EXPECT_TRUE(shown_as_revoked());
  EXPECT_EQ(other_->status(write_open()), Status::kOk);
  EXPECT_EQ(open_by(held, kShareBoth), Status::kDelegRevoked);
}

TEST_F(WriteDelegationTest, ThatStaysSoUntilTheRevocationIsOnRecord) {
  begin();
  const auto held = write_delegation();
  ask(*other_, write_open());
  server_->layouts.hold = true;
  let_it_be_revoked();
  host_.store.stall(1);
  server_->layouts.release();
  turns();
  EXPECT_FALSE(shown_as_revoked());
  EXPECT_FALSE(server_->layouts.fence.expired());
  server_->clients.lengthen_leases(Milliseconds(30'000));
  pass(Milliseconds(1000));
  EXPECT_TRUE(shown_as_revoked());
  EXPECT_TRUE(server_->layouts.fence.expired());
  EXPECT_EQ(open_by(held, kShareBoth), Status::kDelegRevoked);
}

TEST_F(WriteDelegationTest, OneThatIsReturnedBeforeThatIsNotRevoked) {
  begin();
  const auto held = write_delegation();
  ask(*other_, write_open());
  server_->layouts.hold = true;
  let_it_be_revoked();
  EXPECT_EQ(give_back(held), Status::kOk);
  server_->layouts.release();
  turns();
  EXPECT_FALSE(shown_as_revoked());
}

TEST_F(WriteDelegationTest, WhoIsAtWorkOnTheReturnGetsMoreTimeButNotForEver) {
  begin();
  const auto held = write_delegation();
  ask(*other_, write_open());
  for (int lease = 1; lease < kLeasesToReturn; ++lease) {
    for (int half = 0; half < 2; ++half) {
      for (int second = 0; second < 15; ++second) {
        pass(Milliseconds(1000));
        flags();
      }
      EXPECT_EQ(open_by(held, kShareBoth), Status::kOk) << "lease " << lease;
    }
  }
  for (int second = 0; second < 15; ++second) {
    pass(Milliseconds(1000));
    flags();
  }
  EXPECT_EQ(open_by(held, kShareBoth), Status::kOk);
  for (int second = 0; second < 16; ++second) {
    pass(Milliseconds(1000));
    flags();
  }
  EXPECT_EQ(open_by(held, kShareBoth), Status::kDelegRevoked);
}

// --- attributes (10.4.3) ---

TEST_F(WriteDelegationTest, TheHolderSaysHowLongTheFileIs) {
  begin();
  const auto held = write_delegation();
  const uint64_t before = change();
  says(0, before);
  EXPECT_EQ(see(*other_).change, before) << "nothing has changed";
  says(777, before + 1);
  const auto seen = see(*other_);
  EXPECT_EQ(seen.size, 777U);
  EXPECT_GT(*seen.change, before);
  EXPECT_EQ(change(), *seen.change) << "on record";
  EXPECT_EQ(server_->names->get(inode()).value()->size, 0U) << "which the size is not";
  EXPECT_GT(*see(*other_).change, *seen.change) << "it may have changed again";
  EXPECT_EQ(holder_->questions.size(), 3U);
  EXPECT_EQ(holder_->questions[0].file_handle, file_);
  EXPECT_TRUE(holder_->recalls.empty());
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(see(*other_).size, 0U);
}

// While his answer is on its way he writes more, and commits that.
TEST_F(WriteDelegationTest, WhatHeSaidBeforeHeCommittedIsNotShown) {
  begin();
  write_delegation();
  says(8192, change() + 1);
  holder_->is_silent = true;
  const Reply reply = ask(*other_, {handle(), question()});
  ASSERT_EQ(holder_->questions.size(), 1U);
  ASSERT_TRUE(server_->names->update(inode(), {.size = 12288, .mtime = WallTime{5, 0}}));
  holder_->answer_at_last();
  turns();
  ASSERT_EQ(status(reply), Status::kOk);
  const auto results = *xdr::decode_from<nfs4::CompoundResults>(**reply);
  const auto& seen = response_at<nfs4::GetAttributesResponse>(results, 2).result.attributes;
  EXPECT_EQ(seen.size, 12288U);
  EXPECT_EQ(seen.change, change());
}

// He may have cut the file himself, and have had no answer yet.
TEST_F(WriteDelegationTest, OfAFileThatIsNotChangedTheServerKnowsTheSize) {
  begin();
  write_delegation();
  const uint64_t before = change();
  says(5, before);
  const auto seen = see(*other_);
  EXPECT_EQ(*seen.change, before);
  EXPECT_EQ(*seen.size, 0U);
}

TEST_F(WriteDelegationTest, AListingShowsTheSizeThatWasShownWithTheSameChange) {
  begin();
  write_delegation();
  const auto listed = [&] {
    nfs4::ReadDirectoryArguments read;
    read.max_count = 4096;
    read.requested = nfs4::Bitmap::of(nfs4::Attribute::kChange, nfs4::Attribute::kSize);
    const auto results = other_->call({nfs4::PutRootFileHandleArguments{}, read});
    const auto& entries = response_at<nfs4::ReadDirectoryResponse>(results, 1).result.entries;
    const auto found = std::ranges::find(entries, "f", [](const auto& entry) { return entry.name; });
    return std::pair(*found->attributes.change, *found->attributes.size);
  };
  says(777, change() + 1);
  EXPECT_EQ(listed().second, 0U) << "nobody has asked";
  const auto seen = see(*other_);
  EXPECT_EQ(listed(), std::pair(*seen.change, uint64_t{777}));
  EXPECT_EQ(holder_->questions.size(), 1U);
  // He cuts it himself: that is on record, under another change.
  nfs4::SetAttributesArguments cut;
  cut.attributes.mode = 0600;
  EXPECT_EQ(holder_->status({handle(), cut}), Status::kOk);
  EXPECT_EQ(listed(), std::pair(change(), uint64_t{0}));
}

TEST_F(WriteDelegationTest, HeIsAskedForNothingThatTheServerKnows) {
  begin();
  write_delegation();
  nfs4::GetAttributesArguments mode;
  mode.requested.set(nfs4::Attribute::kMode);
  EXPECT_EQ(other_->status({handle(), mode}), Status::kOk);
  EXPECT_TRUE(holder_->questions.empty());
}

TEST_F(WriteDelegationTest, VerifyComparesWithWhatHeSays) {
  begin();
  write_delegation();
  says(777, 0);
  nfs4::VerifyArguments verify;
  verify.attributes.size = 777;
  EXPECT_EQ(other_->status({handle(), verify}), Status::kOk);
}

TEST_F(WriteDelegationTest, WhoDoesNotSayInTimeLosesIt) {
  begin();
  const auto held = write_delegation();
  holder_->is_silent = true;
  const auto reply = ask(*other_, {handle(), question()});
  EXPECT_EQ(holder_->questions.size(), 1U);
  EXPECT_EQ(status(reply), std::nullopt);
  pass(kDelegationPatience);
  EXPECT_EQ(status(reply), Status::kOk) << "nobody waits for a host that hangs";
  EXPECT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(see(*other_).size, 0U);
}

// Else each look at one of its files would take as long, and leave a call behind.
TEST_F(WriteDelegationTest, WhoHasNotSaidIsAskedNothingUntilHeIsHeardOf) {
  begin();
  const auto first = write_delegation();
  const auto file = file_;
  const auto second = open(*holder_, "g", kWantsWrite);
  ASSERT_TRUE(second.result.delegation.is<nfs4::DelegationType::kWrite>());
  const auto other_file = holder_->last_handle;
  holder_->is_silent = true;
  const auto reply = ask(*other_, {handle(), question()});
  pass(kDelegationPatience);
  ASSERT_EQ(status(reply), Status::kOk);
  EXPECT_EQ(holder_->questions.size(), 1U);
  for (const auto& looked_at : {file, other_file, file}) {
    file_ = looked_at;
    EXPECT_EQ(other_->status({handle(), question()}), Status::kOk) << "at once";
  }
  EXPECT_EQ(holder_->questions.size(), 1U);
  holder_->answer_at_last();
  turns();
  file_ = other_file;
  says(9, 0);
  EXPECT_EQ(see(*other_).size, 9U);
}

TEST_F(WriteDelegationTest, ManyWhoAskShareTwoQuestions) {
  begin();
  write_delegation();
  says(9, 0);
  size_t told = 0;
  constexpr size_t kMany = 300;
  for (size_t i = 0; i < kMany; ++i) {
    server_->delegations.ask_holder(inode(), [&](std::optional<Delegations::Told> answer) {
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->size, 9U);
      ++told;
    });
  }
  for (int turn = 0; turn < 20 && told < kMany; ++turn) {
    const size_t before = told;
    host_.turn();
    EXPECT_LE(told - before, 128U);
  }
  EXPECT_EQ(told, kMany);
  EXPECT_EQ(holder_->questions.size(), 2U) << "one, and one for who came while that was under way";
}

// --- restarts ---

TEST_F(WriteDelegationTest, ARestartedDaemonKnowsItAndRecallsIt) {
  begin();
  const auto held = write_delegation();
  start();
  holder_->join(false);
  other_->join(false);
  EXPECT_EQ(test(held), Status::kOk);
  const uint64_t before = change();
  says(0, before);
  EXPECT_EQ(*see(*other_).change, before) << "nothing has changed";
  EXPECT_EQ(change(), before);
  const auto reply =
      ask(*other_, {nfs4::PutRootFileHandleArguments{}, other_->open_arguments("f", kShareRead)});
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(open_by(held, kShareBoth), Status::kOk);
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

class WriteReclaimTest : public WriteDelegationTest {
 protected:
  nfs4::Delegation reclaim(nfs4::DelegationType type) {
    holder_->join(false);
    auto arguments = holder_->open_arguments("", kShareBoth);
    arguments.claim = nfs4::OpenClaim::make<ClaimType::kPrevious>(type);
    const auto results = holder_->call({handle(), arguments});
    EXPECT_EQ(results.status, Status::kOk);
    return response_at<nfs4::OpenResponse>(results, 1).result.delegation;
  }
};

TEST_F(WriteReclaimTest, AfterARebootItIsReclaimed) {
  begin();
  write_delegation();
  start(false);
  EXPECT_TRUE(reclaim(nfs4::DelegationType::kWrite).is<nfs4::DelegationType::kWrite>());
  EXPECT_NE(server_->delegation_table.write_delegation(inode()), nullptr);
}

TEST_F(WriteReclaimTest, OneToReadIsReclaimedAsThatOnly) {
  begin();
  delegation();
  start(false);
  EXPECT_FALSE(reclaim(nfs4::DelegationType::kWrite).is<nfs4::DelegationType::kWrite>());
}

TEST_F(WriteReclaimTest, NotOfAFileThatAnotherHasReclaimed) {
  begin();
  write_delegation();
  start(false);
  other_->join(false);
  auto arguments = other_->open_arguments("", kShareRead);
  arguments.claim = nfs4::OpenClaim::make<ClaimType::kPrevious>(nfs4::DelegationType::kNone);
  EXPECT_EQ(other_->status({handle(), arguments}), Status::kOk);
  EXPECT_FALSE(reclaim(nfs4::DelegationType::kWrite).is<nfs4::DelegationType::kWrite>());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
