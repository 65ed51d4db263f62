// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/delegation_case.h"

// Delegations of directories as the network sees them (RFC 8881, 10.9 and 18.39).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::DirectoryDelegationStatus;

nfs4::ArgumentOperation asking() {
  nfs4::GetDirectoryDelegationArguments arguments;
  arguments.signal_when_available = true;
  arguments.notification_types.set(0);
  return arguments;
}

class DirectoryDelegationTest : public DelegationCase {
 protected:
  // The root has also the directories "d" and "e", with nothing in them.
  void begin_with_directories() {
    begin();
    for (const char* name : {"d", "e"}) {
      nfs4::CreateArguments create;
      create.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
      create.name = name;
      create.attributes = mode_attribute(0777);
      ASSERT_EQ(other_->status({nfs4::PutRootFileHandleArguments{}, create}), Status::kOk);
    }
  }
  static nfs4::GetDirectoryDelegationResponse ask_for(TestClient& client, Operations at) {
    at.emplace_back(asking());
    const size_t place = at.size() - 1;
    return response_at<nfs4::GetDirectoryDelegationResponse>(client.call(at), place);
  }
  static nfs4::GetDirectoryDelegationResponse ask_for_root(TestClient& client) {
    return ask_for(client, {nfs4::PutRootFileHandleArguments{}});
  }
  static std::optional<nfs4::Stateid> given(const nfs4::GetDirectoryDelegationResponse& response) {
    EXPECT_TRUE(response.ok());
    const auto* granted = response.result.outcome.get_if<DirectoryDelegationStatus::kOk>();
    return granted != nullptr ? std::optional(granted->stateid) : std::nullopt;
  }
  nfs4::Stateid delegation_of_root() {
    const auto stateid = given(ask_for_root(*holder_));
    EXPECT_TRUE(stateid);
    return stateid.value_or(nfs4::Stateid{});
  }
  Status give_back_root(TestClient& client, const nfs4::Stateid& stateid) {
    return client.status({nfs4::PutRootFileHandleArguments{}, nfs4::DelegationReturnArguments{stateid}});
  }
};

TEST_F(DirectoryDelegationTest, ManyMayHaveItAndNothingIsNotified) {
  begin_with_directories();
  const auto response = ask_for_root(*holder_);
  const auto* mine = response.result.outcome.get_if<DirectoryDelegationStatus::kOk>();
  ASSERT_NE(mine, nullptr);
  EXPECT_TRUE(mine->notification.none());
  EXPECT_TRUE(mine->child_attributes.none());
  EXPECT_TRUE(mine->directory_attributes.none());
  EXPECT_EQ(test(mine->stateid), Status::kOk);
  const auto theirs = given(ask_for_root(*other_));
  ASSERT_TRUE(theirs);
  EXPECT_FALSE(given(ask_for_root(*holder_))) << "it has one";
  EXPECT_EQ(give_back_root(*other_, mine->stateid), Status::kBadStateid);
  EXPECT_EQ(give_back_root(*holder_, mine->stateid), Status::kOk);
  EXPECT_EQ(give_back_root(*other_, *theirs), Status::kOk);
  EXPECT_EQ(server_->delegation_table.size(), 0U);
}

TEST_F(DirectoryDelegationTest, IsOfDirectoriesThatTheCallerMaySeeInto) {
  begin_with_directories();
  EXPECT_EQ(ask_for(*holder_, {nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"f"}}).status,
            Status::kNotDir);
  const Operations d{nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"d"}};
  Operations locking = d;
  nfs4::SetAttributesArguments mode;
  mode.attributes = mode_attribute(0700);
  locking.emplace_back(mode);
  ASSERT_EQ(other_->status(locking), Status::kOk);
  EXPECT_TRUE(given(ask_for(*holder_, d)));
  server_->limits.delegations = false;
  EXPECT_FALSE(given(ask_for_root(*holder_)));
  server_->limits.delegations = true;
  TestClient deaf(*server_, "deaf");
  deaf.connect();
  EXPECT_FALSE(given(ask_for_root(deaf)));
}

// --- recalls ---

Operations making(nfs4::CreateType type, const char* name) {
  nfs4::CreateArguments create;
  create.type = std::move(type);
  create.name = name;
  create.attributes = mode_attribute(0777);
  return {nfs4::PutRootFileHandleArguments{}, create};
}
Operations moving(const char* name, bool into_d) {
  const Operations root{nfs4::PutRootFileHandleArguments{}};
  const Operations d{nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"d"}};
  Operations moving = into_d ? root : d;
  moving.emplace_back(nfs4::SaveFileHandleArguments{});
  const Operations& to = into_d ? d : root;
  moving.insert(moving.end(), to.begin(), to.end());
  moving.emplace_back(nfs4::RenameArguments{.old_name = name, .new_name = name});
  return moving;
}

