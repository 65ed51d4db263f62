// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "server/mds/ops/attribute_values.h"
#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Attribute;
using nfs4::Status;

const nfs4::ArgumentOperation kRoot = nfs4::PutRootFileHandleArguments{};

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() { client_.connect(); }

  Status make_directory(const std::string& name, uint32_t mode = 0755, Operations where = {kRoot}) {
    nfs4::CreateArguments arguments;
    arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
    arguments.name = name;
    arguments.attributes = mode_attribute(mode);
    where.push_back(arguments);
    return client_.status(std::move(where));
  }
  nfs4::Attributes attributes(Operations where, const nfs4::Bitmap& requested) {
    where.push_back(nfs4::GetAttributesArguments{requested});
    const auto results = client_.call(std::move(where));
    return response_at<nfs4::GetAttributesResponse>(results, results.operations.size() - 1).result.attributes;
  }
  nfs4::ReadDirectoryResponse page(uint64_t cookie, const nfs4::Verifier& verifier, uint32_t max_count) {
    nfs4::ReadDirectoryArguments arguments{
        .cookie = cookie,
        .cookie_verifier = verifier,
        .directory_count = max_count,
        .max_count = max_count,
        .requested = nfs4::Bitmap::of(Attribute::kFileId, Attribute::kMode)};
    const auto results = client_.call({kRoot, arguments});
    return response_at<nfs4::ReadDirectoryResponse>(results, 1);
  }
  static Operations at(const std::string& name) { return {kRoot, nfs4::LookupArguments{name}}; }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
};

TEST_F(DirectoryTest, LookupAndNames) {
  ASSERT_EQ(make_directory("d"), Status::kOk);
  EXPECT_EQ(client_.status(at("d")), Status::kOk);
  EXPECT_EQ(client_.status(at("e")), Status::kNoEnt);
  EXPECT_EQ(client_.status(at("")), Status::kInval);
  EXPECT_EQ(client_.status(at(".")), Status::kBadName);
  EXPECT_EQ(client_.status(at("a/b")), Status::kBadChar);
  EXPECT_EQ(client_.status(at(std::string(256, 'n'))), Status::kNameTooLong);
  EXPECT_EQ(client_.status({kRoot, nfs4::LookupParentArguments{}}), Status::kNoEnt);
  EXPECT_EQ(client_.status({nfs4::LookupArguments{"d"}}), Status::kNoFileHandle);
  auto up = at("d");
  up.push_back(nfs4::LookupParentArguments{});
  EXPECT_EQ(client_.status(up), Status::kOk);
}

TEST_F(DirectoryTest, SaveAndRestore) {
  ASSERT_EQ(make_directory("d"), Status::kOk);
  EXPECT_EQ(client_.status({nfs4::RestoreFileHandleArguments{}}), Status::kNoFileHandle);
  EXPECT_EQ(client_.status({nfs4::SaveFileHandleArguments{}}), Status::kNoFileHandle);
  EXPECT_EQ(client_.status({kRoot, nfs4::SaveFileHandleArguments{}, nfs4::LookupArguments{"d"},
                            nfs4::RestoreFileHandleArguments{}, nfs4::LookupArguments{"d"}}),
            Status::kOk);
}

TEST_F(DirectoryTest, BadAndStaleHandles) {
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{}}), Status::kBadHandle);
  ASSERT_EQ(make_directory("d"), Status::kOk);
  auto get = at("d");
  get.push_back(nfs4::GetFileHandleArguments{});
  const auto results = client_.call(get);
  const nfs4::FileHandle handle = response_at<nfs4::GetFileHandleResponse>(results, 2).result.object;
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{handle}}), Status::kOk);
  nfs4::FileHandle other_export = handle;
  other_export[3] = std::byte{9};
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{other_export}}), Status::kStale);
  ASSERT_EQ(client_.status({kRoot, nfs4::RemoveArguments{"d"}}), Status::kOk);
  EXPECT_EQ(client_.status({nfs4::PutFileHandleArguments{handle}}), Status::kStale);
}

