// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/records.h"
#include "server/mds/meta/request_reads.h"
#include "server/mds/ops/attribute_values.h"
#include "tests/unit/mds/ops/test_server.h"

// Handlers whose rows are not in memory: each is run again when they have come, and nobody sees a difference.
namespace pnfsrdma::mds {
namespace {

using nfs4::Attribute;
using nfs4::Status;

const nfs4::ArgumentOperation kTop = nfs4::PutRootFileHandleArguments{};
const nfs4::ArgumentOperation kSave = nfs4::SaveFileHandleArguments{};
constexpr Milliseconds kDisk{200};

nfs4::ArgumentOperation look_up(const std::string& name) {
  return nfs4::LookupArguments{name};
}
nfs4::ArgumentOperation attributes_of() {
  return nfs4::GetAttributesArguments{
      nfs4::Bitmap::of(Attribute::kType, Attribute::kMode, Attribute::kSize, Attribute::kLinkCount,
                       Attribute::kFileId, Attribute::kChange, Attribute::kFileHandle, Attribute::kFsid)};
}
nfs4::CreateArguments new_directory(const std::string& name, uint32_t mode = 0755) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(mode);
  return arguments;
}
nfs4::CreateArguments symlink(const std::string& name) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kLink>("over/there");
  arguments.name = name;
  return arguments;
}
nfs4::ReadDirectoryArguments listing(uint64_t cookie = 0, uint32_t max_count = 8192) {
  return {.cookie = cookie,
          .cookie_verifier = {},
          .directory_count = max_count,
          .max_count = max_count,
          .requested = nfs4::Bitmap::of(Attribute::kReadAttributeError, Attribute::kFileId, Attribute::kMode,
                                        Attribute::kMountedOnFileId)};
}
nfs4::SetAttributesArguments set(nfs4::Attributes attributes) {
  nfs4::SetAttributesArguments arguments;
  arguments.attributes = std::move(attributes);
  return arguments;
}
nfs4::Attributes size_attribute(uint64_t size) {
  nfs4::Attributes attributes;
  attributes.size = size;
  return attributes;
}
Export open_export(const std::string& path) {
  Export made;
  made.path = path;
  made.squash = Squash::kNone;
  return made;
}

enum class ColdMemory {
  kAll,      // nothing misses
  kNoRows,   // every row misses, what the namespace remembers does not
  kNothing,  // everything misses, again and again
};

struct ColdWorld {
  explicit ColdWorld(ColdMemory memory,
                     std::vector<Export> exports = {open_export("/"), open_export("/later/on")}) {
    if (memory == ColdMemory::kNothing) host.options = {.cached_inodes = 1, .cached_names = 1};
    if (memory != ColdMemory::kAll) host.store.go_cold();
    host.store.rows_fetched = 20;
    server = std::make_unique<TestServer>(host, std::move(exports));
    client = std::make_unique<TestClient>(*server);
    client->connect();
  }