// Of the root.
const Act kDirectoryChanges[] = {
    {"OpenThatCreates",
     [](const TestClient& who, const auto&) {
       auto arguments = who.open_arguments("new", kShareRead);
       arguments.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0666)));
       return opening(arguments);
     }},
    {"MakeDirectory",
     [](const TestClient&, const auto&) {
       return making(nfs4::CreateType::make<nfs4::FileType::kDirectory>(), "new");
     }},
    {"MakeSymlink",
     [](const TestClient&, const auto&) {
       return making(nfs4::CreateType::make<nfs4::FileType::kLink>(nfs4::LinkText("f")), "new");
     }},
    {"Remove",
     [](const TestClient&, const auto&) -> Operations {
       return {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}};
     }},
    {"RemoveDirectory",
     [](const TestClient&, const auto&) -> Operations {
       return {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"e"}};
     }},
    {"Rename", [](const TestClient&, const auto&) { return renaming("f", "h"); }},
    {"RenameOut", [](const TestClient&, const auto&) { return moving("f", true); }},
    {"RenameIn", [](const TestClient&, const auto&) { return moving("inside", false); }},
    {"Exchange", [](const TestClient& who, const auto& file) { return exchanging_both(who, file, true); }},
    {"Link",
     [](const TestClient&, const auto& file) -> Operations {
       return {nfs4::PutFileHandleArguments{file}, nfs4::SaveFileHandleArguments{},
               nfs4::PutRootFileHandleArguments{}, nfs4::LinkArguments{"h"}};
     }},
    {"SetMode",
     [](const TestClient&, const auto&) -> Operations {
       nfs4::SetAttributesArguments arguments;
       arguments.attributes = mode_attribute(0755);
       return {nfs4::PutRootFileHandleArguments{}, arguments};
     }},
};

class DirectoryRecallTest : public DirectoryDelegationTest, public ::testing::WithParamInterface<Act> {
 protected:
  void begin_with_all() {
    begin_with_directories();
    ASSERT_EQ(other_->status({nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"f"},
                              nfs4::GetFileHandleArguments{}}),
              Status::kOk);
    const auto results = other_->call(
        {nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"f"}, nfs4::GetFileHandleArguments{}});
    file_ = response_at<nfs4::GetFileHandleResponse>(results, 2).result.object;
    auto inside = other_->open_arguments("inside", kShareBoth | nfs4::kShareAccessWantNoDelegation);
    inside.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0666)));
    ASSERT_EQ(
        other_->status({nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"d"}, std::move(inside)}),
        Status::kOk);
  }
};
INSTANTIATE_TEST_SUITE_P(Acts, DirectoryRecallTest, ::testing::ValuesIn(kDirectoryChanges),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(DirectoryRecallTest, AnothersChangeWaitsUntilItIsReturned) {
  begin_with_all();
  const auto held = delegation_of_root();
  const auto own = given(ask_for_root(*other_));
  const uint64_t before = (*server_->names->get(kRootInode))->change;
  const auto reply = ask(*other_, GetParam().operations(*other_, file_));
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ((*server_->names->get(kRootInode))->change, before);
  ASSERT_EQ(holder_->recalls.size(), 1U);
  EXPECT_EQ(holder_->recalls[0].stateid, held);
  EXPECT_EQ(give_back_root(*holder_, held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
  EXPECT_GT((*server_->names->get(kRootInode))->change, before);
  EXPECT_TRUE(other_->recalls.empty());
  EXPECT_NE(server_->delegation_table.find(own->other), nullptr) << "what it has changed itself it knows";
  EXPECT_FALSE(given(ask_for_root(*holder_))) << "not so soon again";
}

TEST_P(DirectoryRecallTest, OnesOwnChangeRecallsNothing) {
  begin_with_all();
  delegation_of_root();
  EXPECT_EQ(holder_->status(GetParam().operations(*holder_, file_)), Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
}

TEST_F(DirectoryDelegationTest, WhatChangesNothingInItRecallsNothing) {
  begin_with_directories();
  delegation_of_root();
  EXPECT_EQ(open(*other_, "f", kShareBoth).status, Status::kOk);
  auto existing = other_->open_arguments("g", kShareBoth);
  existing.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0666)));
  EXPECT_TRUE(other_->open(existing).ok());
  existing.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0666)));
  EXPECT_EQ(other_->open(existing).status, Status::kExist);
  EXPECT_EQ(other_->status({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"none"}}),
            Status::kNoEnt);
  EXPECT_EQ(other_->status(moving("none", true)), Status::kNoEnt);
  nfs4::SetAttributesArguments child;
  child.attributes = mode_attribute(0600);
  EXPECT_EQ(other_->status({nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"f"}, child}),
            Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
}

