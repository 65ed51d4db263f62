// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

// rpc.mountd(8), --manage-gids: whose groups count, those in the call or those of the server's host.
namespace pnfsrdma::mds::manage_gids_test {
namespace {

using nfs4::Status;

constexpr uint32_t kUser = 1000;
constexpr uint32_t kGroup = 4040;  // what "team" belongs to, and nobody else may enter
const nfs4::ArgumentOperation kRoot = nfs4::PutRootFileHandleArguments{};

nfs4::ArgumentOperation look(const std::string& name) {
  return nfs4::LookupArguments{name};
}
Export export_of(const std::string& path, bool manage_gids, Squash squash = Squash::kRoot) {
  Export made;
  made.path = path;
  made.squash = squash;
  made.manage_gids = manage_gids;
  return made;
}

struct ManageGids : ::testing::Test {
  // In each of the directories there is "team" with "file".
  void serve(std::vector<Export> exports, const std::vector<std::string>& directories = {}) {
    server = std::make_unique<TestServer>(host, std::move(exports));
    make_team(kRootInode);
    for (const std::string& name : directories)
      make_team(make(kRootInode, name, FileType::kDirectory, 0755, 0));
    client = std::make_unique<TestClient>(*server, "client");
    client->connect();
    client->who = {.uid = kUser, .gid = kUser, .groups = {}};
  }
  void make_team(InodeId directory) {
    make(make(directory, "team", FileType::kDirectory, 0770, kGroup), "file", FileType::kRegular, 0644, 0);
  }
  InodeId make(InodeId directory, const std::string& name, FileType type, uint32_t mode, uint32_t group) {
    NewInode wanted;
    wanted.type = type;
    wanted.mode = mode;
    wanted.gid = group;
    return server->names->create(directory, name, wanted).value().inode->id;
  }
  std::shared_ptr<std::shared_ptr<const Bytes>> begin(Operations operations) {
    operations.insert(operations.begin(), client->next_sequence());
    return server->begin(operations, client->who);
  }
  nfs4::CompoundResults answer(const std::shared_ptr<std::shared_ptr<const Bytes>>& reply) {
    while (!*reply) host.loop.run_once(Milliseconds(1));
    auto results = xdr::decode_from<nfs4::CompoundResults>(**reply);
    EXPECT_TRUE(results.has_value());
    return std::move(*results);
  }
  Status status(const Operations& operations) { return answer(begin(operations)).status; }
  Status enter(const std::string& through = "") {
    Operations operations = {kRoot};
    if (!through.empty()) operations.push_back(look(through));
    operations.push_back(look("team"));
    operations.push_back(look("file"));
    return status(operations);
  }
  int asked() { return server->name_service.asked(kUser); }

