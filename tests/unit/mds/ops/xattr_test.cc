// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "shared/nfs4/xattr_presence.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::SetXattrOption;
using nfs4::Status;

const nfs4::ArgumentOperation kRoot = nfs4::PutRootFileHandleArguments{};

class XattrTest : public ::testing::Test {
 protected:
  XattrTest() { client_.connect(); }

  void make(const std::string& name, uint32_t mode) {
    auto arguments = client_.open_arguments(name, nfs4::kShareAccessRead);
    arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(mode)));
    ASSERT_EQ(client_.open(arguments).status, Status::kOk);
  }
  static Operations at(const std::string& name, nfs4::ArgumentOperation last) {
    return {kRoot, nfs4::LookupArguments{name}, std::move(last)};
  }
  static nfs4::SetXattrArguments setting(const std::string& key, const std::string& value,
                                         SetXattrOption option = SetXattrOption::kEither) {
    return {option, key, Bytes(as_bytes(value).begin(), as_bytes(value).end())};
  }
  Status set(const std::string& file, const std::string& key, const std::string& value,
             SetXattrOption option = SetXattrOption::kEither) {
    return client_.status(at(file, setting(key, value, option)));
  }
  nfs4::ListXattrsResponse list(const std::string& file, uint64_t cookie, uint32_t max_count) {
    return response_at<nfs4::ListXattrsResponse>(
        client_.call(at(file, nfs4::ListXattrsArguments{cookie, max_count})), 2);
  }
  uint32_t access(const std::string& file, uint32_t asked) {
    return response_at<nfs4::AccessResponse>(client_.call(at(file, nfs4::AccessArguments{asked})), 2)
        .result.access;
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
};

TEST_F(XattrTest, SetGetAndRemove) {
  make("f", 0644);
  EXPECT_EQ(set("f", "comment", "hello"), Status::kOk);
  const auto got = client_.call(at("f", nfs4::GetXattrArguments{"comment"}));
  EXPECT_EQ(as_text(response_at<nfs4::GetXattrResponse>(got, 2).result.value), "hello");
  EXPECT_EQ(set("f", "comment", "", SetXattrOption::kCreate), Status::kExist);
  EXPECT_EQ(set("f", "other", "", SetXattrOption::kReplace), Status::kNoXattr);
  EXPECT_EQ(client_.status(at("f", nfs4::RemoveXattrArguments{"comment"})), Status::kOk);
  EXPECT_EQ(client_.status(at("f", nfs4::GetXattrArguments{"comment"})), Status::kNoXattr);
  EXPECT_EQ(set("f", "big", std::string(kXattrBytesMax + 1, 'v')), Status::kXattr2Big);
}

TEST_F(XattrTest, TheAttributesTellWhetherThereAreAny) {
  make("f", 0644);
  const auto told = [&] {
    const auto got =
        client_.call(at("f", nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kRawDevice)}));
    return response_at<nfs4::GetAttributesResponse>(got, 2).result.attributes.raw_device->major;
  };
  EXPECT_EQ(told(), nfs4::kTellsXattrs);
  EXPECT_EQ(set("f", "comment", ""), Status::kOk);
  EXPECT_EQ(told(), nfs4::kTellsXattrs | nfs4::kHasXattrs);
  EXPECT_EQ(client_.status(at("f", nfs4::RemoveXattrArguments{"comment"})), Status::kOk);
  EXPECT_EQ(told(), nfs4::kTellsXattrs);
}

TEST_F(XattrTest, TheServerSaysThatItHasThem) {
  const auto results =
      client_.call({kRoot, nfs4::GetAttributesArguments{nfs4::Bitmap::of(nfs4::Attribute::kXattrSupport)}});
  EXPECT_EQ(response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes.xattr_support, true);
}

TEST_F(XattrTest, AListIsReadInPages) {
  make("f", 0644);
  for (const char* key : {"one", "three", "two"}) ASSERT_EQ(set("f", key, "1"), Status::kOk);
  EXPECT_EQ(list("f", 0, 16).status, Status::kTooSmall);
  EXPECT_EQ(list("f", 4, 1000).status, Status::kBadCookie);
  // A name of up to four bytes takes eight, one of five twelve.
  const auto first = list("f", 0, 16 + 8 + 12).result;
  ASSERT_EQ(first.names.size(), 2u);
  EXPECT_EQ(first.names[1], "three");
  EXPECT_FALSE(first.end);
  const auto rest = list("f", first.cookie, 1000).result;
  ASSERT_EQ(rest.names.size(), 1u);
  EXPECT_EQ(rest.names[0], "two");
  EXPECT_TRUE(rest.end);
  EXPECT_TRUE(list("f", rest.cookie, 1000).result.end);
}

TEST_F(XattrTest, WhoMayReadReadsThemAndWhoMayWriteChangesThem) {
  constexpr uint32_t kAll = nfs4::kAccessXattrRead | nfs4::kAccessXattrWrite | nfs4::kAccessXattrList;
  make("f", 0644);
  ASSERT_EQ(set("f", "a", "1"), Status::kOk);
  EXPECT_EQ(access("f", kAll), kAll);
  client_.who = {.uid = 1000, .gid = 1000, .groups = {}};
  EXPECT_EQ(access("f", kAll), nfs4::kAccessXattrRead | nfs4::kAccessXattrList);
  EXPECT_EQ(client_.status(at("f", nfs4::GetXattrArguments{"a"})), Status::kOk);
  EXPECT_EQ(set("f", "a", "2"), Status::kAccess);
  EXPECT_EQ(client_.status(at("f", nfs4::RemoveXattrArguments{"a"})), Status::kAccess);
}

TEST_F(XattrTest, OfAStickyDirectoryAreItsOwners) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = "tmp";
  arguments.attributes = mode_attribute(01777);
  ASSERT_EQ(client_.status({kRoot, arguments}), Status::kOk);
  EXPECT_EQ(set("tmp", "a", "1"), Status::kOk);
  client_.who = {.uid = 1000, .gid = 1000, .groups = {}};
  EXPECT_EQ(set("tmp", "a", "2"), Status::kPerm);
}

TEST_F(XattrTest, OnlyFilesAndDirectoriesHaveThem) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kLink>(nfs4::LinkText("f"));
  arguments.name = "l";
  ASSERT_EQ(client_.status({kRoot, arguments}), Status::kOk);
  EXPECT_EQ(set("l", "a", "1"), Status::kWrongType);
}

TEST(XattrsOfAReadOnlyExport, AreNotChanged) {
  TestHost host;
  Export one = TestServer::default_export();
  one.read_only = true;
  TestServer server(host, {one});
  TestClient client(server);
  client.connect();
  EXPECT_EQ(client.status({kRoot, nfs4::SetXattrArguments{SetXattrOption::kEither, "a", {}}}), Status::kRoFs);
  EXPECT_EQ(client.status({kRoot, nfs4::ListXattrsArguments{0, 100}}), Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::mds
