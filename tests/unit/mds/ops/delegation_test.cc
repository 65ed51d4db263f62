// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/delegation_case.h"

// Read delegations as the network sees them (RFC 8881, 10.2 to 10.5).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::ClaimType;

class DelegationTest : public DelegationCase {};

TEST_F(DelegationTest, AReaderGetsOneAndReadsByIt) {
  begin();
  const auto held = delegation();
  EXPECT_EQ(test(held), Status::kOk);
  EXPECT_EQ(read(held), Status::kOk);
  nfs4::WriteArguments write;
  write.stateid = held;
  EXPECT_EQ(holder_->status({handle(), write}), Status::kOpenMode);
  EXPECT_EQ(holder_->status({nfs4::FreeStateidArguments{held}}), Status::kLocksHeld);
  EXPECT_EQ(other_->status({handle(), nfs4::DelegationReturnArguments{held}}), Status::kBadStateid);
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(read(held), Status::kBadStateid);
  EXPECT_EQ(give_back(held), Status::kBadStateid);
}

// A holder may keep its open for the next reader; nobody has the file open there.
TEST_F(DelegationTest, AnOpenThatIsOnlyKeptDeniesNobody) {
  begin();
  const auto kept = open(*holder_, "f", kWantsRead);
  file_ = holder_->last_handle;
  const nfs4::Stateid held = kept.result.delegation.get_if<nfs4::DelegationType::kRead>()->stateid;
  const Reply reply = ask(*other_, {nfs4::PutRootFileHandleArguments{},
                                    other_->open_arguments("f", kShareRead, nfs4::kShareDenyRead)});
  EXPECT_EQ(status(reply), std::nullopt) << "it is recalled first";
  close(*holder_, kept.result.stateid);
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_F(DelegationTest, WhoSaysNothingGetsOneToo) {
  begin();
  EXPECT_TRUE(open(*holder_, "f", kShareRead).result.delegation.is<nfs4::DelegationType::kRead>());
  EXPECT_TRUE(open(*other_, "f", kShareRead).result.delegation.is<nfs4::DelegationType::kRead>())
      << "readers do not disturb each other";
}

TEST_F(DelegationTest, WhoGetsNoneIsToldWhyIfHeAsked) {
  begin();
  EXPECT_EQ(refusal(open(*holder_, "f", kShareRead | nfs4::kShareAccessWantNoDelegation)),
            WhyNoDelegation::kNotWanted);
  EXPECT_EQ(refusal(open(*holder_, "f", kShareRead | nfs4::kShareAccessWantCancel)),
            WhyNoDelegation::kCancelled);
  EXPECT_EQ(refusal(open(*holder_, "f", kShareRead | nfs4::kShareAccessWantWriteDelegation)),
            WhyNoDelegation::kResource);
  EXPECT_EQ(refusal(open(*holder_, "f", kShareWrite | nfs4::kShareAccessWantAnyDelegation)),
            WhyNoDelegation::kContention);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), std::nullopt) << "what he writes himself is his affair";
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), WhyNoDelegation::kResource) << "he has it";
}

TEST_F(DelegationTest, NoneWithoutABackchannel) {
  begin();
  TestClient deaf(*server_, "deaf");
  deaf.connect();
  EXPECT_EQ(refusal(open(deaf, "f", kWantsRead)), WhyNoDelegation::kResource);
}

TEST_F(DelegationTest, NoneWhereTheAdministratorWantsNone) {
  begin();
  server_->limits.delegations = false;
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), WhyNoDelegation::kNotSupportedFileType);
  EXPECT_TRUE(open(*holder_, "f", kShareRead).result.delegation.is<nfs4::DelegationType::kNone>());
}

TEST_F(DelegationTest, NoneOfAFileThatAnotherMayWrite) {
  begin();
  const auto writing = open(*other_, "f", kShareWrite);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), WhyNoDelegation::kContention);
  close(*other_, writing.result.stateid);
  const auto inode = server_->names->lookup(kRootInode, "f").value()->id;
  server_->layouts.written.insert(inode);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), WhyNoDelegation::kContention) << "by a layout";
  server_->layouts.written.clear();
  delegation();
}

