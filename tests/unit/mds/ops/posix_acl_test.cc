// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs as attributes (draft-ietf-nfsv4-posix-acls), their inheritance and mode_umask (RFC 8275), and what they
// grant on every path.
#include <gtest/gtest.h>

#include "server/mds/ops/attribute_values.h"
#include "shared/nfs4/xattr_presence.h"
#include "tests/unit/mds/ops/called_client.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Attribute;
using nfs4::PosixAceTag;
using nfs4::Status;

const nfs4::ArgumentOperation kTop = nfs4::PutRootFileHandleArguments{};
const Credentials kRootUser{.uid = 0, .gid = 0, .groups = {}};
const Credentials kOwner{.uid = 1000, .gid = 1000, .groups = {}};
const Credentials kNamed{.uid = 2000, .gid = 2000, .groups = {}};
const Credentials kGrouped{.uid = 3000, .gid = 3000, .groups = {500}};
const Credentials kStranger{.uid = 4000, .gid = 4000, .groups = {}};

// "u::rw-,u:2000:r--,…" in the letters of setfacl(1), with numbers for permissions: "u::6,u:2000:4,g::0,m::4,o::0".
nfs4::PosixAcl acl_of(std::string_view text) {
  nfs4::PosixAcl acl;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string_view one = text.substr(start, end - start);
    const size_t last = one.rfind(':');
    const std::string who(one.substr(2, last - 2));
    const bool named = !who.empty();
    PosixAceTag tag = PosixAceTag::kOther;
    if (one[0] == 'u') tag = named ? PosixAceTag::kUser : PosixAceTag::kUserObject;
    if (one[0] == 'g') tag = named ? PosixAceTag::kGroup : PosixAceTag::kGroupObject;
    if (one[0] == 'm') tag = PosixAceTag::kMask;
    acl.push_back({tag, static_cast<uint32_t>(one[last + 1] - '0'), who});
    start = end + 1;
  }
  return acl;
}
std::string text_of(const nfs4::PosixAcl& acl) {
  std::string text;
  for (const nfs4::PosixAce& one : acl) {
    constexpr std::string_view kLetters = "?uuggmo";
    if (!text.empty()) text += ',';
    text += kLetters.at(static_cast<size_t>(one.tag));
    text += ':' + one.who + ':' + std::to_string(one.permissions);
  }
  return text;
}

class PosixAclTest : public ::testing::Test {
 protected:
  PosixAclTest() {
    client_.connect();
    // The others of the root directory may write.
    EXPECT_EQ(client_.status({kTop, set(mode_attribute(0777))}), Status::kOk);
    client_.who = kOwner;
  }

