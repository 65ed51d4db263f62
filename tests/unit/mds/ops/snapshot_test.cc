// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/mds/meta/records.h"
#include "tests/unit/mds/ops/called_client.h"

// What clients see of snapshots: the way to them, what they refuse, and who is let in.
namespace pnfsrdma::mds::snapshot_test {
namespace {

using nfs4::Attribute;
using nfs4::Status;

const nfs4::ArgumentOperation kTop = nfs4::PutRootFileHandleArguments{};
const nfs4::ArgumentOperation kUp = nfs4::LookupParentArguments{};
const nfs4::ArgumentOperation kSave = nfs4::SaveFileHandleArguments{};
constexpr const char* kList = ".snapshots";

Export export_to(const std::string& path, const char* network = nullptr) {
  Export made;
  made.path = path;
  made.squash = Squash::kNone;
  if (network != nullptr) made.clients.push_back(*Network::parse(network));
  return made;
}

nfs4::CreateArguments new_directory(const std::string& name) {
  nfs4::CreateArguments arguments;
  arguments.type = nfs4::CreateType::make<nfs4::FileType::kDirectory>();
  arguments.name = name;
  arguments.attributes = mode_attribute(0755);
  return arguments;
}

// The way to a path from the root.
Operations at(const std::vector<std::string>& names) {
  Operations way{kTop};
  for (const std::string& name : names) way.emplace_back(nfs4::LookupArguments{name});
  return way;
}
Operations operator+(Operations first, const Operations& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// The tree: /d/f, /pub/f.
class SnapshotView : public ::testing::Test {
 protected:
  SnapshotView() { serve({export_to("/")}); }

  void serve(std::vector<Export> exports, bool served_before = false) {
    client_.reset();
    server_.reset();
    server_ = std::make_unique<TestServer>(host_, std::move(exports), true, served_before);
    client_ = std::make_unique<CalledClient>(*server_, "client" + std::to_string(++clients_));
    client_->join();
  }
  void make_tree() {
    for (const char* name : {"d", "pub"}) {
      ASSERT_EQ(status({kTop, new_directory(name)}), Status::kOk);
      make_file({name}, "f");
    }
  }
  void make_file(const std::vector<std::string>& directory, const std::string& name) {
    auto arguments = client_->open_arguments(name, kShareBoth);
    arguments.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0666)));
    const auto opened = client_->call(at(directory) + Operations{arguments, nfs4::CloseArguments{}});
    ASSERT_EQ(response_at<nfs4::OpenResponse>(opened, directory.size() + 1).status, Status::kOk);
  }
  SnapshotNumber take(const std::string& name) {
    Snapshots& snapshots = server_->names->snapshots();
    const auto number = snapshots.begin(name, host_.clock.wall_now());
    EXPECT_TRUE(number.has_value());
    bool made = false;
    host_.store.checkpoint(*number, [&](const Result<>& done) { made = done.has_value(); });
    for (int turn = 0; turn < 100 && !made; ++turn) host_.turn();
    EXPECT_TRUE(made);
    EXPECT_TRUE(snapshots.set_state(*number, SnapshotState::kReady).has_value());
    return *number;
  }
  Status status(const Operations& operations) { return client_->status(operations); }
  nfs4::FileHandle handle(const Operations& way) {
    const auto results = client_->call(way + Operations{nfs4::GetFileHandleArguments{}});
    return response_at<nfs4::GetFileHandleResponse>(results, way.size()).result.object;
  }
  uint64_t file_id(const Operations& way) {
    const auto results =
        client_->call(way + Operations{nfs4::GetAttributesArguments{nfs4::Bitmap::of(Attribute::kFileId)}});
    if (results.status != Status::kOk) return 0;
    return *response_at<nfs4::GetAttributesResponse>(results, way.size()).result.attributes.file_id;
  }
  InodeId id(const std::vector<std::string>& names) { return file_id(at(names)); }
  std::map<std::string, nfs4::Attributes> listing(const Operations& way) {
    nfs4::ReadDirectoryArguments read;
    read.directory_count = read.max_count = 8192;
    read.requested = nfs4::Bitmap::of(Attribute::kFileId, Attribute::kFileHandle, Attribute::kFsid);
    const auto results = client_->call(way + Operations{read});
    EXPECT_EQ(results.status, Status::kOk);
    std::map<std::string, nfs4::Attributes> entries;
    if (results.status != Status::kOk) return entries;
    for (const auto& entry : response_at<nfs4::ReadDirectoryResponse>(results, way.size()).result.entries)
      entries.emplace(entry.name, entry.attributes);
    return entries;
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<CalledClient> client_;
  int clients_ = 0;
};

TEST_F(SnapshotView, TheNameLeadsToThemAndNoListingShowsIt) {
  make_tree();
  EXPECT_EQ(status(at({kList})), Status::kNoEnt);
  const SnapshotNumber number = take("monday");
  ASSERT_EQ(status(at({"d"}) + Operations{nfs4::RemoveArguments{"f"}}), Status::kOk);
  EXPECT_EQ(id({kList}), inode_in(kSnapshotList, kRootInode));
  EXPECT_EQ(id({kList, "monday"}), inode_in(number, kRootInode));
  EXPECT_EQ(id({kList, "monday", "d"}), inode_in(number, id({"d"})));
  EXPECT_NE(id({kList, "monday", "d", "f"}), 0U);
  EXPECT_EQ(status(at({"d", "f"})), Status::kNoEnt);
  EXPECT_EQ(status(at({kList, "tuesday"})), Status::kNoEnt);
  // Only there.
  EXPECT_EQ(status(at({"d", kList})), Status::kNoEnt);
  EXPECT_EQ(status(at({kList, "monday", kList})), Status::kNoEnt);
  EXPECT_EQ(status(at({kList, kList})), Status::kNoEnt);
  EXPECT_FALSE(listing({kTop}).contains(kList));
  const auto list = listing(at({kList}));
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list.at("monday").file_id, inode_in(number, kRootInode));
  EXPECT_EQ(list.at("monday").fsid, listing({kTop}).at("d").fsid);
  EXPECT_EQ(listing(at({kList, "monday", "d"})).size(), 1U);
}