TEST_F(DelegationTest, NoneOfAFileThatIsBeingChanged) {
  begin();
  server_->layouts.hold = true;
  nfs4::SetAttributesArguments cut;
  cut.attributes.size = 0;
  const auto reply = ask(*other_, {handle(), cut});
  ASSERT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(refusal(open(*holder_, "g", kWantsRead)), WhyNoDelegation::kContention)
      << "g is the last one made";
  server_->layouts.release();
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
  EXPECT_EQ(refusal(open(*holder_, "g", kWantsRead)), std::nullopt);
}

// --- recalls ---

class RecallTest : public DelegationTest, public ::testing::WithParamInterface<Act> {};
INSTANTIATE_TEST_SUITE_P(Acts, RecallTest, ::testing::ValuesIn(kChanges),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(RecallTest, AnothersActWaitsUntilItIsReturned) {
  begin();
  const auto held = delegation();
  const auto reply = ask(*other_, GetParam().operations(*other_, file_));
  EXPECT_EQ(status(reply), std::nullopt);
  ASSERT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(holder_->recalls[0].stateid, held);
  EXPECT_EQ(holder_->recalls[0].file_handle, file_);
  EXPECT_EQ(read(held), Status::kOk) << "it is in force until then";
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_P(RecallTest, OnesOwnActRecallsNothing) {
  begin();
  delegation();
  EXPECT_EQ(holder_->status(GetParam().operations(*holder_, file_)), Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
}

TEST_F(DelegationTest, AReaderRecallsNothing) {
  begin();
  delegation();
  EXPECT_TRUE(open(*other_, "f", kShareRead, kShareWrite).ok());
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
}

TEST_F(DelegationTest, ASlowReturnIsAnsweredDelayAndTheFileIsNotDelegatedForAWhile) {
  begin();
  const auto held = delegation();
  auto reply = ask(*other_, write_open());
  pass(kDelegationPatience);
  EXPECT_EQ(status(reply), Status::kDelay);
  reply = ask(*other_, write_open());
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(holder_->recalls.size(), 1U) << "it was asked already";
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
  close(*other_,
        response_at<nfs4::OpenResponse>(*xdr::decode_from<nfs4::CompoundResults>(**reply), 2).result.stateid);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), WhyNoDelegation::kContention);
  pass(kContended);
  server_->clients.lengthen_leases(kContended);
  EXPECT_EQ(refusal(open(*holder_, "f", kWantsRead)), std::nullopt);
}

TEST_F(DelegationTest, FilesAreRememberedAsContendedNoLongerThanThat) {
  Delegations& delegations = server_->delegations;
  constexpr uint64_t kFiles = 5000;
  const auto grant = [&](uint64_t inode) {
    return delegations.grant({.client = 7,
                              .inode = inode,
                              .handle = {},
                              .other = make_stateid_other(StateKind::kDelegation, SteadyTime(), host_.random),
                              .of_client_max = kFiles});
  };
  const auto fight_over = [&](uint64_t inode) {
    const auto held = grant(inode);
    ASSERT_TRUE(held.has_value());
    delegations.recall(inode, 0, [](Status) {});
    ASSERT_TRUE(delegations.give_back(*delegations.table().find(held->other)).has_value());
  };
  for (uint64_t first = 0; first < 3 * kFiles; first += kFiles) {
    for (uint64_t inode = first; inode < first + kFiles; ++inode) fight_over(inode);
    for (uint64_t inode = first; inode < first + kFiles; ++inode)
      ASSERT_EQ(grant(inode), std::unexpected(WhyNoDelegation::kContention)) << "none is forgotten too early";
    EXPECT_LE(delegations.contended_files(), 2 * kFiles) << "those of before give way";
    pass(kContended);
  }
  EXPECT_TRUE(grant(0).has_value());
}

// RFC 8881, 2.10.6.3: it has overtaken the reply that brings the delegation.
TEST_F(DelegationTest, ARecallOfWhatTheClientDoesNotKnowYetIsRepeated) {
  begin();
  const auto held = delegation();
  holder_->recall_status = Status::kBadStateid;
  ask(*other_, write_open());
  EXPECT_EQ(holder_->recalls.size(), 1U);
  pass(Milliseconds(100));
  EXPECT_EQ(holder_->recalls.size(), 2U);
  holder_->recall_status = Status::kOk;
  pass(Milliseconds(100));
  pass(Milliseconds(1000));
  EXPECT_EQ(holder_->recalls.size(), 3U);
  EXPECT_EQ(give_back(held), Status::kOk);
}

TEST_F(DelegationTest, WhatIsNotReturnedInALeaseIsRevoked) {
  begin();
  const auto held = delegation();
  ask(*other_, write_open());
  EXPECT_FALSE(shown_as_revoked());
  let_it_be_revoked();
  EXPECT_TRUE(shown_as_revoked());
  server_->clients.lengthen_leases(Milliseconds(30'000));
  EXPECT_EQ(other_->status(write_open()), Status::kOk);
  EXPECT_EQ(read(held), Status::kDelegRevoked);
  EXPECT_EQ(give_back(held), Status::kDelegRevoked);
  EXPECT_EQ(test(held), Status::kDelegRevoked);
  EXPECT_EQ(holder_->status({nfs4::FreeStateidArguments{held}}), Status::kOk);
  EXPECT_FALSE(shown_as_revoked());
  EXPECT_EQ(test(held), Status::kBadStateid);
}

// --- what was opened by a delegation ---

TEST_F(DelegationTest, WhatIsOpenByItIsOpenedBeforeItIsReturned) {
  begin();
  const auto held = delegation();
  auto by_handle = holder_->open_arguments("", kShareRead, 0, "another");
  by_handle.claim = nfs4::OpenClaim::make<ClaimType::kDelegateCurrentFileHandle>(held);
  EXPECT_EQ(other_->status({handle(), by_handle}), Status::kBadStateid);
  const auto reply = ask(*other_, write_open());
  auto by_name = holder_->open_arguments("", kShareRead, kShareWrite, "local");
  by_name.claim = nfs4::OpenClaim::make<ClaimType::kDelegateCurrent>(nfs4::ClaimDelegateCurrent{held, "f"});
  EXPECT_TRUE(holder_->open(by_name).ok());
  EXPECT_EQ(holder_->status({handle(), by_handle}), Status::kOk);
  by_handle.share_access = kShareWrite;
  EXPECT_EQ(holder_->status({handle(), by_handle}), Status::kInval);
  by_handle.share_access = kShareRead;
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kShareDenied) << "by what was open all the time";
  EXPECT_EQ(holder_->status({handle(), by_handle}), Status::kBadStateid);
}

TEST_F(DelegationTest, ClaimsOfAnEarlierClientAreNotSupported) {
  begin();
  auto arguments = holder_->open_arguments("f", kShareRead);
  arguments.claim = nfs4::OpenClaim::make<ClaimType::kDelegatePrevious>(nfs4::Component("f"));
  EXPECT_EQ(holder_->open(arguments).status, Status::kNotSupp);
}

TEST_F(DelegationTest, AFileRemovedByItsHolderLivesUntilItIsReturned) {
  begin();
  const auto held = delegation();
  EXPECT_EQ(holder_->status({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}}), Status::kOk);
  turns();
  EXPECT_EQ(read(held), Status::kOk);
  EXPECT_TRUE(holder_->recalls.empty()) << "it knows";
  const size_t closed = server_->layouts.closed.size();
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(server_->layouts.closed.size(), closed + 1);
}

TEST_F(DelegationTest, OneCanBeHadWithoutAnOpen) {
  begin();
  nfs4::WantDelegationArguments wish;
  wish.claim = nfs4::DelegationClaim::make<ClaimType::kFileHandle>(xdr::Void{});
  wish.want = nfs4::kShareAccessWantReadDelegation;
  const auto results = holder_->call({handle(), wish});
  EXPECT_TRUE(response_at<nfs4::WantDelegationResponse>(results, 1)
                  .result.delegation.is<nfs4::DelegationType::kRead>());
  wish.want = 0;
  EXPECT_EQ(holder_->status({handle(), wish}), Status::kInval);
}

// --- limits, and the end of clients ---

TEST_F(DelegationTest, WhoHoldsTooManyIsAskedForSome) {
  begin();
  server_->limits.delegations_per_client_max = 1;
  delegation();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(open(*holder_, "g", kWantsRead)), WhyNoDelegation::kResource);
  turns();
  ASSERT_EQ(holder_->any_recalls.size(), 1U);
  EXPECT_TRUE(holder_->any_recalls[0].types.test(nfs4::kRecallAnyReadDelegation));
  EXPECT_TRUE(holder_->any_recalls[0].types.test(nfs4::kRecallAnyWriteDelegation));
}