  static nfs4::SetAttributesArguments set(nfs4::Attributes attributes) {
    nfs4::SetAttributesArguments arguments;
    arguments.attributes = std::move(attributes);
    return arguments;
  }
  static nfs4::Attributes access_acl(std::string_view text) {
    nfs4::Attributes attributes;
    attributes.posix_access_acl = acl_of(text);
    return attributes;
  }
  static nfs4::Attributes default_acl(std::string_view text) {
    nfs4::Attributes attributes;
    attributes.posix_default_acl = acl_of(text);
    return attributes;
  }
  static nfs4::Attributes mode_umask(uint32_t mode, uint32_t umask) {
    nfs4::Attributes attributes;
    attributes.mode_umask = {.mode = mode, .umask = umask};
    return attributes;
  }
  static nfs4::CreateArguments creation(const std::string& name, nfs4::FileType type,
                                        nfs4::Attributes attributes) {
    nfs4::CreateArguments arguments;
    arguments.type = nfs4::CreateType::of(type);
    if (type == nfs4::FileType::kLink)
      arguments.type = nfs4::CreateType::make<nfs4::FileType::kLink>("target");
    arguments.name = name;
    arguments.attributes = std::move(attributes);
    return arguments;
  }
  Operations at(const std::string& path, nfs4::ArgumentOperation last) {
    Operations operations = {kTop};
    for (size_t start = 0; start < path.size();) {
      const size_t end = std::min(path.find('/', start), path.size());
      operations.emplace_back(nfs4::LookupArguments{path.substr(start, end - start)});
      start = end + 1;
    }
    operations.push_back(std::move(last));
    return operations;
  }
  Status make_directory(const std::string& at_path, const std::string& name, nfs4::Attributes attributes) {
    return client_.status(at(at_path, creation(name, nfs4::FileType::kDirectory, std::move(attributes))));
  }
  Status make_file(const std::string& at_path, const std::string& name, nfs4::Attributes attributes) {
    auto open = client_.open_arguments(name, kShareRead);
    open.how = creating(create_how(nfs4::CreateMode::kGuarded, std::move(attributes)));
    return client_.status(at(at_path, open));
  }
  Status change(const std::string& path, nfs4::Attributes attributes) {
    return client_.status(at(path, set(std::move(attributes))));
  }
  nfs4::Attributes get(const std::string& path) {
    const nfs4::Bitmap wanted =
        nfs4::Bitmap::of(Attribute::kMode, Attribute::kPosixAccessAcl, Attribute::kPosixDefaultAcl,
                         Attribute::kRawDevice, Attribute::kAclTrueForm, Attribute::kAclTrueFormScope);
    const auto results = client_.call(at(path, nfs4::GetAttributesArguments{wanted}));
    EXPECT_EQ(results.status, Status::kOk);
    return response_at<nfs4::GetAttributesResponse>(results, results.operations.size() - 1).result.attributes;
  }
  std::string access_text(const std::string& path) { return text_of(*get(path).posix_access_acl); }
  std::string default_text(const std::string& path) { return text_of(*get(path).posix_default_acl); }
  Status as(const Credentials& who, const Operations& operations) {
    const Credentials before = std::exchange(client_.who, who);
    const Status status = client_.status(operations);
    client_.who = before;
    return status;
  }
  Status opens(const Credentials& who, const std::string& name, uint32_t access) {
    return as(who, {kTop, client_.open_arguments(name, access, 0, "owner" + std::to_string(who.uid))});
  }

  TestHost host_;
  TestServer server_{host_};
  TestClient client_{server_};
};

constexpr std::string_view kReadable = "u::6,u:2000:4,g::0,g:500:6,m::6,o::0";

TEST_F(PosixAclTest, IsSetAndReadInItsOrder) {
  ASSERT_EQ(make_file("", "f", mode_attribute(0640)), Status::kOk);
  EXPECT_EQ(access_text("f"), "u::6,g::4,o::0");
  EXPECT_EQ(default_text("f"), "");
  EXPECT_EQ(get("f").acl_true_form, nfs4::AclModel::kPosixDraft);
  EXPECT_EQ(get("f").acl_true_form_scope, nfs4::AclScope::kFileSystem);
  EXPECT_EQ(get("f").raw_device->major, nfs4::kTellsXattrs);
  EXPECT_EQ(change("f", access_acl("o::0,m::6,g:500:6,u:2000@here:4,g::0,u::6")), Status::kOk);
  EXPECT_EQ(access_text("f"), kReadable);
  EXPECT_EQ(get("f").mode, 0660u);
  EXPECT_EQ(get("f").raw_device->major, nfs4::kTellsXattrs | nfs4::kHasAccessAcl);
  EXPECT_EQ(change("f", mode_attribute(0604)), Status::kOk);
  EXPECT_EQ(access_text("f"), "u::6,u:2000:4,g::0,g:500:6,m::0,o::4");
  EXPECT_EQ(change("f", access_acl("u::7,g::5,o::1")), Status::kOk);
  EXPECT_EQ(get("f").mode, 0751u);
  EXPECT_EQ(get("f").raw_device->major, nfs4::kTellsXattrs);
}

