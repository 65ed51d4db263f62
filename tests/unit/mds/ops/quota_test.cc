// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/mds/ops/called_client.h"

// What clients meet of quotas: DQUOT, XDEV, and a file system of the tree's size.
namespace pnfsrdma::mds::quota_test {
namespace {

using nfs4::Attribute;
using nfs4::Status;

const nfs4::ArgumentOperation kTop = nfs4::PutRootFileHandleArguments{};

nfs4::CreateArguments new_directory(const std::string& name) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(0755);
  return arguments;
}

// The tree: /top and /top/below are a quota tree, /other is in none.
class QuotaView : public ::testing::Test {
 protected:
  QuotaView() {
    client_.join();
    for (const char* name : {"top", "other"}) EXPECT_EQ(status({kTop, new_directory(name)}), Status::kOk);
    EXPECT_EQ(status({kTop, lookup("top"), new_directory("below")}), Status::kOk);
    Quotas& quotas = names().quotas();
    EXPECT_TRUE(quotas.begin());
    while (!quotas.counted()) EXPECT_TRUE(quotas.count(*quotas.next_slice(100), {}));
    tree_ = names().begin_tree(id("top"), "/top").value();
    EXPECT_TRUE(names().place_in_tree(names().lookup(id("top"), "below").value()->id, tree_.number).value());
    EXPECT_TRUE(names().complete_tree(tree_.number).has_value());
  }

  Namespace& names() { return *server_.names; }
  InodeId id(const std::string& name) { return names().lookup(kRootInode, name).value()->id; }
  static nfs4::ArgumentOperation lookup(const std::string& name) { return nfs4::LookupArguments{name}; }
  Status status(const Operations& operations) { return client_.status(operations); }
  void limit(const QuotaLimits& limits) {
    ASSERT_TRUE(names().quotas().set_limits({QuotaKind::kTree, tree_.number.value}, limits, {}));
  }
  nfs4::Attributes room(Operations way) {
    way.emplace_back(nfs4::GetAttributesArguments{
        nfs4::Bitmap::of(Attribute::kSpaceTotal, Attribute::kSpaceFree, Attribute::kSpaceAvailable,
                         Attribute::kFilesTotal, Attribute::kFilesFree, Attribute::kFilesAvailable)});
    const auto results = client_.call(way);
    return response_at<nfs4::GetAttributesResponse>(results, way.size() - 1).result.attributes;
  }

  static constexpr uint32_t kUser = 7;
  static constexpr uint32_t kGroup = 8;
  // What somebody sees of his quota there.
  nfs4::Attributes quota(Operations way, const Credentials& who) {
    way.emplace_back(nfs4::GetAttributesArguments{nfs4::Bitmap::of(
        Attribute::kQuotaAvailableHard, Attribute::kQuotaAvailableSoft, Attribute::kQuotaUsed)});
    client_.who = who;
    const auto results = client_.call(way);
    client_.who = {.uid = 0, .gid = 0, .groups = {}};
    return response_at<nfs4::GetAttributesResponse>(results, way.size() - 1).result.attributes;
  }
  void limit(const QuotaId& id, uint64_t soft, uint64_t hard) {
    ASSERT_TRUE(names().quotas().set_limits(id, {.space = {.soft = soft, .hard = hard}, .inodes = {}}, {}));
  }
  void make_file(const std::string& name, uint32_t user, uint32_t group, uint64_t bytes) {
    const auto made = names().create(kRootInode, name, {.mode = 0644, .uid = user, .gid = group});
    ASSERT_TRUE(made.has_value());
    ASSERT_TRUE(names().update(made->inode->id, {.space_used = bytes}).has_value());
  }