TEST_F(DelegationTest, AClientWithDelegationsIsBusy) {
  begin();
  const auto held = delegation();
  server_->sessions.destroy_all_of(*server_->clients.find(holder_->id));
  const auto destroy = [&] { return server_->call({nfs4::DestroyClientIdArguments{holder_->id}}).status; };
  EXPECT_EQ(destroy(), Status::kClientIdBusy);
  server_->delegations.forget(*server_->delegation_table.find(held.other));
  EXPECT_EQ(destroy(), Status::kOk);
}

TEST_F(DelegationTest, AnExpiredClientsEndInSlicesAndWhoWaitsGoesOn) {
  begin();
  delegation();
  constexpr size_t kMany = 1000;
  for (size_t i = 0; i < kMany; ++i) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), host_.random);
    state.client = holder_->id;
    state.inode = 1'000'000 + i;
    ASSERT_TRUE(server_->state_store.put(state));
    server_->delegation_table.add(std::move(state));
  }
  server_->leases.start(host_.loop, Milliseconds(1000));
  const auto reply = ask(*other_, write_open());
  server_->clients.find(holder_->id)->lease_end = host_.clock.now() - Milliseconds(1);
  server_->leases.expire_due();
  EXPECT_GT(server_->delegation_table.size(), kMany / 2) << "in one turn";
  turns();
  EXPECT_EQ(server_->delegation_table.size(), 0U);
  EXPECT_EQ(status(reply), Status::kOk);
  start();
  EXPECT_EQ(server_->delegation_table.size(), 0U) << "no record has stayed";
}

