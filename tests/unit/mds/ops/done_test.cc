// SPDX-License-Identifier: Apache-2.0
// A request whose change was durable when the daemon died is repeated, and answers what it would have
// answered.
#include "server/mds/state/done_record.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class Done : public ::testing::Test {
 protected:
  Done() { client_->connect(); }

  static nfs4::ArgumentOperation root() { return nfs4::PutRootFileHandleArguments{}; }
  static Operations make(const std::string& name) {
    nfs4::CreateArguments create;
    create.type = nfs4::CreateType::of(nfs4::FileType::kDirectory);
    create.name = name;
    create.attributes = mode_attribute(0755);
    return {root(), create, nfs4::GetFileHandleArguments{}};
  }
  static Operations rename(const std::string& from, const std::string& to) {
    nfs4::RenameArguments arguments;
    arguments.old_name = from;
    arguments.new_name = to;
    return {root(), nfs4::SaveFileHandleArguments{}, arguments};
  }
  static Operations remove(const std::string& name) {
    nfs4::RemoveArguments arguments;
    arguments.target = name;
    return {root(), arguments};
  }
  // The bytes of a request, with the next number of slot 0.
  Operations request(Operations operations) {
    operations.insert(operations.begin(), client_->next_sequence());
    return operations;
  }
  // The request is run, nobody gets its reply, the daemon dies and is started again.
  void cut_off(const Operations& request, Status expected = Status::kOk) {
    EXPECT_EQ(server_->call(request).status, expected);
    restart();
  }
  void restart() {
    server_ = nullptr;
    server_ = std::make_unique<TestServer>(host_);
  }
  bool exists(const std::string& name) { return server_->names->lookup(kRootInode, name).has_value(); }

  TestHost host_;
  std::unique_ptr<TestServer> server_ = std::make_unique<TestServer>(host_);
  std::unique_ptr<TestClient> client_ = std::make_unique<TestClient>(*server_);
};

TEST_F(Done, RenameAnswersWhatItAnswered) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  const Operations sent = request(rename("a", "b"));
  cut_off(sent);
  for (int i = 0; i < 2; ++i) {  // its answer may be lost as well
    const auto repeated = server_->call(sent);
    EXPECT_EQ(repeated.status, Status::kOk);
    EXPECT_FALSE(response_at<nfs4::RenameResponse>(repeated, 3).result.target.atomic);
  }
  EXPECT_TRUE(exists("b"));
  EXPECT_FALSE(exists("a"));
}

TEST_F(Done, ItIsNotDoneAgain) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  const Operations sent = request(rename("a", "b"));
  cut_off(sent);
  TestClient other(*server_, "other");
  other.connect();
  ASSERT_EQ(other.status(make("a")), Status::kOk);  // another's, of the name that was renamed
  EXPECT_EQ(server_->call(sent).status, Status::kOk);
  EXPECT_TRUE(exists("a"));
}

// Its VERIFYs would fail now, and the client would take it for not done.
TEST_F(Done, AnExchangeIsNotTakenBack) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  ASSERT_EQ(client_->status(make("b")), Status::kOk);
  const auto handle_of = [&](const std::string& name) {
    const auto found = client_->call({root(), nfs4::LookupArguments{name}, nfs4::GetFileHandleArguments{}});
    return response_at<nfs4::GetFileHandleResponse>(found, 2).result.object;
  };
  const auto id_of = [&](const std::string& name) {
    return server_->names->lookup(kRootInode, name).value()->id;
  };
  const InodeId a = id_of("a");
  const Operations sent =
      request(exchanging({{root()}, "a", handle_of("a")}, {{root()}, "b", handle_of("b")}));
  cut_off(sent);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(server_->call(sent).status, Status::kOk);
  EXPECT_EQ(id_of("b"), a);
}

TEST_F(Done, RemoveAnswersWhatItAnswered) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  const Operations sent = request(remove("a"));
  cut_off(sent);
  EXPECT_EQ(server_->call(sent).status, Status::kOk);
}

TEST_F(Done, CreateAnswersWithWhatItMade) {
  const Operations sent = request(make("a"));
  cut_off(sent);
  const InodeId made = server_->names->lookup(kRootInode, "a").value()->id;
  const auto repeated = server_->call(sent);
  ASSERT_EQ(repeated.status, Status::kOk);
  const auto handle = response_at<nfs4::GetFileHandleResponse>(repeated, 3).result.object;
  nfs4::LookupArguments lookup;
  lookup.name = "a";
  TestClient other(*server_, "other");
  other.connect();
  const auto found = other.call({root(), lookup, nfs4::GetFileHandleArguments{}});
  EXPECT_EQ(response_at<nfs4::GetFileHandleResponse>(found, 2).result.object, handle);
  EXPECT_EQ(server_->names->lookup(kRootInode, "a").value()->id, made);
}

TEST_F(Done, LinkAnswersWhatItAnswered) {
  auto open = client_->open_arguments("f", 3);
  open.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0644)));
  ASSERT_TRUE(client_->open(open).ok());
  nfs4::LinkArguments link;
  link.new_name = "g";
  const Operations sent = request(
      {nfs4::PutFileHandleArguments{client_->last_handle}, nfs4::SaveFileHandleArguments{}, root(), link});
  cut_off(sent);
  EXPECT_EQ(server_->call(sent).status, Status::kOk);
  EXPECT_EQ(server_->names->lookup(kRootInode, "f").value()->nlink, 2u);
}