TEST_F(SnapshotView, UpIsTheWayBack) {
  make_tree();
  take("monday");
  EXPECT_EQ(file_id(at({kList}) + Operations{kUp}), kRootInode);
  EXPECT_EQ(file_id(at({kList, "monday"}) + Operations{kUp}), id({kList}));
  EXPECT_EQ(file_id(at({kList, "monday", "d"}) + Operations{kUp}), id({kList, "monday"}));
}

TEST_F(SnapshotView, NothingInThemChanges) {
  make_tree();
  take("monday");
  const Operations root = at({kList, "monday"});
  const Operations directory = at({kList, "monday", "d"});
  const Operations file = at({kList, "monday", "d", "f"});
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0777);
  for (const Operations& way : {at({kList}), root, directory, file})
    EXPECT_EQ(status(way + Operations{set}), Status::kRoFs);
  for (const Operations& way : {at({kList}), root, directory}) {
    EXPECT_EQ(status(way + Operations{new_directory("new")}), Status::kRoFs);
    EXPECT_EQ(status(way + Operations{nfs4::RemoveArguments{"f"}}), Status::kRoFs);
    auto make = client_->open_arguments("new", kShareBoth);
    make.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0666)));
    EXPECT_EQ(status(way + Operations{make}), Status::kRoFs);
  }
  EXPECT_EQ(status(directory + Operations{kSave, nfs4::RenameArguments{"f", "g"}}), Status::kRoFs);
  EXPECT_EQ(status(file + Operations{kSave, kTop} +
                   Operations{nfs4::LookupArguments{kList}, nfs4::LookupArguments{"monday"},
                              nfs4::LinkArguments{"g"}}),
            Status::kRoFs);
  EXPECT_EQ(status(directory + Operations{client_->open_arguments("f", kShareWrite)}), Status::kRoFs);
  EXPECT_EQ(status(directory + Operations{client_->open_arguments("f", kShareBoth)}), Status::kRoFs);
  EXPECT_EQ(status(directory + Operations{client_->open_arguments("f", kShareRead)}), Status::kOk);
  EXPECT_EQ(status(file + Operations{nfs4::SetXattrArguments{.key = "user", .value = Bytes(1)}}),
            Status::kRoFs);
  EXPECT_EQ(status(file + Operations{nfs4::RemoveXattrArguments{"user"}}), Status::kRoFs);
  const auto results = client_->call(file + Operations{nfs4::AccessArguments{0x3f}});
  const auto& access = response_at<nfs4::AccessResponse>(results, file.size()).result;
  EXPECT_EQ(access.access & (nfs4::kAccessModify | nfs4::kAccessExtend | nfs4::kAccessDelete), 0U);
  EXPECT_NE(access.access & nfs4::kAccessRead, 0U);
}

TEST_F(SnapshotView, NamesDoNotLeadFromOneTimeIntoAnother) {
  make_tree();
  take("monday");
  take("tuesday");
  const Operations file = at({kList, "monday", "d", "f"});
  EXPECT_EQ(status(file + Operations{kSave, kTop, nfs4::LinkArguments{"g"}}), Status::kXDev);
  EXPECT_EQ(status(at({kList, "monday", "d"}) + Operations{kSave, kTop, nfs4::RenameArguments{"f", "g"}}),
            Status::kXDev);
  EXPECT_EQ(status(at({"d"}) + Operations{kSave} + at({kList, "monday"}) +
                   Operations{nfs4::RenameArguments{"f", "g"}}),
            Status::kXDev);
  EXPECT_EQ(status(file + Operations{kSave} + at({kList, "tuesday"}) + Operations{nfs4::LinkArguments{"g"}}),
            Status::kXDev);
}

TEST_F(SnapshotView, TheNameOfTheListIsNotToBeHad) {
  make_tree();
  const auto refused = [&] {
    EXPECT_EQ(status({kTop, new_directory(kList)}), Status::kExist);
    auto make = client_->open_arguments(kList, kShareBoth);
    make.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0666)));
    EXPECT_EQ(status({kTop, make}), Status::kExist);
    EXPECT_EQ(status(at({"d", "f"}) + Operations{kSave, kTop, nfs4::LinkArguments{kList}}), Status::kExist);
    EXPECT_EQ(status({kTop, kSave, nfs4::RenameArguments{"d", kList}}), Status::kExist);
  };
  refused();
  take("monday");
  refused();
  EXPECT_EQ(status({kTop, nfs4::RemoveArguments{kList}}), Status::kRoFs);
  EXPECT_EQ(status({kTop, kSave, nfs4::RenameArguments{kList, "e"}}), Status::kRoFs);
  EXPECT_EQ(status({kTop, client_->open_arguments(kList, kShareRead)}), Status::kIsDir);
  // Everywhere else it is a name as any.
  EXPECT_EQ(status(at({"d"}) + Operations{new_directory(kList)}), Status::kOk);
}

TEST_F(SnapshotView, WhatHasTheNameIsThereWhileThereIsNoSnapshot) {
  NewInode old;
  old.type = FileType::kDirectory;
  old.mode = 0755;
  const auto made = server_->names->create(kRootInode, kList, old);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(id({kList}), made->inode->id);
  const SnapshotNumber number = take("monday");
  EXPECT_EQ(id({kList}), inode_in(kSnapshotList, kRootInode));
  EXPECT_EQ(id({kList, "monday", kList}), inode_in(number, made->inode->id));
  EXPECT_FALSE(listing({kTop}).contains(kList)) << "who walks the tree would walk all snapshots";
  EXPECT_TRUE(listing(at({kList, "monday"})).contains(kList));
  ASSERT_TRUE(server_->names->snapshots().set_state(number, SnapshotState::kGoing));
  EXPECT_EQ(id({kList}), made->inode->id);
  EXPECT_EQ(status({kTop, kSave, nfs4::RenameArguments{kList, "old"}}), Status::kOk);
}

TEST_F(SnapshotView, WhatHasGoneIsStale) {
  make_tree();
  const SnapshotNumber number = take("monday");
  take("tuesday");
  const nfs4::FileHandle file = handle(at({kList, "monday", "d", "f"}));
  const nfs4::ArgumentOperation there = nfs4::PutFileHandleArguments{file};
  const auto opened =
      client_->call(at({kList, "monday", "d"}) + Operations{client_->open_arguments("f", kShareRead)});
  ASSERT_EQ(opened.status, Status::kOk);
  const nfs4::Stateid held = response_at<nfs4::OpenResponse>(opened, 4).result.stateid;
  EXPECT_EQ(status({there, nfs4::GetFileHandleArguments{}}), Status::kOk);
  ASSERT_TRUE(server_->names->snapshots().set_state(number, SnapshotState::kGoing));
  EXPECT_EQ(status({there, nfs4::GetFileHandleArguments{}}), Status::kStale);
  EXPECT_EQ(status({there, nfs4::ReadArguments{held, 0, 1}}), Status::kStale);
  EXPECT_EQ(status({there, nfs4::CloseArguments{0, held}}), Status::kOk) << "who has it open can close it";
  EXPECT_FALSE(server_->opens.is_open(inode_in(number, id({"d", "f"}))));
  EXPECT_EQ(status(at({kList, "monday"})), Status::kNoEnt);
  EXPECT_EQ(listing(at({kList})).size(), 1U);
}

TEST_F(SnapshotView, ADirectoryThatIsYoungerIsNotInIt) {
  take("monday");
  make_tree();
  server_->exports.add(export_to("/pub"));
  take("tuesday");
  EXPECT_EQ(status(at({"pub", kList, "monday"})), Status::kNoEnt);
  EXPECT_EQ(id({"pub", kList, "tuesday", "f"}), inode_in(2, id({"pub", "f"})));
  const auto list = listing(at({"pub", kList}));
  EXPECT_EQ(list.size(), 1U);
  EXPECT_TRUE(list.contains("tuesday"));
}

// TestClient calls from 127.0.0.1, which /pub does not admit.
TEST_F(SnapshotView, NoWayLeadsIntoAnotherExport) {
  make_tree();
  take("monday");
  EXPECT_NE(id({kList, "monday", "pub", "f"}), 0U);
  const nfs4::FileHandle before = handle(at({kList, "monday", "pub", "f"}));
  serve({export_to("/"), export_to("/pub", "10.0.0.0/8")});
  EXPECT_EQ(status(at({kList, "monday", "pub"})), Status::kAccess);
  EXPECT_EQ(status(at({kList, "monday"}) + Operations{nfs4::SecurityInfoArguments{"pub"}}), Status::kAccess);
  const auto listed = listing(at({kList, "monday"}));
  ASSERT_TRUE(listed.contains("pub"));
  EXPECT_EQ(status({nfs4::PutFileHandleArguments{*listed.at("pub").file_handle}}), Status::kStale);
  EXPECT_NE(id({kList, "monday", "d", "f"}), 0U);
  // Those it admits see it there, and nothing around it.
  server_->peer = "10.0.0.1:900";
  EXPECT_NE(id({"pub", kList, "monday", "f"}), 0U);
  EXPECT_EQ(file_id(at({"pub", kList, "monday"}) + Operations{kUp}), inode_in(kSnapshotList, id({"pub"})));
  EXPECT_EQ(file_id(at({"pub", kList, "monday"}) + Operations{kUp, kUp}), id({"pub"}));
}

TEST_F(SnapshotView, WhatHadThePathOfAnExportIsItsOwnToo) {
  make_tree();
  take("monday");
  // Made anew: the directory of the snapshot is no export's today.
  ASSERT_EQ(status(at({"pub"}) + Operations{nfs4::RemoveArguments{"f"}}), Status::kOk);
  ASSERT_EQ(status({kTop, nfs4::RemoveArguments{"pub"}}), Status::kOk);
  ASSERT_EQ(status({kTop, new_directory("pub")}), Status::kOk);
  server_->exports.add(export_to("/pub", "10.0.0.0/8"));
  EXPECT_EQ(status(at({kList, "monday", "pub"})), Status::kAccess);
  server_->exports.remove(2);
  EXPECT_EQ(status(at({kList, "monday", "pub"})), Status::kOk);
}

TEST_F(SnapshotView, AnExportThatCannotHaveBeenThereHidesNothing) {
  make_tree();
  take("monday");
  server_->exports.add(export_to("/" + std::string(256, 'a'), "10.0.0.0/8"));
  server_->exports.add(export_to("/d/f/below", "10.0.0.0/8"));
  EXPECT_EQ(status(at({kList, "monday", "d"})), Status::kOk);
}

TEST_F(SnapshotView, ItIsTheSameWhereNoRowIsInMemory) {
  make_tree();
  const SnapshotNumber number = take("monday");
  const InodeId file = id({"d", "f"});
  host_.options = {.cached_inodes = 1, .cached_names = 1};
  host_.store.go_cold();
  host_.store.rows_fetched = 20;
  serve({export_to("/"), export_to("/pub", "10.0.0.0/8"), export_to("/later/on")});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(status(at({kList, "monday", "pub"})), Status::kAccess);
    EXPECT_EQ(id({kList, "monday", "d", "f"}), inode_in(number, file));
    EXPECT_EQ(listing(at({kList, "monday"})).size(), 2U);
    EXPECT_EQ(listing(at({kList})).size(), 1U);
    EXPECT_EQ(file_id(at({kList, "monday", "d"}) + Operations{kUp, kUp}), id({kList}));
    EXPECT_EQ(status(at({kList, "monday"}) + Operations{nfs4::RemoveArguments{"d"}}), Status::kRoFs);
    EXPECT_EQ(status({kTop, nfs4::RemoveArguments{kList}}), Status::kRoFs);
  }
}

TEST_F(SnapshotView, HandlesThatAnybodyCanMakeAreOfNone) {
  make_tree();
  const SnapshotNumber number = take("monday");
  const auto file = server_->names->lookup(id({"d"}), "f");
  ASSERT_TRUE(Records(host_.store).clear(RecordKind::kHandleKey));  // as an older program left it
  serve({export_to("/")}, /*served_before=*/true);
  const auto forged = [&](InodeId inode) {
    nfs4::FileHandle bytes(20);
    store_big_endian(bytes.data(), uint16_t{1});
    store_big_endian(bytes.data() + 2, uint16_t{1});
    store_big_endian(bytes.data() + 4, uint64_t{inode});
    store_big_endian(bytes.data() + 12, uint64_t{(*file)->generation});
    return nfs4::ArgumentOperation(nfs4::PutFileHandleArguments{bytes});
  };
  EXPECT_EQ(status({forged((*file)->id)}), Status::kOk);
  EXPECT_EQ(status({forged(inode_in(number, (*file)->id))}), Status::kStale);
  // By an old handle of the root one gets a new one.
  const Operations way = Operations{forged(kRootInode)} + Operations{nfs4::LookupArguments{kList}};
  EXPECT_EQ(handle(way).size(), 32U);
}

TEST_F(SnapshotView, NobodyGetsADelegation) {
  make_tree();
  take("monday");
  const auto delegated = [&](const Operations& way) {
    const auto results = client_->call(
        way + Operations{client_->open_arguments("f", kShareRead | nfs4::kShareAccessWantReadDelegation)});
    EXPECT_EQ(results.status, Status::kOk);
    const auto& opened = response_at<nfs4::OpenResponse>(results, way.size()).result;
    return opened.delegation.get_if<nfs4::DelegationType::kRead>() != nullptr;
  };
  EXPECT_TRUE(delegated(at({"d"})));
  EXPECT_FALSE(delegated(at({kList, "monday", "d"})));
}

}  // namespace
}  // namespace pnfsrdma::mds::snapshot_test