TEST_F(DirectoryTest, CreateRefusesRegularFilesAndBadTypes) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::of(nfs4::FileType::kRegular);
  arguments.name = "f";
  EXPECT_EQ(client_.status({kRoot, arguments}), Status::kBadType);
  arguments.type = nfs4::CreateType::of(nfs4::FileType::kNamedAttribute);
  EXPECT_EQ(client_.status({kRoot, arguments}), Status::kBadType);
  ASSERT_EQ(make_directory("d"), Status::kOk);
  EXPECT_EQ(make_directory("d"), Status::kExist);
}

TEST_F(DirectoryTest, SymbolicLinks) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kLink>("over/there");
  arguments.name = "l";
  ASSERT_EQ(client_.status({kRoot, arguments}), Status::kOk);
  auto read = at("l");
  read.push_back(nfs4::ReadLinkArguments{});
  const auto results = client_.call(read);
  EXPECT_EQ(response_at<nfs4::ReadLinkResponse>(results, 2).result.link, "over/there");
  EXPECT_EQ(attributes(at("l"), nfs4::Bitmap::of(Attribute::kSize)).size, 10U);
  EXPECT_EQ(client_.status({kRoot, nfs4::ReadLinkArguments{}}), Status::kWrongType);
  auto through = at("l");
  through.push_back(nfs4::LookupArguments{"x"});
  EXPECT_EQ(client_.status(through), Status::kSymlink);
}

TEST_F(DirectoryTest, RenameAndLink) {
  ASSERT_EQ(make_directory("a"), Status::kOk);
  ASSERT_EQ(make_directory("b"), Status::kOk);
  nfs4::RenameArguments rename{.old_name = "a", .new_name = "c"};
  EXPECT_EQ(client_.status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kOk);
  EXPECT_EQ(client_.status(at("a")), Status::kNoEnt);
  EXPECT_EQ(client_.status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kNoEnt);
  EXPECT_EQ(client_.status({kRoot, rename}), Status::kNoFileHandle);
  rename = {.old_name = "gone", .new_name = ""};
  EXPECT_EQ(client_.status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kInval);
  rename = {.old_name = "b", .new_name = "x"};
  auto into_itself = Operations{kRoot, nfs4::SaveFileHandleArguments{}, nfs4::LookupArguments{"b"}, rename};
  EXPECT_EQ(client_.status(into_itself), Status::kInval);
  EXPECT_EQ(client_.status({kRoot, nfs4::SaveFileHandleArguments{}, nfs4::LinkArguments{"again"}}),
            Status::kIsDir);
}

TEST_F(DirectoryTest, WhoMayWriteTheDirectoryLinksAnybodysFile) {
  ASSERT_EQ(make_directory("d", 0777), Status::kOk);
  ASSERT_EQ(make_directory("closed", 0755), Status::kOk);
  nfs4::CreateArguments fifo;
  fifo.type = nfs4::CreateType::of(nfs4::FileType::kFifo);
  fifo.name = "fifo";
  fifo.attributes = mode_attribute(0600);
  ASSERT_EQ(client_.status({kRoot, fifo}), Status::kOk);
  client_.who = {.uid = 12, .gid = 12, .groups = {}};
  for (const auto& [directory, expected] : {std::pair{"d", Status::kOk}, {"closed", Status::kAccess}}) {
    EXPECT_EQ(client_.status({kRoot, nfs4::LookupArguments{"fifo"}, nfs4::SaveFileHandleArguments{}, kRoot,
                              nfs4::LookupArguments{directory}, nfs4::LinkArguments{"link"}}),
              expected);
  }
}

// What a client opens by name and handle at once: LOOKUP, VERIFY that it is the file it knows, OPEN.
TEST_F(DirectoryTest, VerifyComparesFilehandles) {
  ASSERT_EQ(make_directory("a"), Status::kOk);
  ASSERT_EQ(make_directory("b"), Status::kOk);
  auto get = at("a");
  get.push_back(nfs4::GetFileHandleArguments{});
  const auto results = client_.call(get);
  nfs4::VerifyArguments verify;
  verify.attributes.file_handle = response_at<nfs4::GetFileHandleResponse>(results, 2).result.object;
  auto same = at("a");
  same.push_back(verify);
  EXPECT_EQ(client_.status(same), Status::kOk);
  auto other = at("b");
  other.push_back(verify);
  EXPECT_EQ(client_.status(other), Status::kNotSame);
}

