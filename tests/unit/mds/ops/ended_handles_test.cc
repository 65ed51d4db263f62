// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/ended_handles.h"

#include "tests/unit/mds/ops/delegation_case.h"

// What becomes of delegations when the handles end under which they were given.
namespace pnfsrdma::mds::testing {
namespace {

class EndedHandles : public DelegationCase {
 protected:
  static Export export_of(const std::string& path) {
    Export made = TestServer::default_export();
    made.path = path;
    return made;
  }
  // As ExportKeeper changes them.
  void add(const std::string& path) {
    Export added = export_of(path);
    added.id = server_->exports.next_id();
    const Export* around = server_->exports.around(added);
    Batch batch;
    const auto keys = server_->handles->prepare_add(batch, added, around);
    ASSERT_TRUE(host_.store.commit(batch, CommitKind::kNamespace));
    server_->handles->apply(keys);
    server_->exports.add(added);
    look();
  }
  void remove(uint16_t id) {
    Batch batch;
    const auto keys = server_->handles->prepare_remove(batch, *server_->exports.find(id));
    ASSERT_TRUE(host_.store.commit(batch, CommitKind::kNamespace));
    server_->handles->apply(keys);
    server_->exports.remove(id);
    look();
  }
  void look() {
    recall_under_ended_handles(server_->delegations, *server_->handles);
    turns();
  }
  size_t held() const { return server_->delegation_table.size(); }
  void expect_return_alone(const std::function<void()>& change, Status refused) {
    const auto stateid = delegation();
    const auto opened = open(*holder_, "g", kShareRead | nfs4::kShareAccessWantNoDelegation).result.stateid;
    const nfs4::ArgumentOperation g = nfs4::PutFileHandleArguments{holder_->last_handle};
    change();
    recall_of_export(server_->delegations, *server_->handles, 1);
    turns();
    expect_recalled(stateid);
    EXPECT_EQ(read(stateid), refused);
    EXPECT_EQ(holder_->status({g, nfs4::SaveFileHandleArguments{}}), refused);
    EXPECT_EQ(holder_->status({g, nfs4::GetFileHandleArguments{}}), refused);
    EXPECT_EQ(give_back(stateid), Status::kOk);
    EXPECT_EQ(held(), 0U);
    nfs4::CloseArguments close;
    close.open_stateid = opened;
    EXPECT_EQ(holder_->status({g, close}), Status::kOk);
    EXPECT_EQ(server_->opens.size(), 0U);
  }
  void expect_recalled(const nfs4::Stateid& stateid) {
    ASSERT_EQ(holder_->recalls.size(), 1U);
    EXPECT_EQ(holder_->recalls[0].stateid, stateid);
    EXPECT_EQ(holder_->recalls[0].file_handle, file_) << "as its holder knows the file";
  }
};

TEST_F(EndedHandles, ADelegationEndsWithTheHandleAndIsReturnedUnderIt) {
  begin();
  const auto stateid = delegation();
  add("/inner");
  expect_recalled(stateid);
  EXPECT_EQ(read(stateid), Status::kStale);
  EXPECT_EQ(give_back(stateid), Status::kOk);
  EXPECT_EQ(held(), 0U);
}

TEST_F(EndedHandles, SoDoesOneToWrite) {
  begin();
  const auto stateid = write_delegation();
  add("/inner");
  expect_recalled(stateid);
  EXPECT_EQ(give_back(stateid), Status::kOk);
  EXPECT_EQ(held(), 0U);
}

TEST_F(EndedHandles, WhatWasGivenUnderGoodOnesStays) {
  begin();
  add("/inner");
  const auto stateid = delegation();
  look();
  add("/inner/most");
  EXPECT_TRUE(holder_->recalls.empty());
  EXPECT_EQ(read(stateid), Status::kOk);
}

TEST_F(EndedHandles, WhoDoesNotReturnItInALeaseLosesIt) {
  begin();
  delegation();
  holder_->is_silent = true;
  add("/inner");
  EXPECT_EQ(holder_->recalls.size(), 1U);
  let_it_be_revoked();
  EXPECT_TRUE(shown_as_revoked());
}

// The configuration has changed, or the last run has ended behind a change and before its recalls.
TEST_F(EndedHandles, AStartLooksForThem) {
  begin();
  const auto stateid = delegation();
  start(true, {TestServer::default_export(), export_of("/inner")});
  holder_->join(false);
  look();
  expect_recalled(stateid);
  EXPECT_EQ(give_back(stateid), Status::kOk);
}

// No operation takes the handle any more.
TEST_F(EndedHandles, OfAnExportThatIsGoneItEndsWithTheAnswerToItsRecall) {
  begin();
  const auto stateid = delegation();
  remove(1);
  expect_recalled(stateid);
  EXPECT_EQ(give_back(stateid), Status::kStale);
  EXPECT_EQ(held(), 0U);
  EXPECT_FALSE(shown_as_revoked());
  start();
  EXPECT_EQ(held(), 0U) << "no record has stayed";
}

TEST_F(EndedHandles, OfAnExportThatIsGoneItIsRecalledUntilItsHolderSaysSo) {
  begin();
  delegation();
  holder_->recall_status = Status::kBadStateid;
  remove(1);
  EXPECT_EQ(held(), 1U);
  holder_->recall_status = Status::kOk;
  pass(Milliseconds(100));
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(holder_->recalls.size(), 2U);
}

TEST_F(EndedHandles, AReturnThatWasAskedForDoesNotComeWhenTheExportGoes) {
  begin();
  delegation();
  ask(*other_, write_open());
  ASSERT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(held(), 1U) << "it is still to be returned";
  remove(1);
  EXPECT_EQ(holder_->recalls.size(), 2U);
  EXPECT_EQ(held(), 0U);
}

TEST_F(EndedHandles, WhereAnExportAllowsLessItsOwnAreRecalled) {
  begin();
  const auto stateid = delegation();
  recall_of_export(server_->delegations, *server_->handles, 2);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
  recall_of_export(server_->delegations, *server_->handles, 1);
  turns();
  expect_recalled(stateid);
  EXPECT_EQ(give_back(stateid), Status::kOk);
}

// Who is not let in any more can give back what he holds, and do no more.
TEST_F(EndedHandles, WhoIsNotAdmittedAnyMoreGivesBackWhatHeHolds) {
  begin();
  Export narrowed = *server_->exports.all().front();
  narrowed.clients = {Network::parse("192.0.2.0/24").value()};
  expect_return_alone([&] { server_->exports.change(narrowed); }, Status::kAccess);
}

TEST_F(EndedHandles, SoDoesWhoComesFromAPortThatIsNotServedAnyMore) {
  begin();
  expect_return_alone([&] { server_->peer = "127.0.0.1:40000"; }, Status::kPerm);
}

// The handle that the server would make of the file now is not the one that the client knows.
TEST_F(EndedHandles, ARequestThatWasUnderWayWhenExportsChangedGetsNone) {
  begin();
  auto truncating = holder_->open_arguments("f", kWantsWrite);
  nfs4::Attributes empty;
  empty.size = 0;
  truncating.how = creating(create_how(nfs4::CreateMode::kUnchecked, empty));
  for (const bool exports_change : {false, true}) {
    server_->layouts.hold = true;
    const auto reply = ask(*holder_, {nfs4::PutRootFileHandleArguments{}, truncating});
    ASSERT_EQ(status(reply), std::nullopt);
    if (exports_change) add("/inner");
    server_->layouts.release();
    turns();
    ASSERT_EQ(status(reply), Status::kOk);
    EXPECT_EQ(held(), exports_change ? 0U : 1U);
    const DelegationTable::Set given = server_->delegation_table.of_client(holder_->id);
    for (DelegationState* state : given) server_->delegations.forget(*state);
  }
}

TEST_F(EndedHandles, ManyAreLookedAtSoManyATurn) {
  constexpr size_t kMany = 2000;
  const auto handle_in = [&](uint16_t export_id, uint64_t inode) {
    return server_->handles->encode({.export_id = export_id, .inode = inode, .generation = 1});
  };
  for (uint64_t number = 1; number <= kMany; ++number) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), host_.random);
    state.client = 1 + number % 3;
    state.inode = 1'000'000 + number;
    state.handle = handle_in(number % 10 == 0 ? 1 : 0, state.inode);
    server_->delegation_table.add(std::move(state));
  }
  const auto asked = [&] { return server_->counters.delegations_recalled; };
  recall_of_export(server_->delegations, *server_->handles, 1);
  EXPECT_LE(asked(), 64U);
  for (int turn = 0; turn < 20; ++turn) {
    const size_t before = asked();
    host_.turn();
    EXPECT_LE(asked() - before, 64U);
  }
  EXPECT_EQ(asked(), kMany / 10);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
