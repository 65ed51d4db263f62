// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/records.h"
#include "server/mds/ops/handle_keys.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/ops/test_server.h"

// Filehandles: who can make one, and what hosts see of exports that are not theirs.
namespace pnfsrdma::mds::handle_test {
namespace {

using nfs4::Status;

const nfs4::ArgumentOperation kRoot = nfs4::PutRootFileHandleArguments{};
const nfs4::ArgumentOperation kUp = nfs4::LookupParentArguments{};

nfs4::ArgumentOperation look(const std::string& name) {
  return nfs4::LookupArguments{name};
}
nfs4::ArgumentOperation put(const nfs4::FileHandle& handle) {
  return nfs4::PutFileHandleArguments{handle};
}

Export export_to(const std::string& path, const char* network = nullptr) {
  Export made;
  made.path = path;
  made.squash = Squash::kNone;
  if (network != nullptr) made.clients.push_back(*Network::parse(network));
  return made;
}

nfs4::CreateArguments new_directory(const std::string& name, uint32_t mode = 0755) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(mode);
  return arguments;
}

// A handle as version 1 had them, which anybody can write down.
nfs4::FileHandle forged(uint16_t export_id, uint64_t inode, uint64_t generation) {
  nfs4::FileHandle bytes(20);
  store_big_endian(bytes.data(), uint16_t{1});
  store_big_endian(bytes.data() + 2, export_id);
  store_big_endian(bytes.data() + 4, inode);
  store_big_endian(bytes.data() + 12, generation);
  return bytes;
}

// TestClient calls from 127.0.0.1. /pub is for it, "/" and /pub/private for others.
class Handles : public ::testing::Test {
 protected:
  static constexpr const char* kOthers = "10.0.0.0/8";

  Handles() {
    TestServer whole(host_, {TestServer::default_export()});
    TestClient client(whole, "maker");
    client.connect();
    for (const auto& path : std::vector<std::vector<std::string>>{{"pub"},
                                                                  {"pub", "below"},
                                                                  {"pub", "private"},
                                                                  {"pub", "private", "ours"},
                                                                  {"secret"},
                                                                  {"secret", "deep"}}) {
      Operations operations{kRoot};
      for (size_t i = 0; i + 1 < path.size(); ++i) operations.push_back(look(path[i]));
      operations.push_back(new_directory(path.back(), path.back() == "secret" ? 0700 : 0755));
      EXPECT_EQ(client.status(operations), Status::kOk) << path.back();
    }
  }

  void serve(std::vector<Export> exports, bool served_before = false) {
    client_.reset();
    server_.reset();
    server_ = std::make_unique<TestServer>(host_, std::move(exports), true, served_before);
    client_ = std::make_unique<TestClient>(*server_, "client " + std::to_string(++clients_));
    client_->connect();
  }
  // As a store is that an older program has used.
  void forget_keys() { ASSERT_TRUE(Records(host_.store).clear(RecordKind::kHandleKey)); }
  Status status(Operations operations) { return client_->status(std::move(operations)); }
  nfs4::FileHandle handle(Operations operations) {
    operations.push_back(nfs4::GetFileHandleArguments{});
    const auto results = client_->call(operations);
    EXPECT_EQ(results.status, Status::kOk);
    if (results.status != Status::kOk) return {};
    return std::get<nfs4::GetFileHandleResponse>(results.operations.back()).result.object;
  }
  nfs4::Attributes attributes(Operations operations) {
    operations.push_back(nfs4::GetAttributesArguments{
        nfs4::Bitmap::of(nfs4::Attribute::kMode, nfs4::Attribute::kOwner, nfs4::Attribute::kLinkCount,
                         nfs4::Attribute::kSize, nfs4::Attribute::kFsid)});
    const auto results = client_->call(operations);
    EXPECT_EQ(results.status, Status::kOk);
    return std::get<nfs4::GetAttributesResponse>(results.operations.back()).result.attributes;
  }
  std::vector<std::string> names(Operations operations) {
    nfs4::ReadDirectoryArguments read;
    read.max_count = 4096;
    operations.push_back(read);
    const auto results = client_->call(operations);
    EXPECT_EQ(results.status, Status::kOk);
    std::vector<std::string> names;
    for (const auto& entry : std::get<nfs4::ReadDirectoryResponse>(results.operations.back()).result.entries)
      names.push_back(entry.name);
    return names;
  }
  InodePointer inode(const std::vector<std::string>& path) {
    InodeId at = kRootInode;
    for (const std::string& name : path) at = (*server_->names->lookup(at, name))->id;
    return *server_->names->get(at);
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<TestClient> client_;
  int clients_ = 0;
};

// --- who can make one ---

// Clients keep their handles while the server is upgraded.
TEST_F(Handles, AreSignedAsBefore) {
  serve({export_to("/")});
  MemoryStore store(host_.loop);
  SeededRandom random(7);
  const auto keys = HandleKeys::open(store, random, host_.clock, server_->exports, false).value();
  const nfs4::FileHandle made = keys->encode({.export_id = 1, .inode = 2, .generation = 3, .old = false});
  // The last 16 digits are OpenSSL's SIPHASH of those in front.
  EXPECT_EQ(to_hex(made), "000200010000000000000000000000020000000000000003140a072572e908d0");
}

TEST_F(Handles, OneThatWasForgedLeadsNowhere) {
  serve({export_to("/", kOthers), export_to("/pub")});
  nfs4::ReadDirectoryArguments read;
  read.max_count = 4096;
  // What was seen: a host admitted only to /pub lists the root.
  EXPECT_NE(status({put(forged(2, kRootInode, 1)), read}), Status::kOk);
  const auto real = handle({kRoot, look("pub")});
  ASSERT_EQ(real.size(), 32u);
  EXPECT_EQ(status({put(real)}), Status::kOk);
  for (size_t at = 0; at < real.size(); ++at) {
    nfs4::FileHandle other = real;
    other[at] ^= std::byte{1};
    EXPECT_NE(status({put(other)}), Status::kOk) << "byte " << at;
  }
  nfs4::FileHandle other = real;
  const InodePointer secret = inode({"secret"});
  store_big_endian(other.data() + 8, secret->id);
  store_big_endian(other.data() + 16, secret->generation);
  EXPECT_EQ(status({put(other)}), Status::kBadHandle);
  EXPECT_EQ(status({put(nfs4::FileHandle(5))}), Status::kBadHandle);
  EXPECT_EQ(status({put(nfs4::FileHandle())}), Status::kBadHandle);
}

TEST_F(Handles, OneOfAnotherHostsExportIsRefused) {
  serve({export_to("/")});
  const auto root = handle({kRoot});
  serve({export_to("/", kOthers), export_to("/pub")});
  EXPECT_EQ(status({put(root), nfs4::GetFileHandleArguments{}}), Status::kAccess);
}

TEST_F(Handles, TheySurviveARestartAndGoWithTheirExport) {
  serve({export_to("/pub"), export_to("/secret")});
  const auto below = handle({kRoot, look("pub"), look("below")});
  serve({export_to("/pub"), export_to("/secret")});
  EXPECT_EQ(status({put(below)}), Status::kOk);
  EXPECT_EQ(handle({kRoot, look("pub"), look("below")}), below);
  // Another place in the configuration's list is another id.
  serve({export_to("/secret"), export_to("/pub")});
  EXPECT_EQ(status({put(below)}), Status::kBadHandle);
  serve({export_to("/secret")});
  serve({export_to("/pub"), export_to("/secret")});
  EXPECT_EQ(status({put(below)}), Status::kBadHandle) << "an export that comes back is another";
}

TEST_F(Handles, AnExportInsideEndsThoseOfTheOneAroundIt) {
  serve({export_to("/")});
  const auto below = handle({kRoot, look("pub"), look("below")});
  const auto root = handle({kRoot});
  serve({export_to("/"), export_to("/pub", kOthers)});
  EXPECT_EQ(status({put(below), nfs4::GetFileHandleArguments{}}), Status::kStale);
  EXPECT_EQ(status({put(below), nfs4::SaveFileHandleArguments{}}), Status::kStale);
  EXPECT_EQ(status({put(below), look("x")}), Status::kStale);
  EXPECT_EQ(status({put(root)}), Status::kOk) << "the mount itself stays";
  EXPECT_EQ(status({put(root), look("secret")}), Status::kOk);
  EXPECT_EQ(status({put(root), look("pub")}), Status::kAccess);
}

TEST_F(Handles, AttributesAndReaddirNameFilesAsGetfhDoes) {
  serve({export_to("/")});
  const auto want = nfs4::Bitmap::of(nfs4::Attribute::kFileHandle);
  const auto got = client_->call({kRoot, look("pub"), nfs4::GetAttributesArguments{want}});
  const auto pub = handle({kRoot, look("pub")});
  EXPECT_EQ(std::get<nfs4::GetAttributesResponse>(got.operations.back()).result.attributes.file_handle, pub);
  nfs4::ReadDirectoryArguments read;
  read.max_count = 4096;
  read.requested = want;
  const auto listed = client_->call({kRoot, read});
  const auto& entries = std::get<nfs4::ReadDirectoryResponse>(listed.operations.back()).result.entries;
  EXPECT_TRUE(
      std::ranges::any_of(entries, [&](const auto& entry) { return entry.attributes.file_handle == pub; }));
}

// --- version 1 ---

TEST_F(Handles, OldOnesAreTakenForAWhileByAServerThatMadeSome) {
  forget_keys();
  serve({export_to("/")}, /*served_before=*/true);
  const InodePointer below = inode({"pub", "below"});
  const auto old = forged(1, below->id, below->generation);
  EXPECT_EQ(status({put(old)}), Status::kOk);
  // Byte for byte what its client knows the file by, and all it comes to from there.
  EXPECT_EQ(handle({put(old)}), old);
  const InodePointer pub = inode({"pub"});
  EXPECT_EQ(handle({put(old), kUp}), forged(1, pub->id, pub->generation));
  ASSERT_EQ(server_->handles->old_handles().size(), 2u);
  EXPECT_EQ(server_->handles->old_handles()[1].uses, 3u);
  // A restart does not begin the time anew.
  host_.clock.advance(std::chrono::days(29));
  serve({export_to("/")}, true);
  EXPECT_EQ(status({put(old)}), Status::kOk);
  host_.clock.advance(std::chrono::days(2));
  client_ = std::make_unique<TestClient>(*server_, "later");
  client_->connect();
  EXPECT_EQ(status({put(old)}), Status::kStale);
  EXPECT_TRUE(server_->handles->old_handles().empty());
  EXPECT_EQ(handle({kRoot, look("pub"), look("below")}).size(), 32u);
}

TEST_F(Handles, OldOnesAreTakenUntilTheDayThatIsConfigured) {
  forget_keys();
  Export until = export_to("/");
  until.old_handles_until = WallTime{.seconds = 1};
  serve({until}, true);
  EXPECT_EQ(status({put(forged(1, kRootInode, inode({})->generation))}), Status::kStale);
}

TEST_F(Handles, AnOldOneOfADirectoryOutsideItsExportIsStale) {
  forget_keys();
  serve({export_to("/", kOthers), export_to("/pub"), export_to("/pub/private", kOthers)}, true);
  const auto of = [&](const InodePointer& which) { return forged(2, which->id, which->generation); };
  EXPECT_EQ(status({put(of(inode({"pub", "below"})))}), Status::kOk);
  EXPECT_EQ(status({put(of(inode({"pub"})))}), Status::kOk);
  EXPECT_EQ(status({put(of(inode({})))}), Status::kStale);
  EXPECT_EQ(status({put(of(inode({"secret", "deep"})))}), Status::kStale);
  EXPECT_EQ(status({put(of(inode({"pub", "private", "ours"})))}), Status::kStale);
}

TEST_F(Handles, ANewServerHasNoOldOnes) {
  serve({export_to("/")});
  EXPECT_EQ(status({put(forged(1, kRootInode, inode({})->generation))}), Status::kStale);
}

// --- what a host sees ---

TEST_F(Handles, TheRootOfOthersIsThePseudoRootForWhoHasAnExportBelow) {
  serve({export_to("/", kOthers), export_to("/pub")});
  EXPECT_EQ(status({kRoot, look("pub"), new_directory("mine")}), Status::kOk);
  EXPECT_EQ(status({kRoot, look("secret")}), Status::kNoEnt);
  EXPECT_EQ(status({kRoot, new_directory("x")}), Status::kRoFs);
  EXPECT_EQ(names({kRoot}), std::vector<std::string>{"pub"});
  const nfs4::Attributes root = attributes({kRoot});
  EXPECT_EQ(root.mode, 0555U);
  EXPECT_EQ(root.link_count, 2U);
  EXPECT_EQ(status({kRoot, look("pub"), kUp, look("pub")}), Status::kOk);
  EXPECT_EQ(status({kRoot, look("pub"), kUp, look("secret")}), Status::kNoEnt);
  EXPECT_EQ(status({kRoot, look("pub"), kUp, kUp}), Status::kNoEnt);
}

// The pseudo directory has the number of the real one: no operation may look into that.
TEST_F(Handles, NothingOfThePseudoRootCanBeOpened) {
  serve({export_to("/")});
  auto make = client_->open_arguments("readable", kShareRead);
  make.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0666)));
  ASSERT_TRUE(client_->open(make).ok());
  serve({export_to("/", kOthers), export_to("/pub")});
  EXPECT_EQ(client_->open(client_->open_arguments("readable", kShareRead)).status, Status::kNoEnt);
  EXPECT_EQ(client_->open(client_->open_arguments("no such", kShareRead)).status, Status::kNoEnt);
  EXPECT_EQ(client_->open(client_->open_arguments("pub", kShareRead)).status, Status::kIsDir);
  EXPECT_EQ(client_->open(make).status, Status::kRoFs);
  EXPECT_EQ(status({kRoot, nfs4::RemoveArguments{"readable"}}), Status::kRoFs);
  EXPECT_EQ(status({kRoot, nfs4::RemoveArguments{"no such"}}), Status::kRoFs);
  nfs4::RenameArguments rename;
  rename.old_name = "readable";
  rename.new_name = "new";
  EXPECT_EQ(status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kRoFs);
  EXPECT_EQ(status({kRoot, nfs4::SecurityInfoArguments{"readable"}}), Status::kNoEnt);
}