// Each of them is an operation that goes on.
TEST_F(DelegationTest, ManyWhoWaitForAFileGoOnSoManyATurn) {
  begin();
  DelegationState& held = *server_->delegation_table.find(delegation().other);
  constexpr size_t kMany = 300;
  size_t done = 0;
  for (size_t i = 0; i < kMany; ++i) {
    server_->delegations.recall(held.inode, other_->id, [&](Status status) {
      EXPECT_EQ(status, Status::kOk);
      ++done;
    });
  }
  EXPECT_EQ(done, 0U);
  ASSERT_TRUE(server_->delegations.give_back(held));
  for (int turn = 0; turn < 10; ++turn) {
    const size_t before = done;
    host_.clock.advance(Milliseconds(100));  // past their patience: they wait no more
    host_.turn();
    EXPECT_LE(done - before, 64U);
  }
  EXPECT_EQ(done, kMany);
}

// Each who goes on gives back what the next one waits for.
TEST_F(DelegationTest, WhoGoesOnIsNotInsideOfAnother) {
  constexpr uint64_t kFiles = 1000;
  std::vector<DelegationState*> held;
  size_t next = 0;
  size_t depth = 0;
  size_t deepest = 0;
  const auto give_back_next = [&] {
    if (next < kFiles) server_->delegations.forget(*held[next++]);
  };
  for (uint64_t file = 1'000'000; file < 1'000'000 + kFiles; ++file) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), host_.random);
    state.client = 1;
    state.inode = file;
    held.push_back(&server_->delegation_table.add(std::move(state)));
    server_->delegations.recall(file, 2, [&](Status status) {
      EXPECT_EQ(status, Status::kOk);
      deepest = std::max(deepest, ++depth);
      give_back_next();
      --depth;
    });
  }
  give_back_next();
  while (next < kFiles) {
    const size_t before = next;
    host_.turn();
    ASSERT_GT(next, before);
    EXPECT_LE(next - before, 64U);
  }
  EXPECT_EQ(deepest, 1U);
}

// --- restarts ---

TEST_F(DelegationTest, ARestartedDaemonKnowsItAndRecallsIt) {
  begin();
  const auto held = delegation();
  start();
  holder_->join(false);
  other_->join(false);
  EXPECT_EQ(test(held), Status::kOk);
  const auto reply = ask(*other_, write_open());
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_F(DelegationTest, ARestartedDaemonKnowsThatItWasRevoked) {
  begin();
  const auto held = delegation();
  ask(*other_, write_open());
  let_it_be_revoked();
  start();
  holder_->join(false);
  EXPECT_TRUE(shown_as_revoked());
  EXPECT_EQ(test(held), Status::kDelegRevoked);
  EXPECT_EQ(holder_->status({nfs4::FreeStateidArguments{held}}), Status::kOk);
  start();
  EXPECT_EQ(server_->delegation_table.size(), 0U);
}

// As a program's file that all hosts run.
TEST_F(DelegationTest, ManyHoldersOfAFileAreAskedSoManyATurn) {
  constexpr uint64_t kFile = 4242;
  constexpr ClientId kHolders = 300;
  constexpr ClientId kExcept = 200;
  constexpr size_t kPerTurn = 64;
  std::vector<DelegationState*> held;
  for (ClientId client = 1; client <= kHolders; ++client) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), host_.random);
    state.client = client;
    state.inode = kFile;
    held.push_back(&server_->delegation_table.add(std::move(state)));
  }
  const auto asked = [&] { return server_->counters.delegations_recalled; };
  std::optional<Status> answer;
  server_->delegations.recall(kFile, kExcept, [&](Status status) { answer = status; });
  EXPECT_EQ(asked(), kPerTurn);
  // One of those that are still to be asked gives his back.
  server_->delegations.forget(*held.back());
  held.pop_back();
  for (size_t turn = 0; turn < kHolders / kPerTurn; ++turn) {
    const size_t before = asked();
    host_.turn();
    EXPECT_LE(asked() - before, kPerTurn);
  }
  EXPECT_EQ(asked(), kHolders - 2) << "all but him, and who asks";
  EXPECT_FALSE(answer);
  for (DelegationState* state : held) {
    if (state->client != kExcept) server_->delegations.forget(*state);
  }
  EXPECT_EQ(answer, Status::kOk);
}

class ReclaimTest : public DelegationTest {
 protected:
  nfs4::Delegation reclaim() {
    holder_->join(false);
    auto arguments = holder_->open_arguments("", kWantsRead);
    arguments.claim = nfs4::OpenClaim::make<ClaimType::kPrevious>(nfs4::DelegationType::kRead);
    const auto results = holder_->call({handle(), arguments});
    EXPECT_EQ(results.status, Status::kOk);
    return response_at<nfs4::OpenResponse>(results, 1).result.delegation;
  }
};

TEST_F(ReclaimTest, AfterARebootItIsReclaimed) {
  begin();
  delegation();
  start(false);
  EXPECT_TRUE(reclaim().is<nfs4::DelegationType::kRead>());
  EXPECT_EQ(server_->delegation_table.size(), 1U);
}

TEST_F(ReclaimTest, WhatWasNotHeldIsNot) {
  begin();
  give_back(delegation());
  start(false);
  EXPECT_FALSE(reclaim().is<nfs4::DelegationType::kRead>());
}

// It is cut off, and believes in its delegation as long as in its lease.
TEST_F(ReclaimTest, WhoHasNotComeBackKeepsOthersFromChangingTheFile) {
  begin();
  delegation();
  start(false);
  const auto change = [&] {
    nfs4::SetAttributesArguments arguments;
    arguments.attributes.mode = 0600;
    return other_->call({handle(), arguments}).status;
  };
  other_->join(true);
  EXPECT_EQ(change(), Status::kGrace);
  holder_->join(true);
  EXPECT_EQ(change(), Status::kOk);
}

// RFC 8881, 8.4.3: the file may have been changed since.
TEST_F(ReclaimTest, NorIsWhatWasRevoked) {
  begin();
  delegation();
  ask(*other_, write_open());
  let_it_be_revoked();
  start(false);
  EXPECT_FALSE(reclaim().is<nfs4::DelegationType::kRead>());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