TEST_F(Done, AnOpenThatMadeItsFileAnswersWithThat) {
  auto open = client_->open_arguments("f", kShareBoth);
  open.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0644)));
  const Operations sent = request({root(), open, nfs4::GetFileHandleArguments{}});
  cut_off(sent);
  for (int i = 0; i < 2; ++i) {
    const auto repeated = server_->call(sent);
    ASSERT_EQ(repeated.status, Status::kOk);
    const auto& opened = response_at<nfs4::OpenResponse>(repeated, 2).result;
    const auto& handle = response_at<nfs4::GetFileHandleResponse>(repeated, 3).result.object;
    EXPECT_TRUE(opened.attributes_set.test(nfs4::Attribute::kMode));
    EXPECT_FALSE(opened.change.atomic);
    if (i == 0) continue;  // its answer may be lost as well
    TestClient back(*server_);
    back.id = client_->id;
    ASSERT_TRUE(back.create_session(client_->create_sequence + 1).ok());
    EXPECT_EQ(back.open(open).status, Status::kExist) << "that is another one";
    nfs4::CloseArguments close;
    close.open_stateid = opened.stateid;
    EXPECT_EQ(back.status({nfs4::PutFileHandleArguments{handle}, close}), Status::kOk);
  }
  EXPECT_EQ(server_->opens.size(), 0U);
  EXPECT_EQ(server_->call(sent).status, Status::kDeadSession) << "it is closed";
}

TEST_F(Done, AnOpenDoesNotOutliveTheHost) {
  auto open = client_->open_arguments("f", kShareBoth);
  open.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0644)));
  const Operations sent = request({root(), open});
  ASSERT_EQ(server_->call(sent).status, Status::kOk);
  server_ = nullptr;
  server_ =
      std::make_unique<TestServer>(host_, std::vector{TestServer::default_export()}, /*same_boot=*/false);
  EXPECT_EQ(server_->call(sent).status, Status::kDeadSession);
}

TEST_F(Done, EverythingElseOfAnEarlierSessionMeetsBadSession) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  const Operations sent = request(rename("a", "b"));
  cut_off(sent);
  EXPECT_EQ(server_->call(request(rename("b", "c"))).status, Status::kBadSession) << "the next one";
  Operations other = sent;
  other.back() = rename("a", "x").back();
  EXPECT_EQ(server_->call(other).status, Status::kBadSession) << "not the same request";
  EXPECT_TRUE(exists("b"));
}

TEST_F(Done, WhatFailedIsNotDone) {
  const Operations sent = request(remove("none"));
  cut_off(sent, Status::kNoEnt);
  EXPECT_EQ(server_->call(sent).status, Status::kBadSession);
}

TEST_F(Done, WhoKeepsNoReplyIsToldNothing) {
  client_->cache = false;
  const Operations sent = request(make("a"));
  cut_off(sent);
  EXPECT_EQ(server_->call(sent).status, Status::kBadSession);
}

// The daemon died between two changes of one COMPOUND, as far as anybody can tell.
TEST_F(Done, AChangeBehindTheLastOneIsNotMadeInADeadSession) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  Operations both = rename("a", "b");
  both.push_back(remove("c").back());
  const Operations sent = request(both);
  cut_off(sent, Status::kNoEnt);
  TestClient other(*server_, "other");
  other.connect();
  ASSERT_EQ(other.status(make("c")), Status::kOk);
  EXPECT_EQ(server_->call(sent).status, Status::kDeadSession);
  EXPECT_TRUE(exists("c"));
}

TEST_F(Done, AHostThatWentDownKnowsItToo) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  const Operations sent = request(rename("a", "b"));
  ASSERT_EQ(server_->call(sent).status, Status::kOk);
  server_ = nullptr;
  server_ =
      std::make_unique<TestServer>(host_, std::vector{TestServer::default_export()}, /*same_boot=*/false);
  EXPECT_EQ(server_->call(sent).status, Status::kOk);
}

size_t records(KeyValueStore& store) {
  size_t count = 0;
  EXPECT_TRUE(Records(store).scan(RecordKind::kDone,
                                  [&](std::string_view, std::string_view) { return ++count > 0; }));
  return count;
}

TEST_F(Done, ASessionThatEndsLeavesNoRecord) {
  ASSERT_EQ(client_->status(make("a")), Status::kOk);
  ASSERT_EQ(client_->status(make("b")), Status::kOk);
  EXPECT_EQ(records(host_.store), 1u) << "one a slot";
  const auto client = server_->clients.find(client_->id);
  server_->sessions.destroy_all_of(*client);
  EXPECT_EQ(records(host_.store), 0u);
}

TEST_F(Done, ThoseOfEarlierSessionsGoInTimeAndInSlices) {
  for (uint32_t slot = 0; slot < 700; ++slot) {
    Batch batch;
    DoneRecords::put(batch, {.session = {}, .slot = slot, .seqid = 1});
    ASSERT_TRUE(host_.store.commit(batch, CommitKind::kState));
  }
  ASSERT_EQ(client_->status(make("mine")), Status::kOk);
  ASSERT_EQ(records(host_.store), 701u);
  server_->leases.start(host_.loop, std::chrono::hours(1));
  host_.clock.advance(std::chrono::minutes(9));
  host_.turn();
  EXPECT_EQ(records(host_.store), 701u);
  host_.clock.advance(std::chrono::minutes(2));
  host_.turn();
  EXPECT_GT(records(host_.store), 1u);
  for (int turn = 0; turn < 5; ++turn) {
    host_.clock.advance(Milliseconds(20));
    host_.turn();
  }
  EXPECT_EQ(records(host_.store), 1u) << "that of the session that lives";
}

}  // namespace
}  // namespace pnfsrdma::mds