TEST_F(Handles, AWayThroughAPrivateDirectoryShowsNothingOfIt) {
  serve({export_to("/secret/deep")});
  EXPECT_EQ(names({kRoot}), std::vector<std::string>{"secret"});
  EXPECT_EQ(names({kRoot, look("secret")}), std::vector<std::string>{"deep"});
  EXPECT_EQ(attributes({kRoot, look("secret")}).mode, 0555U);
  client_->who = {.uid = 1000, .gid = 1000, .groups = {}};
  EXPECT_EQ(status({kRoot, look("secret"), look("deep")}), Status::kOk) << "mode 0700 is of the real one";
}

TEST_F(Handles, AnExportForOthersOnTheWayIsPseudoToo) {
  serve({export_to("/"), export_to("/pub", kOthers), export_to("/pub/private/ours")});
  EXPECT_EQ(status({kRoot, look("pub"), look("below")}), Status::kNoEnt);
  EXPECT_EQ(status({kRoot, look("pub"), look("private"), look("ours"), new_directory("x")}), Status::kOk);
  EXPECT_EQ(names({kRoot, look("pub")}), std::vector<std::string>{"private"});
  EXPECT_EQ(status({kRoot, look("pub"), kUp, look("secret")}), Status::kOk) << "up again is the real root";
  EXPECT_EQ(status({kRoot, look("pub"), look("private"), look("ours"), kUp, kUp, look("below")}),
            Status::kNoEnt);
}

