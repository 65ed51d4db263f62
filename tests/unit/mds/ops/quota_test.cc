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

}  // namespace
}  // namespace pnfsrdma::mds::quota_test