TEST_F(DirectoryDelegationTest, WhoDoesNotReturnItIsRevoked) {
  begin_with_directories();
  const auto held = delegation_of_root();
  const Operations remove{nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}};
  const auto reply = ask(*other_, remove);
  pass(kDelegationPatience);
  EXPECT_EQ(status(reply), Status::kDelay);
  let_it_be_revoked();
  EXPECT_TRUE(shown_as_revoked());
  server_->clients.lengthen_leases(Milliseconds(30'000));
  EXPECT_EQ(other_->status(remove), Status::kOk);
  EXPECT_EQ(give_back_root(*holder_, held), Status::kDelegRevoked);
  EXPECT_EQ(holder_->status({nfs4::FreeStateidArguments{held}}), Status::kOk);
  EXPECT_FALSE(shown_as_revoked());
}

TEST_F(DirectoryDelegationTest, NoneIsGivenWhileTheDirectoryIsBeingChanged) {
  begin_with_directories();
  const auto held = delegation_of_root();
  const auto reply = ask(*other_, {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"f"}});
  TestClient third(*server_, "third");
  third.connect();
  EXPECT_FALSE(given(ask_for_root(third)));
  EXPECT_EQ(give_back_root(*holder_, held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
}

TEST_F(DirectoryDelegationTest, ThatOfARemovedDirectoryEndsWithIt) {
  begin_with_directories();
  const Operations d{nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"d"}};
  const auto held = given(ask_for(*holder_, d));
  ASSERT_TRUE(held);
  EXPECT_EQ(holder_->status({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"d"}}), Status::kOk);
  turns();
  EXPECT_TRUE(holder_->recalls.empty());
  EXPECT_EQ(test(*held), Status::kBadStateid);
  EXPECT_EQ(server_->delegation_table.size(), 0U);
  EXPECT_FALSE(shown_as_revoked());
  // Another's is recalled: from who holds the one that goes, too.
  const Operations e{nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"e"}};
  ASSERT_TRUE(given(ask_for(*holder_, e)));
  const auto reply = ask(*other_, {nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"e"}});
  EXPECT_EQ(status(reply), std::nullopt);
  EXPECT_EQ(holder_->recalls.size(), 1U);
}

// --- limits and restarts ---

TEST_F(DirectoryDelegationTest, CountsWithTheOthersOfItsClient) {
  begin_with_directories();
  server_->limits.delegations_per_client_max = 1;
  delegation_of_root();
  EXPECT_FALSE(given(ask_for(*holder_, {nfs4::PutRootFileHandleArguments{}, nfs4::LookupArguments{"d"}})));
  turns();
  ASSERT_EQ(holder_->any_recalls.size(), 1U);
  EXPECT_TRUE(holder_->any_recalls[0].types.test(nfs4::kRecallAnyDirectoryDelegation));
}

TEST_F(DirectoryDelegationTest, IsStillRecalledBehindARestart) {
  begin_with_directories();
  delegation_of_root();
  start();
  EXPECT_EQ(server_->delegation_table.of_file(kRootInode).size(), 1U);
}

// It cannot be reclaimed; until its holder has heard of the reboot, or the grace period is over, nobody else makes its
// belief wrong.
TEST_F(DirectoryDelegationTest, BehindARebootOthersWaitWithChangesUntilTheHolderKnows) {
  begin_with_directories();
  delegation_of_root();
  start(false);
  other_->join();
  const auto remove = [](TestClient& client, const char* name) {
    return client.status({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{name}});
  };
  EXPECT_EQ(remove(*other_, "f"), Status::kGrace);
  holder_->join(false);
  EXPECT_FALSE(given(ask_for_root(*holder_)));
  EXPECT_EQ(remove(*holder_, "g"), Status::kOk);
  EXPECT_EQ(remove(*other_, "f"), Status::kGrace);
  EXPECT_EQ(holder_->status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
  EXPECT_EQ(remove(*other_, "f"), Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