TEST_F(Handles, AnExportForOthersWithNothingBelowIsRefusedAndItsAttributesAreNotShown) {
  serve({export_to("/"), export_to("/secret", kOthers)});
  EXPECT_EQ(status({kRoot, look("secret")}), Status::kAccess);
  nfs4::ReadDirectoryArguments read;
  read.max_count = 4096;
  read.requested = nfs4::Bitmap::of(nfs4::Attribute::kMode);
  const auto listed = client_->call({kRoot, read});
  for (const auto& entry : std::get<nfs4::ReadDirectoryResponse>(listed.operations.back()).result.entries)
    EXPECT_EQ(entry.attributes.mode, entry.name == "secret" ? 0555U : 0755U);
}

TEST_F(Handles, APseudoDirectoryOfOthersIsStale) {
  serve({export_to("/secret/deep"), export_to("/pub", kOthers)});
  const auto secret = handle({kRoot, look("secret")});
  EXPECT_EQ(status({put(secret), look("deep")}), Status::kOk);
  serve({export_to("/secret/deep", kOthers), export_to("/pub")});
  EXPECT_EQ(status({put(secret)}), Status::kStale);
}

// --- what may be moved ---

TEST_F(Handles, WhatLeadsToAnExportStaysWhereItIs) {
  serve({export_to("/"), export_to("/pub/private")});
  const auto rename = [&](const std::string& from, const std::string& to) {
    nfs4::RenameArguments arguments;
    arguments.old_name = from;
    arguments.new_name = to;
    return status({kRoot, nfs4::SaveFileHandleArguments{}, arguments});
  };
  EXPECT_EQ(rename("pub", "moved"), Status::kFileOpen);
  EXPECT_EQ(rename("secret", "pub"), Status::kFileOpen);
  const NamedFile pub{{kRoot}, "pub", handle({kRoot, look("pub")})};
  const NamedFile secret{{kRoot}, "secret", handle({kRoot, look("secret")})};
  EXPECT_EQ(status(exchanging(pub, secret)), Status::kFileOpen);
  EXPECT_EQ(status(exchanging(secret, pub)), Status::kFileOpen);
  EXPECT_EQ(status({kRoot, nfs4::RemoveArguments{"pub"}}), Status::kFileOpen);
  EXPECT_EQ(status({kRoot, look("pub"), nfs4::RemoveArguments{"private"}}), Status::kFileOpen);
  EXPECT_EQ(rename("secret", "moved"), Status::kOk);
}