TEST_F(DirectoryTest, RemoveOfAFullDirectory) {
  ASSERT_EQ(make_directory("d"), Status::kOk);
  ASSERT_EQ(make_directory("inner", 0755, at("d")), Status::kOk);
  EXPECT_EQ(client_.status({kRoot, nfs4::RemoveArguments{"d"}}), Status::kNotEmpty);
}

TEST_F(DirectoryTest, ReadDirectoryPagesThroughEverythingOnce) {
  client_.cache = false;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(make_directory("entry" + std::to_string(i)), Status::kOk);
  std::set<std::string> names;
  uint64_t cookie = 0;
  nfs4::Verifier verifier{};
  for (int pages = 0; pages < 200; ++pages) {
    const auto response = page(cookie, verifier, 1000);
    ASSERT_TRUE(response.ok());
    EXPECT_LE(xdr::encoded_size(response.result), 1000U);
    verifier = response.result.cookie_verifier;
    for (const auto& entry : response.result.entries) {
      EXPECT_TRUE(names.insert(entry.name).second);
      EXPECT_EQ(entry.attributes.mode, 0755U);
      cookie = entry.cookie;
    }
    if (response.result.end) break;
    ASSERT_FALSE(response.result.entries.empty());
  }
  EXPECT_EQ(names.size(), 200U);
}

// An entry is encoded straight from its inode where it can be: the same values as those of GETATTR.
TEST_F(DirectoryTest, EntriesHaveTheAttributesOfGetattr) {
  ASSERT_EQ(make_directory("d", 0750), Status::kOk);
  nfs4::CreateArguments link;
  link.type = nfs4::CreateType::make<nfs4::FileType::kLink>("over/there");
  link.name = "l";
  ASSERT_EQ(client_.status({kRoot, link}), Status::kOk);
  const auto expect_same = [this](const nfs4::Bitmap& requested) {
    const auto results =
        client_.call({kRoot, nfs4::ReadDirectoryArguments{.max_count = 65536, .requested = requested}});
    const auto& listed = response_at<nfs4::ReadDirectoryResponse>(results, 1);
    ASSERT_EQ(listed.status, Status::kOk);
    ASSERT_EQ(listed.result.entries.size(), 2u);
    for (const nfs4::DirectoryEntry& entry : listed.result.entries)
      EXPECT_EQ(entry.attributes, attributes(at(entry.name), requested)) << entry.name;
  };
  const nfs4::Bitmap all = supported_attributes(server_.services).without(write_only_attributes());
  expect_same(all);
  expect_same({});
  for (uint32_t bit = 0; bit < 96; ++bit) {
    if (!all.test(bit)) continue;
    SCOPED_TRACE(bit);
    expect_same(nfs4::Bitmap::of(bit));
    expect_same(nfs4::Bitmap::of(bit, static_cast<uint32_t>(Attribute::kReadAttributeError),
                                 static_cast<uint32_t>(Attribute::kOwner)));
  }
}

TEST_F(DirectoryTest, ReadDirectoryChecksItsArguments) {
  client_.cache = false;
  EXPECT_TRUE(page(0, {}, 4096).result.end);
  ASSERT_EQ(make_directory("d"), Status::kOk);
  EXPECT_EQ(page(1, {}, 4096).status, Status::kBadCookie);
  EXPECT_EQ(page(2, {}, 4096).status, Status::kBadCookie);
  EXPECT_EQ(page(0, {}, 20).status, Status::kTooSmall);
  nfs4::Verifier wrong{};
  wrong.fill(std::byte{0xEE});
  EXPECT_EQ(page(3, wrong, 4096).status, Status::kNotSame);
}