TEST_F(PosixAclTest, WhatCannotBeIsRefusedAndChangesNothing) {
  ASSERT_EQ(make_file("", "f", mode_attribute(0640)), Status::kOk);
  ASSERT_EQ(make_directory("", "d", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(client_.status({kTop, creation("l", nfs4::FileType::kLink, {})}), Status::kOk);
  EXPECT_EQ(change("f", access_acl("")), Status::kInval);
  EXPECT_EQ(change("f", access_acl("u::6,g::4")), Status::kInval);
  EXPECT_EQ(change("f", access_acl("u::6,u:1:4,g::4,o::0")), Status::kInval) << "no mask";
  EXPECT_EQ(change("f", access_acl("u::6,u:1:4,u:1:4,g::4,m::4,o::0")), Status::kInval);
  EXPECT_EQ(change("f", access_acl("u::8,g::4,o::0")), Status::kInval);
  EXPECT_EQ(change("f", access_acl("u::6,u:someone:4,g::4,m::4,o::0")), Status::kBadOwner);
  EXPECT_EQ(change("f", access_acl("u::6,u:4294967295:4,g::4,m::4,o::0")), Status::kBadOwner);
  EXPECT_EQ(change("f", default_acl("u::6,g::4,o::0")), Status::kWrongType);
  EXPECT_EQ(change("f", default_acl("")), Status::kOk) << "it has none";
  EXPECT_EQ(change("l", access_acl("u::6,g::4,o::0")), Status::kAttrNotSupp);
  EXPECT_EQ(change("d", default_acl("u::6,g::4")), Status::kInval);
  std::string many = "u::6,g::4,m::4,o::0";
  for (size_t i = 4; i < kAclEntriesMax; ++i) many += ",u:" + std::to_string(i) + ":4";
  EXPECT_EQ(change("f", access_acl(many + ",u:3:4")), Status::kNoSpc);
  EXPECT_EQ(get("f").mode, 0640u);
  EXPECT_EQ(change("f", access_acl(many)), Status::kOk);
  client_.cache = false;  // a long answer
  EXPECT_EQ(get("f").posix_access_acl->size(), kAclEntriesMax);
  client_.who = kStranger;
  EXPECT_EQ(change("f", access_acl("u::6,g::4,o::7")), Status::kPerm);
  EXPECT_EQ(change("d", default_acl("")), Status::kPerm);
}

TEST_F(PosixAclTest, IsNotCompared) {
  EXPECT_EQ(client_.status({kTop, nfs4::VerifyArguments{access_acl("u::7,g::7,o::7")}}), Status::kInval);
  EXPECT_EQ(client_.status({kTop, nfs4::NegatedVerifyArguments{default_acl("u::7,g::7,o::7")}}),
            Status::kInval);
  EXPECT_EQ(client_.status({kTop, nfs4::VerifyArguments{mode_umask(0777, 0)}}), Status::kInval);
}

TEST_F(PosixAclTest, DecidesAboutEveryOpen) {
  ASSERT_EQ(make_file("", "f", access_acl(kReadable)), Status::kOk);
  EXPECT_EQ(get("f").mode, 0660u);
  EXPECT_EQ(opens(kOwner, "f", kShareBoth), Status::kOk);
  EXPECT_EQ(opens(kNamed, "f", kShareRead), Status::kOk);
  EXPECT_EQ(opens(kNamed, "f", kShareWrite), Status::kAccess);
  EXPECT_EQ(opens(kGrouped, "f", kShareBoth), Status::kOk);
  EXPECT_EQ(opens(kStranger, "f", kShareRead), Status::kAccess);
  EXPECT_EQ(opens({.uid = 5000, .gid = 1000, .groups = {}}, "f", kShareRead), Status::kAccess)
      << "its group's entry, not the mask in the mode";
  EXPECT_EQ(change("f", mode_attribute(0600)), Status::kOk);
  EXPECT_EQ(opens(kNamed, "f", kShareRead), Status::kAccess) << "chmod has changed the mask";
}

// A program is executed by reading it; but whom the mode would let read, his client would.
TEST_F(PosixAclTest, WhoMayExecuteOpensToReadWhereHisClientKeepsHimFromReading) {
  ASSERT_EQ(make_file("", "f", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(change("f", access_acl("u::7,u:2000:1,g::5,m::5,o::5")), Status::kOk);
  EXPECT_EQ(opens(kNamed, "f", kShareRead), Status::kAccess);
  ASSERT_EQ(change("f", access_acl("u::7,u:2000:1,g::1,m::1,o::1")), Status::kOk);
  EXPECT_EQ(opens(kNamed, "f", kShareRead), Status::kOk);
}

TEST_F(PosixAclTest, DecidesAboutReadsAndWritesWithoutAnOpenAndAboutAccess) {
  ASSERT_EQ(make_file("", "f", access_acl(kReadable)), Status::kOk);
  const nfs4::ReadArguments read{.stateid = nfs4::Stateid::anonymous(), .offset = 0, .count = 10};
  nfs4::WriteArguments write;
  write.data = nfs4::Data(Bytes(10, std::byte{7}));
  EXPECT_EQ(as(kNamed, at("f", read)), Status::kOk);
  EXPECT_EQ(as(kStranger, at("f", read)), Status::kAccess);
  EXPECT_EQ(as(kGrouped, at("f", write)), Status::kOk);
  EXPECT_EQ(as(kNamed, at("f", write)), Status::kAccess);
  nfs4::Attributes truncated;
  truncated.size = 0;
  EXPECT_EQ(as(kNamed, at("f", set(truncated))), Status::kAccess);
  EXPECT_EQ(as(kGrouped, at("f", set(truncated))), Status::kOk);
  client_.who = kNamed;
  const auto results = client_.call(at("f", nfs4::AccessArguments{nfs4::kAccessRead | nfs4::kAccessModify}));
  EXPECT_EQ(response_at<nfs4::AccessResponse>(results, 2).result.access, nfs4::kAccessRead);
}

TEST_F(PosixAclTest, OfADirectoryDecidesAboutItsNames) {
  ASSERT_EQ(make_directory("", "d", access_acl("u::7,u:2000:7,g::0,g:500:1,m::7,o::0")), Status::kOk);
  ASSERT_EQ(make_file("d", "f", mode_attribute(0666)), Status::kOk);
  const nfs4::GetAttributesArguments any{nfs4::Bitmap::of(Attribute::kMode)};
  nfs4::ReadDirectoryArguments listing;
  listing.max_count = listing.directory_count = 4096;
  EXPECT_EQ(as(kStranger, at("d/f", any)), Status::kAccess);
  EXPECT_EQ(as(kGrouped, at("d/f", any)), Status::kOk);
  EXPECT_EQ(as(kGrouped, at("d", listing)), Status::kAccess);
  EXPECT_EQ(as(kNamed, at("d", listing)), Status::kOk);
  EXPECT_EQ(as(kGrouped, at("d", creation("x", nfs4::FileType::kFifo, {}))), Status::kAccess);
  EXPECT_EQ(as(kNamed, at("d", creation("x", nfs4::FileType::kFifo, {}))), Status::kOk);
  Operations rename = at("d", nfs4::SaveFileHandleArguments{});
  rename.emplace_back(nfs4::RenameArguments{"x", "y"});
  EXPECT_EQ(as(kGrouped, rename), Status::kAccess);
  EXPECT_EQ(as(kNamed, rename), Status::kOk);
  EXPECT_EQ(as(kGrouped, at("d", nfs4::RemoveArguments{"y"})), Status::kAccess);
  EXPECT_EQ(as(kNamed, at("d", nfs4::RemoveArguments{"y"})), Status::kOk);
}

TEST_F(PosixAclTest, OfADirectoryIsInherited) {
  ASSERT_EQ(make_directory("", "d", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(change("d", default_acl("u::7,u:2000:6,g::5,m::7,o::0")), Status::kOk);
  EXPECT_EQ(get("d").mode, 0755u);
  EXPECT_EQ(get("d").raw_device->major, nfs4::kTellsXattrs | nfs4::kHasDefaultAcl);
  // The umask is of no meaning here.
  ASSERT_EQ(make_file("d", "f", mode_umask(0666, 077)), Status::kOk);
  EXPECT_EQ(access_text("d/f"), "u::6,u:2000:6,g::5,m::6,o::0");
  EXPECT_EQ(get("d/f").mode, 0660u);
  EXPECT_EQ(default_text("d/f"), "");
  ASSERT_EQ(make_file("d", "old", mode_attribute(0644)), Status::kOk);
  EXPECT_EQ(access_text("d/old"), "u::6,u:2000:6,g::5,m::4,o::0");
  ASSERT_EQ(make_directory("d", "sub", mode_umask(0777, 022)), Status::kOk);
  EXPECT_EQ(default_text("d/sub"), "u::7,u:2000:6,g::5,m::7,o::0");
  EXPECT_EQ(access_text("d/sub"), "u::7,u:2000:6,g::5,m::7,o::0");
  ASSERT_EQ(client_.status(at("d", creation("fifo", nfs4::FileType::kFifo, mode_umask(0666, 0)))),
            Status::kOk);
  EXPECT_EQ(get("d/fifo").mode, 0660u);
  ASSERT_EQ(client_.status(at("d", creation("link", nfs4::FileType::kLink, mode_attribute(0777)))),
            Status::kOk);
  EXPECT_EQ(get("d/link").mode, 0777u);
  EXPECT_EQ(get("d/link").raw_device->major, nfs4::kTellsXattrs);
  ASSERT_EQ(make_directory("d", "own", access_acl("u::7,g::0,o::0")), Status::kOk);
  EXPECT_EQ(access_text("d/own"), "u::7,g::0,o::0");
  EXPECT_EQ(default_text("d/own"), "u::7,u:2000:6,g::5,m::7,o::0");
  ASSERT_EQ(make_directory("d", "bare", default_acl("")), Status::kOk);
  EXPECT_EQ(default_text("d/bare"), "");
  ASSERT_EQ(change("d", default_acl("")), Status::kOk);
  ASSERT_EQ(make_file("d", "g", mode_umask(0666, 027)), Status::kOk);
  EXPECT_EQ(get("d/g").mode, 0640u);
  EXPECT_EQ(opens(kNamed, "d", kShareRead), Status::kIsDir);
}

TEST_F(PosixAclTest, AMinimalDefaultAclTakesTheUmasksPlace) {
  ASSERT_EQ(make_directory("", "d", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(change("d", default_acl("u::7,g::7,o::0")), Status::kOk);
  ASSERT_EQ(make_file("d", "f", mode_umask(0666, 077)), Status::kOk);
  EXPECT_EQ(get("d/f").mode, 0660u);
  EXPECT_EQ(get("d/f").raw_device->major, nfs4::kTellsXattrs);
}

TEST_F(PosixAclTest, ModeUmaskIsOfNewObjectsAlone) {
  EXPECT_EQ(make_file("", "f", mode_umask(06777, 022)), Status::kOk);
  EXPECT_EQ(get("f").mode, 06755u);
  EXPECT_EQ(change("f", mode_umask(0777, 0)), Status::kInval);
  EXPECT_EQ(make_file("", "g", mode_umask(0777, 01000)), Status::kInval);
  nfs4::Attributes both = mode_umask(0777, 0);
  both.mode = 0777;
  EXPECT_EQ(make_file("", "g", both), Status::kInval);
  EXPECT_EQ(client_.status({kTop, nfs4::GetAttributesArguments{nfs4::Bitmap::of(Attribute::kModeUmask)}}),
            Status::kInval);
  for (const Attribute one :
       {Attribute::kModeUmask, Attribute::kPosixAccessAcl, Attribute::kPosixDefaultAcl}) {
    EXPECT_TRUE(supported_attributes(server_.services).test(one));
    EXPECT_TRUE(settable_attributes().test(one));
  }
  EXPECT_FALSE(settable_attributes().test(Attribute::kAclTrueForm));
}

TEST_F(PosixAclTest, SettingOneTakesSetgidFromWhoIsNoMember) {
  client_.who = kRootUser;
  ASSERT_EQ(make_directory("", "d", mode_attribute(02775)), Status::kOk);
  nfs4::Attributes owner;
  owner.owner = "1000";
  owner.owner_group = "77";
  ASSERT_EQ(change("d", owner), Status::kOk);
  ASSERT_EQ(change("d", access_acl("u::7,g::5,o::5")), Status::kOk);
  EXPECT_EQ(get("d").mode, 02755u) << "root may";
  client_.who = kOwner;
  ASSERT_EQ(change("d", access_acl("u::7,g::7,o::5")), Status::kOk);
  EXPECT_EQ(get("d").mode, 0775u);
}

TEST_F(PosixAclTest, AMaskThatMakesAProgramSetGroupIdEndsLayoutsOfWriters) {
  ASSERT_EQ(make_file("", "f", mode_attribute(02644)), Status::kOk);
  const int before = server_.layouts.set_ids;
  ASSERT_EQ(change("f", access_acl("u::6,g::4,o::0")), Status::kOk);
  EXPECT_EQ(server_.layouts.set_ids, before);
  ASSERT_EQ(change("f", access_acl("u::6,u:2000:5,g::4,m::5,o::0")), Status::kOk);
  EXPECT_EQ(get("f").mode, 02650u);
  EXPECT_EQ(server_.layouts.set_ids, before + 1);
}

TEST_F(PosixAclTest, IsListedWithNames) {
  ASSERT_EQ(make_directory("", "d", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(make_file("d", "f", access_acl(kReadable)), Status::kOk);
  nfs4::ReadDirectoryArguments listing;
  listing.max_count = listing.directory_count = 4096;
  listing.requested = nfs4::Bitmap::of(Attribute::kMode, Attribute::kPosixAccessAcl, Attribute::kRawDevice);
  const auto results = client_.call(at("d", listing));
  const auto& entries = response_at<nfs4::ReadDirectoryResponse>(results, 2).result.entries;
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(text_of(*entries[0].attributes.posix_access_acl), kReadable);
  EXPECT_EQ(entries[0].attributes.raw_device->major, nfs4::kTellsXattrs | nfs4::kHasAccessAcl);
}

TEST_F(PosixAclTest, AChangeRecallsLayoutsAndDelegationsAsChmodDoes) {
  ASSERT_EQ(make_file("", "f", mode_attribute(0644)), Status::kOk);
  const auto before = server_.layouts.access_changes;
  ASSERT_EQ(change("f", access_acl(kReadable)), Status::kOk);
  EXPECT_EQ(server_.layouts.access_changes, before + 1);

  CalledClient holder(server_, "holder");
  holder.join();
  const auto wanted = holder.open_arguments("f", kShareRead | nfs4::kShareAccessWantReadDelegation);
  holder.who = kOwner;
  const auto opened = holder.open(wanted);
  ASSERT_TRUE(opened.ok());
  ASSERT_NE(opened.result.delegation.get_if<nfs4::DelegationType::kRead>(), nullptr);
  Operations changing = at("f", set(access_acl("u::6,g::0,o::0")));
  changing.insert(changing.begin(), client_.next_sequence());
  const auto reply = server_.begin(changing, client_.who);
  for (int i = 0; i < 5; ++i) host_.turn();
  EXPECT_EQ(holder.recalls.size(), 1u);
  EXPECT_EQ(*reply, nullptr) << "it waits for the delegation";
  const auto stateid = opened.result.delegation.get_if<nfs4::DelegationType::kRead>()->stateid;
  EXPECT_EQ(holder.status(
                {nfs4::PutFileHandleArguments{holder.last_handle}, nfs4::DelegationReturnArguments{stateid}}),
            Status::kOk);
  for (int i = 0; i < 5; ++i) host_.turn();
  ASSERT_NE(*reply, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply)->status, Status::kOk);
}

TEST_F(PosixAclTest, OutlivesARestart) {
  ASSERT_EQ(make_directory("", "d", mode_attribute(0755)), Status::kOk);
  ASSERT_EQ(change("d", default_acl("u::7,u:2000:6,g::5,m::7,o::0")), Status::kOk);
  ASSERT_EQ(make_file("d", "f", mode_umask(0666, 0)), Status::kOk);
  TestServer again(host_);
  TestClient client(again, "another");
  client.connect();
  const auto results =
      client.call(at("d/f", nfs4::GetAttributesArguments{nfs4::Bitmap::of(Attribute::kPosixAccessAcl)}));
  EXPECT_EQ(text_of(*response_at<nfs4::GetAttributesResponse>(results, 3).result.attributes.posix_access_acl),
            "u::6,u:2000:6,g::5,m::6,o::0");
}

}  // namespace
}  // namespace pnfsrdma::mds