TEST_F(Handles, NothingMovesFromOneExportToAnother) {
  serve({export_to("/"), export_to("/pub")});
  nfs4::RenameArguments rename;
  rename.old_name = "secret";
  rename.new_name = "secret";
  EXPECT_EQ(status({kRoot, nfs4::SaveFileHandleArguments{}, look("pub"), rename}), Status::kXDev);
  rename.new_name = "secret/exchange";
  EXPECT_EQ(status({kRoot, nfs4::SaveFileHandleArguments{}, look("pub"), rename}), Status::kXDev);
  auto make = client_->open_arguments("f", kShareBoth);
  make.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0644)));
  ASSERT_TRUE(client_->open(make).ok());
  const auto file = client_->last_handle;
  nfs4::LinkArguments link;
  link.new_name = "g";
  EXPECT_EQ(status({put(file), nfs4::SaveFileHandleArguments{}, kRoot, look("pub"), link}), Status::kXDev);
  EXPECT_EQ(status({put(file), nfs4::SaveFileHandleArguments{}, kRoot, link}), Status::kOk);
}

TEST_F(Handles, ADirectoryAnExportWaitsForIsItsOwnFromTheFirst) {
  serve({export_to("/"), export_to("/later", kOthers)});
  nfs4::RenameArguments rename;
  rename.old_name = "secret";
  rename.new_name = "later";
  EXPECT_EQ(status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kFileOpen);
  rename.new_name = "later/noreplace";
  EXPECT_EQ(status({kRoot, nfs4::SaveFileHandleArguments{}, rename}), Status::kFileOpen);
  EXPECT_EQ(status({kRoot, new_directory("later"), new_directory("inside")}), Status::kRoFs);
  EXPECT_EQ(status({kRoot, look("later")}), Status::kAccess);
}

}  // namespace
}  // namespace pnfsrdma::mds::handle_test