// --- attributes ---

TEST_F(DirectoryTest, EverySupportedAttributeHasAValue) {
  const nfs4::Bitmap readable = supported_attributes(server_.services).without(write_only_attributes());
  EXPECT_EQ(attributes({kRoot}, readable).mask(), readable);
}

TEST_F(DirectoryTest, UnsupportedAttributesAreLeftOutAndSetOnlyOnesRefused) {
  EXPECT_TRUE(attributes({kRoot}, nfs4::Bitmap::of(12U)).mask().none());
  EXPECT_EQ(
      client_.status({kRoot, nfs4::GetAttributesArguments{nfs4::Bitmap::of(Attribute::kTimeModifySet)}}),
      Status::kInval);
}

TEST_F(DirectoryTest, SetAttributes) {
  ASSERT_EQ(make_directory("d"), Status::kOk);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0700);
  set.attributes.owner = "1000";
  auto operations = at("d");
  operations.push_back(set);
  const auto results = client_.call(operations);
  EXPECT_EQ(response_at<nfs4::SetAttributesResponse>(results, 2).result.attributes_set,
            set.attributes.mask());
  const auto read = attributes(at("d"), nfs4::Bitmap::of(Attribute::kMode, Attribute::kOwner));
  EXPECT_EQ(read.mode, 0700U);
  EXPECT_EQ(read.owner, "1000");
  const auto refused = [&](nfs4::Attributes attributes) {
    nfs4::SetAttributesArguments wrong;
    wrong.attributes = std::move(attributes);
    auto operations = at("d");
    operations.push_back(wrong);
    return client_.status(operations);
  };
  nfs4::Attributes wrong;
  wrong.owner = "no such user";
  EXPECT_EQ(refused(wrong), Status::kBadOwner);
  wrong = {};
  wrong.change = 4;
  EXPECT_EQ(refused(wrong), Status::kInval);
  wrong = {};
  wrong.time_modify_set = nfs4::SetTime::make<nfs4::TimeHow::kClientTime>(nfs4::Time{1, 1'000'000'000});
  EXPECT_EQ(refused(wrong), Status::kInval);
  wrong = {};
  wrong.quota_used = 1;
  EXPECT_EQ(refused(wrong), Status::kAttrNotSupp);
  wrong = {};
  wrong.size = 0;
  EXPECT_EQ(refused(wrong), Status::kIsDir);
  EXPECT_EQ(refused(mode_attribute(010000)), Status::kInval);
}

TEST_F(DirectoryTest, VerifyComparesValues) {
  nfs4::VerifyArguments same;
  same.attributes.type = nfs4::FileType::kDirectory;
  EXPECT_EQ(client_.status({kRoot, same}), Status::kOk);
  EXPECT_EQ(client_.status({kRoot, nfs4::NegatedVerifyArguments{same.attributes}}), Status::kSame);
  nfs4::VerifyArguments other;
  other.attributes.type = nfs4::FileType::kRegular;
  EXPECT_EQ(client_.status({kRoot, other}), Status::kNotSame);
  EXPECT_EQ(client_.status({kRoot, nfs4::NegatedVerifyArguments{other.attributes}}), Status::kOk);
}

TEST_F(DirectoryTest, SecurityInfoUsesTheFilehandleUp) {
  ASSERT_EQ(make_directory("d"), Status::kOk);
  EXPECT_EQ(client_.status({kRoot, nfs4::SecurityInfoArguments{"d"}}), Status::kOk);
  EXPECT_EQ(client_.status({kRoot, nfs4::SecurityInfoArguments{"e"}}), Status::kNoEnt);
  EXPECT_EQ(client_.status({kRoot, nfs4::SecurityInfoNoNameArguments{}, nfs4::GetFileHandleArguments{}}),
            Status::kNoFileHandle);
  EXPECT_EQ(client_.status({kRoot, nfs4::SecurityInfoNoNameArguments{nfs4::SecurityInfoStyle::kParent}}),
            Status::kNoEnt);
}

}  // namespace
}  // namespace pnfsrdma::mds