  TestHost host;
  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
};

TEST_F(ManageGids, TheirQuotasAreShown) {
  serve({export_of("/", true)});
  Quotas& quotas = server->names->quotas();
  ASSERT_TRUE(quotas.begin());
  while (!quotas.counted()) ASSERT_TRUE(quotas.count(*quotas.next_slice(100), {}));
  ASSERT_TRUE(quotas.set_limits({QuotaKind::kGroup, kGroup}, {.space = {.hard = 4096}, .inodes = {}}, {}));
  const InodeId top = make(kRootInode, "shared", FileType::kDirectory, 02770, kGroup);
  EXPECT_NE(top, kNoInode);
  const auto left = [&] {
    const nfs4::GetAttributesArguments ask{nfs4::Bitmap::of(nfs4::Attribute::kQuotaAvailableHard)};
    client->who.gid = kUser;
    const auto results = answer(begin({kRoot, look("shared"), ask}));
    return response_at<nfs4::GetAttributesResponse>(results, 3).result.attributes.quota_available_hard;
  };
  server->name_service.set(kUser, {kUser});
  EXPECT_EQ(left(), UINT64_MAX);
  server->user_groups.forget();
  server->name_service.set(kUser, {kUser, kGroup});
  EXPECT_EQ(left(), 4096U);
  // VERIFY and NVERIFY see what GETATTR sees, also where nothing has asked for the groups before.
  ASSERT_TRUE(server->names->update(kRootInode, {.mode = 02777, .gid = kGroup}));
  nfs4::VerifyArguments same;
  same.attributes.quota_available_hard = 4096;
  server->user_groups.forget();
  EXPECT_EQ(status({kRoot, same}), Status::kOk);
  nfs4::NegatedVerifyArguments other;
  other.attributes.quota_available_hard = 4096;
  server->user_groups.forget();
  EXPECT_EQ(status({kRoot, other}), Status::kSame);
}

TEST_F(ManageGids, TheServersGroupsCount) {
  serve({export_of("/", true)});
  server->name_service.set(kUser, {kUser, kGroup});
  EXPECT_EQ(enter(), Status::kOk);
  EXPECT_EQ(enter(), Status::kOk);
  EXPECT_EQ(asked(), 1);
}

TEST_F(ManageGids, TheCallsGroupsDoNot) {
  serve({export_of("/", true)});
  client->who.groups = {kGroup};
  server->name_service.set(kUser, {kUser});
  EXPECT_EQ(enter(), Status::kAccess);
}

TEST_F(ManageGids, ThePrimaryGroupStaysTheCallers) {
  serve({export_of("/", true)});
  client->who.gid = kGroup;
  EXPECT_EQ(enter(), Status::kOk) << "newgrp(1) on the client";
}

TEST_F(ManageGids, WithoutItTheCallIsBelievedAndNobodyAsked) {
  serve({export_of("/", false)});
  server->name_service.set(kUser, {kGroup});
  EXPECT_EQ(enter(), Status::kAccess);
  client->who.groups = {kGroup};
  EXPECT_EQ(enter(), Status::kOk);
  EXPECT_EQ(asked(), 0);
}

TEST_F(ManageGids, NobodyIsAskedAboutWhomTheExportSquashesNorAboutRoot) {
  serve({export_of("/", true, Squash::kAll)});
  server->name_service.set(kUser, {kGroup});
  EXPECT_EQ(enter(), Status::kAccess);
  EXPECT_EQ(asked(), 0);
  client->who = {.uid = 0, .gid = 0, .groups = {}};
  for (const Squash squash : {Squash::kNone, Squash::kRoot}) {
    server->exports.change([&] {
      Export changed = *server->exports.find(1);
      changed.squash = squash;
      return changed;
    }());
    EXPECT_EQ(enter(), squash == Squash::kNone ? Status::kOk : Status::kAccess);
  }
  EXPECT_EQ(server->name_service.asked(0), 0);
}

TEST_F(ManageGids, RootsGroupIsSquashedInTheServersListToo) {
  serve({export_of("/", true)});
  make(kRootInode, "roots", FileType::kDirectory, 0770, 0);
  server->name_service.set(kUser, {0});
  EXPECT_EQ(status({kRoot, look("roots"), look("file")}), Status::kAccess);
}

TEST_F(ManageGids, AuthNoneHasNoGroups) {
  serve({export_of("/", true)});
  server->flavor = 0;
  client->who = Credentials{};
  server->name_service.set(client->who.uid, {kGroup});
  // The session is another principal's, which RFC 8881 allows without state protection.
  EXPECT_EQ(enter(), Status::kAccess);
  EXPECT_EQ(server->name_service.asked(client->who.uid), 0);
}

TEST_F(ManageGids, EachExportOfACompoundHasItsOwnRule) {
  serve({export_of("/", false), export_of("/managed", true)}, {"managed"});
  server->name_service.set(kUser, {kGroup});
  EXPECT_EQ(enter(), Status::kAccess);
  EXPECT_EQ(enter("managed"), Status::kOk);
  const Operations there_and_back = {kRoot, look("managed"), look("team"), look("file"),
                                     kRoot, look("team"),    look("file")};
  const auto results = answer(begin(there_and_back));
  EXPECT_EQ(results.status, Status::kAccess);
  EXPECT_EQ(results.operations.size(), there_and_back.size() + 1)
      << "SEQUENCE, and all but the last are well";
  client->who.groups = {kGroup};
  EXPECT_EQ(status(there_and_back), Status::kOk);
  server->name_service.set(kUser, {});
  server->user_groups.forget();
  EXPECT_EQ(enter("managed"), Status::kAccess);
  EXPECT_EQ(status({kRoot, look("team"), look("file"), kRoot, look("managed"), look("team"), look("file")}),
            Status::kAccess);
}

TEST_F(ManageGids, TheCompoundWaitsAndOthersAreServedMeanwhile) {
  serve({export_of("/", true)});
  server->name_service.set(kUser, {kGroup});
  server->name_service.hold(kUser);
  const auto waiting = begin({kRoot, look("team"), look("file")});
  server->name_service.wait_until_asked(kUser, 1);
  for (int turn = 0; turn < 10; ++turn) host.turn();
  EXPECT_EQ(*waiting, nullptr);
  TestClient other(*server, "other");
  other.connect();
  EXPECT_EQ(other.status({kRoot, look("team")}), Status::kOk) << "root";
  server->name_service.release(kUser);
  EXPECT_EQ(answer(waiting).status, Status::kOk);
}

TEST_F(ManageGids, ANameServiceThatFailsIsDelayBeforeWhatJudgesRights) {
  serve({export_of("/", true)});
  server->name_service.set_failing(true);
  const auto results = answer(begin({kRoot, nfs4::GetAttributesArguments{}, look("team")}));
  EXPECT_EQ(results.status, Status::kDelay);
  EXPECT_EQ(results.operations.size(), 4U) << "GETATTR has been answered";
  server->name_service.set_failing(false);
  server->name_service.set(kUser, {kGroup});
  host.clock.advance(UserGroups::kRetry);
  EXPECT_EQ(enter(), Status::kOk);
}

// Its handler asks questions of its own behind the one about groups, and runs again for each.
TEST_F(ManageGids, AnOperationThatWaitsForItselfRunsAgainInTheSameGroups) {
  serve({export_of("/", true)});
  server->name_service.set(kUser, {kGroup});
  make(kRootInode, "log", FileType::kRegular, 0660, kGroup);
  nfs4::SetAttributesArguments truncate;
  truncate.attributes.size = 0;
  server->layouts.hold = true;
  const auto waiting = begin({kRoot, look("log"), truncate});
  while (server->layouts.held.empty()) host.loop.run_once(Milliseconds(1));
  server->user_groups.forget();
  server->name_service.set(kUser, {});
  server->layouts.release();
  EXPECT_EQ(answer(waiting).status, Status::kOk);
  EXPECT_EQ(asked(), 1);
}

}  // namespace
}  // namespace pnfsrdma::mds::manage_gids_test