  TestHost host_;
  TestServer server_{host_};
  CalledClient client_{server_, "client"};
  QuotaTree tree_;
};

TEST_F(QuotaView, ALimitOfInodesIsMetWithDquot) {
  limit({.space = {}, .inodes = {.hard = 3}});
  EXPECT_EQ(status({kTop, lookup("top"), new_directory("third")}), Status::kOk);
  EXPECT_EQ(status({kTop, lookup("top"), new_directory("fourth")}), Status::kDQuot);
  EXPECT_EQ(status({kTop, lookup("other"), new_directory("fourth")}), Status::kOk);
}

TEST_F(QuotaView, TheEdgeOfATreeIsAnEdgeToRename) {
  const nfs4::RenameArguments rename{"below", "below"};
  EXPECT_EQ(status({kTop, lookup("top"), nfs4::SaveFileHandleArguments{}, kTop, lookup("other"), rename}),
            Status::kXDev);
  EXPECT_EQ(status({kTop, lookup("top"), nfs4::SaveFileHandleArguments{}, kTop, lookup("top"),
                    nfs4::RenameArguments{"below", "moved"}}),
            Status::kOk);
}

TEST_F(QuotaView, ATreeWithALimitIsAFileSystemOfThatSize) {
  const nfs4::Attributes whole = room({kTop});
  limit({.space = {.soft = 4096, .hard = 8192}, .inodes = {.soft = 5}});
  for (const Operations& way :
       {Operations{kTop, lookup("top")}, Operations{kTop, lookup("top"), lookup("below")}}) {
    const nfs4::Attributes tree = room(way);
    EXPECT_EQ(tree.space_total, 8192U);
    EXPECT_EQ(tree.space_available, 8192U);
    EXPECT_EQ(tree.files_total, 5U);
    EXPECT_EQ(tree.files_available, 3U);
  }
  EXPECT_EQ(room({kTop, lookup("other")}).space_total, whole.space_total);
  EXPECT_EQ(room({kTop}).files_total, whole.files_total);
  limit({.space = {.hard = *whole.space_total * 2}, .inodes = {}});
  EXPECT_EQ(room({kTop, lookup("top")}).space_total, whole.space_total) << "there is no more than there is";
}

TEST_F(QuotaView, EverybodySeesHisOwnQuota) {
  make_file("his", kUser, kGroup, 4096);
  make_file("another", kUser + 1, kGroup, 8192);
  limit({QuotaKind::kUser, kUser}, 8192, 20480);
  limit({QuotaKind::kGroup, kGroup}, 0, 4096 * 100);
  const Credentials him{.uid = kUser, .gid = 1, .groups = {kGroup}};
  for (const Operations& way : {Operations{kTop}, Operations{kTop, lookup("his")}}) {
    const nfs4::Attributes seen = quota(way, him);
    EXPECT_EQ(seen.quota_used, 4096U);
    EXPECT_EQ(seen.quota_available_hard, 16384U);
    EXPECT_EQ(seen.quota_available_soft, 4096U);
  }
  limit({QuotaKind::kUser, kUser}, 0, 0);
  EXPECT_EQ(quota({kTop, lookup("his")}, him).quota_used, 12288U) << "his group's, which has a limit";
  EXPECT_EQ(quota({kTop, lookup("his")}, him).quota_available_hard, 4096U * 97);
  EXPECT_EQ(quota({kTop}, him).quota_available_hard, UINT64_MAX) << "what he makes here is of another group";
}

TEST_F(QuotaView, NobodySeesWhatIsAnothers) {
  make_file("his", kUser, kGroup, 4096);
  limit({QuotaKind::kUser, kUser}, 0, 20480);
  limit({QuotaKind::kGroup, kGroup}, 0, 8192);
  const Credentials other{.uid = kUser + 1, .gid = 1, .groups = {}};
  const nfs4::Attributes seen = quota({kTop, lookup("his")}, other);
  EXPECT_EQ(seen.quota_used, 4096U) << "of the file";
  EXPECT_EQ(seen.quota_available_hard, UINT64_MAX);
  EXPECT_EQ(quota({kTop, lookup("his")}, {.uid = 0, .gid = 0, .groups = {}}).quota_available_hard, 4096U)
      << "but root";
}

TEST_F(QuotaView, TheRoomInATreeIsEverybodys) {
  limit({.space = {.soft = 4096, .hard = 8192}, .inodes = {}});
  const nfs4::Attributes seen = quota({kTop, lookup("top")}, {.uid = kUser, .gid = 1, .groups = {}});
  EXPECT_EQ(seen.quota_available_hard, 8192U);
  EXPECT_EQ(seen.quota_available_soft, 4096U);
  EXPECT_EQ(seen.quota_used, 0U);
}

TEST_F(QuotaView, AListingShowsTheSame) {
  limit({.space = {.soft = 4096, .hard = 8192}, .inodes = {}});
  const auto results = client_.call(
      {kTop, nfs4::ReadDirectoryArguments{.max_count = 4096,
                                          .requested = nfs4::Bitmap::of(Attribute::kQuotaAvailableHard)}});
  for (const nfs4::DirectoryEntry& entry :
       response_at<nfs4::ReadDirectoryResponse>(results, 1).result.entries)
    EXPECT_EQ(entry.attributes.quota_available_hard, entry.name == "top" ? 8192 : UINT64_MAX);
}

TEST_F(QuotaView, ANewOwnerIsCheckedBeforeTheFileIsCut) {
  make_file("his", kUser, kGroup, 4096);
  nfs4::SetAttributesArguments set;
  set.attributes.size = 0;
  set.attributes.owner = std::to_string(kUser + 1);
  server_.layouts.owner_status = Status::kDQuot;
  EXPECT_EQ(status({kTop, lookup("his"), set}), Status::kDQuot);
  EXPECT_EQ(server_.layouts.size_changes, 0);
  ASSERT_EQ(server_.layouts.owner_changes.size(), 1U);
  EXPECT_EQ(server_.layouts.owner_changes[0].uid, kUser + 1);
  EXPECT_EQ(server_.layouts.owner_changes[0].size, 0U);
  server_.layouts.owner_status = Status::kOk;
  EXPECT_EQ(status({kTop, lookup("his"), set}), Status::kOk);
  EXPECT_EQ(server_.layouts.size_changes, 1);
}

// Attributes that need quotas are supported where there are some.
TEST(QuotaAttributes, AreThereOnceQuotasAreOn) {
  TestHost host;
  TestServer server(host);
  TestClient client(server, "client");
  client.connect();
  const auto ask = [&] {
    const auto results = client.call(
        {kTop, nfs4::GetAttributesArguments{nfs4::Bitmap::of(
                   Attribute::kSupportedAttributes, Attribute::kQuotaUsed, Attribute::kQuotaAvailableSoft)}});
    return response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes;
  };
  EXPECT_FALSE(ask().quota_used);
  EXPECT_FALSE(ask().supported_attributes->test(Attribute::kQuotaUsed));
  ASSERT_TRUE(server.names->quotas().begin());
  EXPECT_TRUE(ask().quota_used);
  EXPECT_TRUE(ask().quota_available_soft);
  EXPECT_TRUE(ask().supported_attributes->test(Attribute::kQuotaUsed));
}

}  // namespace
}  // namespace pnfsrdma::mds::quota_test