  // What a client does, and what it is told.
  void call(Operations operations) {
    told.push_back(xdr::encode_to_bytes(client->call(std::move(operations))));
  }
  nfs4::OpenArguments opening(const std::string& name, std::optional<nfs4::CreateHow> how = std::nullopt) {
    auto arguments = client->open_arguments(name, kShareBoth, 0, "owner of " + name);
    if (how) arguments.how = creating(*std::move(how));
    return arguments;
  }
  void open_and_use(const std::string& name, std::optional<nfs4::CreateHow> how = std::nullopt) {
    const auto opened = client->open(opening(name, std::move(how)));
    told.push_back(xdr::encode_to_bytes(opened));
    if (!opened.ok()) return;
    nfs4::WriteArguments write;
    write.stateid = opened.result.stateid;
    write.data = nfs4::Data(Bytes(10, std::byte{7}));
    nfs4::CloseArguments close;
    close.open_stateid = opened.result.stateid;
    const nfs4::PutFileHandleArguments file{client->last_handle};
    call({file, write, attributes_of()});
    call({file, nfs4::ReadArguments{.stateid = opened.result.stateid, .offset = 0, .count = 100}});
    call({file, nfs4::CommitArguments{}});
    call({file, nfs4::LayoutGetArguments{}});
    call({file, nfs4::SetXattrArguments{nfs4::SetXattrOption::kEither, "key", Bytes(10, std::byte{8})}});
    call({file, nfs4::GetXattrArguments{"key"}});
    call({file, nfs4::RemoveXattrArguments{"key"}});
    call({file, nfs4::LayoutErrorArguments{}});
    call({file, nfs4::LayoutStatisticsArguments{}});
    call({file, close});
  }
  void exchange(NamedFile first, NamedFile second) {
    for (NamedFile* one : {&first, &second}) {
      Operations operations = one->directory;
      operations.insert(operations.end(), {look_up(one->name), nfs4::GetFileHandleArguments{}});
      const auto results = client->call(operations);
      told.push_back(xdr::encode_to_bytes(results));
      if (results.status != Status::kOk) continue;
      one->file = response_at<nfs4::GetFileHandleResponse>(results, operations.size() - 1).result.object;
    }
    call(exchanging(first, second));
  }
  // Everything a client does to a namespace, with and without success.
  void do_everything() {
    call({kTop, new_directory("d"), attributes_of()});
    call({kTop, new_directory("d")});
    call({kTop, look_up("d"), new_directory("inner"), attributes_of()});
    call({kTop, look_up("d"), look_up("inner"), nfs4::LookupParentArguments{}, attributes_of()});
    call({kTop, symlink("l")});
    call({kTop, look_up("l"), nfs4::ReadLinkArguments{}, attributes_of()});
    call({kTop, look_up("l"), look_up("x")});
    call({kTop, look_up("absent")});
    open_and_use("absent");
    open_and_use("f", create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
    open_and_use("f", create_how(nfs4::CreateMode::kUnchecked, size_attribute(0)));
    open_and_use("f", create_how(nfs4::CreateMode::kGuarded, mode_attribute(0644)));
    open_and_use("g", create_how(nfs4::CreateMode::kGuarded, size_attribute(20)));
    open_and_use("f");
    open_and_use("d");
    call({kTop, look_up("f"), nfs4::AccessArguments{0x3f}});
    call({kTop, look_up("f"), set(mode_attribute(0600)), attributes_of()});
    call({kTop, look_up("f"), set(size_attribute(5)), attributes_of()});
    call({kTop, look_up("f"), nfs4::VerifyArguments{mode_attribute(0600)}, attributes_of()});
    call({kTop, look_up("f"), nfs4::NegatedVerifyArguments{mode_attribute(0600)}, attributes_of()});
    call({kTop, nfs4::SecurityInfoArguments{"f"}});
    call({kTop, look_up("f"), kSave, kTop, look_up("d"), nfs4::LinkArguments{"second"}, attributes_of()});
    call({kTop, look_up("f"), kSave, kTop, nfs4::LinkArguments{"f"}});
    call({kTop, kSave, look_up("d"), nfs4::RenameArguments{"f", "moved"}, attributes_of()});
    call({kTop, kSave, look_up("d"), look_up("inner"), nfs4::RenameArguments{"d", "loop"}});
    call({kTop, kSave, nfs4::RenameArguments{"g", "h"}});
    call({kTop, kSave, look_up("d"), nfs4::RenameArguments{"h", "second"}});
    call({kTop, kSave, look_up("d"), nfs4::RenameArguments{"absent", "moved"}});
    call({kTop, kSave, look_up("d"), nfs4::RenameArguments{"l", "second/noreplace"}});
    call({kTop, kSave, look_up("d"), nfs4::RenameArguments{"l", "l/noreplace"}});
    exchange({{kTop}, "d"}, {{kTop, look_up("d")}, "l"});
    exchange({{kTop, look_up("d")}, "l"}, {{kTop}, "h"});
    exchange({{kTop, look_up("d")}, "l"}, {{kTop, look_up("d")}, "second"});
    call({kTop, listing()});
    call({kTop, look_up("d"), listing()});
    call({kTop, nfs4::RemoveArguments{"d"}});
    call({kTop, look_up("d"), nfs4::RemoveArguments{"second"}, attributes_of()});
    call({kTop, look_up("d"), nfs4::RemoveArguments{"inner"}, listing()});
    // The directories of an export, which was not there until now.
    call({kTop, new_directory("later"), new_directory("on"), attributes_of(), new_directory("inside")});
    call({kTop, look_up("later"), look_up("on"), attributes_of(), look_up("inside"), attributes_of()});
    call({kTop, nfs4::RemoveArguments{"later"}});
    call({kTop, kSave, nfs4::RenameArguments{"later", "earlier"}});
    for (int i = 0; i < 300; ++i) call({kTop, look_up("d"), new_directory("e" + std::to_string(i), i)});
    client->cache = false;  // a long answer
    call({kTop, look_up("d"), listing(0, 100'000)});
    call({kTop, look_up("d"), listing(0, 4000)});
  }
  // The same of ACLs, which are rows of their own, by somebody about whom they decide.
  void do_everything_with_acls() {
    const auto acl = [](uint32_t user) {
      using nfs4::PosixAceTag;
      return nfs4::PosixAcl{{PosixAceTag::kUserObject, 7, ""},
                            {PosixAceTag::kUser, user, "1000"},
                            {PosixAceTag::kGroupObject, 0, ""},
                            {PosixAceTag::kMask, 7, ""},
                            {PosixAceTag::kOther, 0, ""}};
    };
    nfs4::Attributes both = mode_attribute(0700);
    both.mode.reset();
    both.posix_access_acl = acl(7);
    both.posix_default_acl = acl(7);
    nfs4::CreateArguments directory = new_directory("shared");
    directory.attributes = both;
    call({kTop, directory});
    client->who = {.uid = 1000, .gid = 1000, .groups = {}};
    const nfs4::ArgumentOperation in = look_up("shared");
    for (int i = 0; i < 20; ++i) call({kTop, in, new_directory("e" + std::to_string(i))});
    const auto open = [&](nfs4::CreateMode mode, uint32_t access) {
      auto arguments = client->open_arguments("f", access, 0, "owner");
      arguments.how = creating(create_how(mode, mode_attribute(0666)));
      call({kTop, in, arguments, attributes_of()});
    };
    open(nfs4::CreateMode::kGuarded, kShareBoth);
    open(nfs4::CreateMode::kGuarded, kShareBoth);
    client->who = {.uid = 1000, .gid = 1000, .groups = {5}};
    const nfs4::Bitmap acls = nfs4::Bitmap::of(Attribute::kPosixAccessAcl, Attribute::kPosixDefaultAcl,
                                               Attribute::kMode, Attribute::kRawDevice);
    call({kTop, in, nfs4::GetAttributesArguments{acls}});
    auto list = listing();
    list.requested = acls;
    call({kTop, in, list});
    list.max_count = list.directory_count = 1000;
    call({kTop, in, list});
    nfs4::Attributes less;
    less.posix_access_acl = acl(5);
    client->who = {};
    client->who.uid = client->who.gid = 0;
    call({kTop, in, set(less), nfs4::GetAttributesArguments{acls}});
    call({kTop, in, look_up("f"), set(less), nfs4::GetAttributesArguments{acls}});
    client->who = {.uid = 1000, .gid = 1000, .groups = {}};
    call({kTop, in, new_directory("refused")});
    call({kTop, in, nfs4::AccessArguments{0x3f}});
    call({kTop, in, look_up("f"), nfs4::AccessArguments{0x3f}});
    open(nfs4::CreateMode::kUnchecked, kShareRead);
    call({kTop, in, look_up("f"),
          nfs4::ReadArguments{.stateid = nfs4::Stateid::anonymous(), .offset = 0, .count = 1}});
    call({kTop, in, kSave, nfs4::RenameArguments{"f", "g"}});
    call({kTop, in, nfs4::RemoveArguments{"f"}});
    client->who.uid = 0;
    call({kTop, in, kSave, nfs4::RenameArguments{"f", "g"}});
    call({kTop, in, nfs4::RemoveArguments{"g"}});
  }
  std::vector<std::pair<std::string, std::string>> content() {
    host.store.go_warm();
    std::vector<std::pair<std::string, std::string>> all;
    EXPECT_TRUE(host.store.scan({}, {}, [&](std::string_view key, std::string_view value) {
      all.emplace_back(key, value);
      return true;
    }));
    return all;
  }

  TestHost host;
  std::unique_ptr<TestServer> server;
  std::unique_ptr<TestClient> client;
  std::vector<Bytes> told;
};

class ColdReadsOf : public ::testing::TestWithParam<ColdMemory> {};
INSTANTIATE_TEST_SUITE_P(ColdMemory, ColdReadsOf,
                         ::testing::Values(ColdMemory::kNoRows, ColdMemory::kNothing), [](const auto& info) {
                           return info.param == ColdMemory::kNoRows ? "NoRows" : "Nothing";
                         });

TEST_P(ColdReadsOf, GiveTheSameAnswersAndTheSameStore) {
  ColdWorld warm(ColdMemory::kAll);
  ColdWorld cold(GetParam());
  warm.do_everything();
  cold.do_everything();
  ASSERT_EQ(cold.told.size(), warm.told.size());
  for (size_t i = 0; i < warm.told.size(); ++i) EXPECT_EQ(cold.told[i], warm.told[i]) << "call " << i;
  EXPECT_EQ(cold.content(), warm.content());
  EXPECT_EQ(warm.host.store.read_counts().misses, 0U);
  EXPECT_GT(cold.host.store.read_counts().fetches, 0U);
}

TEST_P(ColdReadsOf, GiveTheSameAnswersOfAcls) {
  ColdWorld warm(ColdMemory::kAll);
  ColdWorld cold(GetParam());
  warm.do_everything_with_acls();
  cold.do_everything_with_acls();
  ASSERT_EQ(cold.told.size(), warm.told.size());
  for (size_t i = 0; i < warm.told.size(); ++i) EXPECT_EQ(cold.told[i], warm.told[i]) << "call " << i;
  EXPECT_EQ(cold.content(), warm.content());
}

TEST(ColdReads, NoOperationOfTheNamespaceWaitsInTheLoop) {
  ColdWorld world(ColdMemory::kNoRows, {open_export("/")});
  const uint64_t before = world.host.store.read_counts().blocking;
  world.do_everything();
  world.do_everything_with_acls();
  EXPECT_EQ(world.host.store.read_counts().blocking, before);
}

class SlowStore : public ::testing::Test {
 protected:
  SlowStore() {
    // One of each is remembered, so that nothing but the store knows what the test asks for.
    host_.options = {.cached_inodes = 1, .cached_names = 1};
    server_ = std::make_unique<TestServer>(host_);
    client_ = std::make_unique<TestClient>(*server_);
    client_->connect();
    other_ = std::make_unique<TestClient>(*server_, "other");
    other_->connect();
    EXPECT_EQ(client_->status({kTop, new_directory("d", 0700)}), Status::kOk);
    EXPECT_EQ(client_->status({kTop, new_directory("other")}), Status::kOk);
    EXPECT_EQ(client_->status({kTop}), Status::kOk);
    host_.store.go_cold(kDisk);
  }

  auto begin(Operations operations) {
    operations.insert(operations.begin(), client_->next_sequence());
    auto reply = server_->begin(operations);
    turns();
    return reply;
  }
  void turns(int count = 5) {
    for (int i = 0; i < count; ++i) host_.turn();
  }
  // The disk has answered once.
  void disk() {
    host_.clock.advance(kDisk);
    turns();
  }
  nfs4::CompoundResults results(const std::shared_ptr<std::shared_ptr<const Bytes>>& reply) {
    for (int i = 0; !*reply && i < 100; ++i) disk();
    EXPECT_NE(*reply, nullptr);
    return xdr::decode_from<nfs4::CompoundResults>(**reply).value();
  }
  // Past the store's and the namespace's caches, as another client's request does it.
  void behind_the_back(const std::function<void(Namespace&)>& change) {
    host_.store.go_warm();
    change(*server_->names);
    EXPECT_TRUE(server_->names->get(kRootInode));  // the one it remembers
    host_.store.go_cold(kDisk);
    turns();
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<TestClient> client_;
  std::unique_ptr<TestClient> other_;
};

TEST_F(SlowStore, KeepsNobodyWaitingButWhoReadsIt) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  EXPECT_EQ(*waiting, nullptr);
  EXPECT_EQ(server_->compounds.running(), 1U);
  // No time has passed.
  EXPECT_EQ(other_->status({kTop, attributes_of()}), Status::kOk);
  EXPECT_EQ(*waiting, nullptr);
  EXPECT_EQ(results(waiting).status, Status::kOk);
}

TEST_F(SlowStore, WhatIsSetWhileItIsReadIsSeen) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  disk();  // the name has come, the inode is asked for
  behind_the_back([](Namespace& names) {
    const auto found = names.lookup(kRootInode, "d");
    ASSERT_TRUE(names.update((*found)->id, {.mode = 0711}));
  });
  const auto told = results(waiting);
  EXPECT_EQ(response_at<nfs4::GetAttributesResponse>(told, 3).result.attributes.mode, 0711U);
}

TEST_F(SlowStore, WhatIsRemovedWhileItIsReadIsGone) {
  const auto waiting = begin({kTop, look_up("d")});
  behind_the_back([](Namespace& names) { ASSERT_TRUE(names.remove(kRootInode, "d")); });
  EXPECT_EQ(results(waiting).status, Status::kNoEnt);
}

TEST_F(SlowStore, WhatIsMadeWhileItIsMissedIsMet) {
  const auto waiting = begin({kTop, new_directory("new")});
  behind_the_back(
      [](Namespace& names) { ASSERT_TRUE(names.create(kRootInode, "new", {.type = FileType::kDirectory})); });
  EXPECT_EQ(results(waiting).status, Status::kExist);
}

TEST_F(SlowStore, AnEntryMadeWhileTheDirectoryIsReadIsListed) {
  const auto waiting = begin({kTop, listing()});
  behind_the_back(
      [](Namespace& names) { ASSERT_TRUE(names.create(kRootInode, "new", {.type = FileType::kDirectory})); });
  const auto told = results(waiting);
  EXPECT_EQ(response_at<nfs4::ReadDirectoryResponse>(told, 2).result.entries.size(), 3U);
}

TEST_F(SlowStore, ARowThatChangesAgainAndAgainIsWaitedForInTheEnd) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  for (int i = 0; i < 100 && !*waiting; ++i) {
    behind_the_back([](Namespace& names) {
      ASSERT_TRUE(names.update((*names.lookup(kRootInode, "d"))->id, {.mode = 0711}));
    });
    disk();
  }
  ASSERT_NE(*waiting, nullptr);
  EXPECT_GT(host_.store.read_counts().blocking, 0U);
}

TEST_F(SlowStore, ASessionsRecordsGoWithoutAWait) {
  const auto records = [this] {
    size_t found = 0;
    host_.store.go_warm();
    EXPECT_TRUE(Records(host_.store).scan(RecordKind::kDone, [&](std::string_view, std::string_view) {
      ++found;
      return true;
    }));
    host_.store.go_cold(kDisk);
    return found;
  };
  EXPECT_EQ(records(), 1U);  // one slot
  const uint64_t before = host_.store.read_counts().blocking;
  TestClient restarted(*server_, "client", 2);
  restarted.connect();
  for (int i = 0; i < 3; ++i) disk();
  EXPECT_EQ(host_.store.read_counts().blocking, before);
  EXPECT_EQ(records(), 0U);
}

TEST_F(SlowStore, ARequestOfAnEarlierSessionKeepsNobodyWaiting) {
  server_ = nullptr;
  server_ = std::make_unique<TestServer>(host_);
  const uint64_t before = host_.store.read_counts().blocking;
  const auto waiting = begin({kTop, new_directory("new")});
  EXPECT_EQ(*waiting, nullptr);
  EXPECT_EQ(results(waiting).status, Status::kBadSession);
  EXPECT_EQ(host_.store.read_counts().blocking, before);
}

TEST_F(SlowStore, AListingGoesOnWhereItWas) {
  host_.store.go_warm();
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(client_->status({kTop, look_up("other"), new_directory("e" + std::to_string(i))}), Status::kOk);
  }
  host_.store.rows_fetched = 200;
  host_.store.go_cold(kDisk);
  behind_the_back([](Namespace&) {});
  client_->cache = false;  // a long answer
  const auto waiting = begin({kTop, look_up("other"), listing(0, 100'000)});
  // Name, directory, cookies, and the inodes of a page: now the next cookies are read.
  for (int i = 0; i < 4; ++i) disk();
  ASSERT_EQ(*waiting, nullptr);
  behind_the_back([](Namespace& names) {
    const InodeId other = (*names.lookup(kRootInode, "other"))->id;
    for (const char* name : {"e0", "e299"})
      ASSERT_TRUE(names.update((*names.lookup(other, name))->id, {.mode = 0711}));
  });
  const auto told = results(waiting);
  const auto& entries = response_at<nfs4::ReadDirectoryResponse>(told, 3).result.entries;
  ASSERT_EQ(entries.size(), 300U);
  EXPECT_EQ(entries.front().attributes.mode, 0755U);  // was listed already
  EXPECT_EQ(entries.back().attributes.mode, 0711U);
  EXPECT_LT(host_.store.read_counts().fetches, 20U);
}

TEST_F(SlowStore, AClientMayEndMeanwhile) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  TestClient restarted(*server_, "client", 2);
  restarted.connect();
  EXPECT_EQ(results(waiting).status, Status::kDeadSession);
}

TEST_F(SlowStore, TheServerMayEndMeanwhile) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  const auto listed = begin({kTop, listing()});
  client_.reset();
  other_.reset();
  server_.reset();
  disk();
  EXPECT_EQ(*waiting, nullptr);
}

TEST_F(SlowStore, TheCompoundsMayBeRefusedMeanwhile) {
  const auto waiting = begin({kTop, look_up("d"), attributes_of()});
  server_->compounds.refuse_all();
  EXPECT_EQ(results(waiting).status, Status::kServerFault);
  disk();
  EXPECT_EQ(server_->compounds.running(), 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds
