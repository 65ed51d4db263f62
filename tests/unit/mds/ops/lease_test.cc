// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/unit/mds/ops/test_server.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class LeaseTest : public ::testing::Test {
 protected:
  LeaseTest() : server_(std::make_unique<TestServer>(host_)), client_(*server_) { client_.connect(); }

  nfs4::OpenResponse make(TestClient& client, const std::string& name) {
    auto arguments = client.open_arguments(name, kShareBoth);
    arguments.how = creating(create_how(nfs4::CreateMode::kUnchecked, mode_attribute(0644)));
    return client.open(arguments);
  }

  TestHost host_;
  std::unique_ptr<TestServer> server_;
  TestClient client_;
};

TEST_F(LeaseTest, SequenceRenewsIt) {
  for (int i = 0; i < 5; ++i) {
    host_.clock.advance(Milliseconds(20'000));
    server_->leases.expire_due();
    EXPECT_EQ(client_.call({}).status, Status::kOk);
  }
}

TEST_F(LeaseTest, ExpiredClientIsFencedThenForgotten) {
  ASSERT_TRUE(make(client_, "f").ok());
  server_->layouts.hold = true;
  host_.clock.advance(Milliseconds(31'000));
  server_->leases.expire_due();
  ASSERT_EQ(server_->layouts.gone.size(), 1U);
  EXPECT_EQ(client_.call({}).status, Status::kBadSession);
  // Not fenced yet: what it had open still counts.
  EXPECT_EQ(server_->opens.size(), 1U);
  server_->layouts.release();
  EXPECT_EQ(server_->opens.size(), 0U);
  EXPECT_EQ(server_->layouts.closed.size(), 1U);
  EXPECT_EQ(server_->counters.clients_expired, 1U);
  EXPECT_EQ(client_.create_session(client_.create_sequence + 1).status, Status::kStaleClientId);
}

TEST_F(LeaseTest, AServerThatStoodStillBlamesNobody) {
  EventLoop loop(host_.clock);
  server_->leases.start(loop, Milliseconds(1000));
  host_.clock.advance(Milliseconds(45'000));  // SIGSTOP; the renewals lie in the sockets
  loop.run_once(Milliseconds(0));
  EXPECT_EQ(server_->counters.clients_expired, 0U);
  EXPECT_EQ(client_.call({}).status, Status::kOk);
  for (int second = 0; second < 31; ++second) {
    host_.clock.advance(Milliseconds(1000));
    loop.run_once(Milliseconds(0));
  }
  EXPECT_EQ(server_->counters.clients_expired, 1U);
}

// Some hundred a turn; what is left conflicts, in this run of the server and in the next.
TEST_F(LeaseTest, AClientWithManyOpensGoesInSlicesAndARestartGoesOn) {
  constexpr size_t kOpens = 3000;
  const auto left = [&] { return server_->opens.opens_of_client(client_.id).size(); };
  for (size_t i = 0; i < kOpens; ++i) {
    OpenState open;
    open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), host_.random);
    open.client = client_.id;
    open.inode = 1'000'000 + i;
    open.access = kShareRead;
    open.deny = kShareWrite;
    ASSERT_TRUE(server_->state_store.put(open));
    server_->opens.add(std::move(open));
  }
  auto loop = std::make_unique<EventLoop>(host_.clock);
  server_->leases.start(*loop, Milliseconds(1000));
  for (int second = 0; second < 32 && left() == kOpens; ++second) {
    host_.clock.advance(Milliseconds(1000));
    loop->run_once(Milliseconds(0));
  }
  for (int turn = 0; turn < 4; ++turn) {
    const size_t before = left();
    loop->run_once(Milliseconds(0));
    EXPECT_LT(left(), before);
    EXPECT_LE(before - left(), 1000u) << "in one turn";
  }
  const size_t kept = left();
  ASSERT_GT(kept, 0u);

  server_ = nullptr;
  loop = std::make_unique<EventLoop>(host_.clock);
  server_ = std::make_unique<TestServer>(host_);
  // The client's end goes on, and it does not come back with half of what it had.
  EXPECT_EQ(server_->clients.find(client_.id), nullptr);
  EXPECT_LE(left(), kept);
  TestClient other(*server_, "other");
  other.connect();
  for (int turn = 0; turn < 20 && left() > 0; ++turn) host_.turn();
  EXPECT_EQ(left(), 0u);

  server_ = nullptr;
  server_ = std::make_unique<TestServer>(host_);
  EXPECT_EQ(server_->opens.size(), 0u);
  EXPECT_EQ(server_->clients.size(), 1u) << "the other one";
}

// Each range is in an index, too: few locks of many ranges are as much work as many locks.
TEST_F(LeaseTest, LocksOfManyRangesGoInSlices) {
  constexpr size_t kLocks = 64;
  constexpr uint64_t kRanges = 2000;
  const auto left = [&] { return server_->locks.locks_of_client(client_.id).size(); };
  OpenState open;
  open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), host_.random);
  open.client = client_.id;
  open.inode = 1'000'000;
  ASSERT_TRUE(server_->state_store.put(open));
  const StateidOther of_open = open.other;
  server_->opens.add(std::move(open));
  for (size_t i = 0; i < kLocks; ++i) {
    LockState lock;
    lock.other = make_stateid_other(StateKind::kLock, SteadyTime(), host_.random);
    lock.client = client_.id;
    lock.inode = 1'000'000;
    lock.owner = Bytes(1, static_cast<std::byte>(i));
    lock.open = of_open;
    for (uint64_t at = 0; at < kRanges; ++at) lock.ranges.lock({4 * at, 4 * at + 1, false});
    ASSERT_TRUE(server_->state_store.put(lock));
    server_->locks.add(std::move(lock));
  }
  EventLoop loop(host_.clock);
  server_->leases.start(loop, Milliseconds(1000));
  for (int second = 0; second < 32 && left() == kLocks; ++second) {
    host_.clock.advance(Milliseconds(1000));
    loop.run_once(Milliseconds(0));
  }
  EXPECT_GT(left(), kLocks / 2) << "of one turn";
  for (int turn = 0; turn < 100 && left() > 0; ++turn) loop.run_once(Milliseconds(0));
  EXPECT_EQ(left(), 0U);
  EXPECT_EQ(server_->opens.size(), 0U);
  server_ = nullptr;
}

// All hosts of a rack lose their power at once.
TEST_F(LeaseTest, ManyClientsExpireSoManyATurn) {
  constexpr size_t kClients = 200;
  constexpr size_t kPerTurn = 16;
  std::vector<std::shared_ptr<Client>> clients;
  for (uint64_t i = 0; i < kClients; ++i) {
    std::byte owner[8];
    store_big_endian(owner, i);
    clients.push_back(server_->clients.add(owner, {}, {}));
    server_->clients.confirm(*clients.back());
  }
  auto loop = std::make_unique<EventLoop>(host_.clock);
  server_->leases.start(*loop, Milliseconds(1000));
  const auto left = [&] { return server_->clients.size(); };
  for (int second = 0; second < 30; ++second) {
    host_.clock.advance(Milliseconds(1000));
    loop->run_once(Milliseconds(0));
  }
  ASSERT_EQ(client_.call({}).status, Status::kOk) << "its lease goes on";
  ASSERT_EQ(left(), kClients + 1);
  host_.clock.advance(Milliseconds(1000));
  loop->run_once(Milliseconds(0));
  EXPECT_EQ(left(), kClients + 1 - kPerTurn);
  // One of those that are left is heard of.
  const auto back = std::ranges::find_if(clients, [](const auto& client) { return !client->gone; });
  ASSERT_NE(back, clients.end());
  server_->clients.renew(**back);
  for (size_t turn = 0; turn < kClients / kPerTurn; ++turn) {
    const size_t before = left();
    loop->run_once(Milliseconds(0));
    EXPECT_LE(before - left(), kPerTurn);
  }
  EXPECT_EQ(left(), 2u);
  EXPECT_FALSE((*back)->gone);
  EXPECT_EQ(server_->counters.clients_expired, kClients - 1);
  EXPECT_EQ(server_->layouts.gone.size(), kClients - 1) << "each was fenced";
  server_ = nullptr;  // before the loop
}

TEST_F(LeaseTest, UnconfirmedClientIdDiesWithinALease) {
  TestClient other(*server_, "other");
  other.id = other.exchange_id().result.client_id;
  host_.clock.advance(Milliseconds(31'000));
  server_->leases.expire_due();
  EXPECT_EQ(other.create_session(1).status, Status::kStaleClientId);
}

TEST_F(LeaseTest, RestartOnTheSameBootKeepsClientsAndStateids) {
  const auto opened = make(client_, "f");
  server_ = nullptr;
  TestServer again(host_);
  EXPECT_EQ(again.opens.size(), 1U);
  TestClient client(again);
  client.id = client_.id;
  client.session = client_.session;
  client.seqid = client_.seqid;
  EXPECT_EQ(client.call({}).status, Status::kBadSession);
  ASSERT_TRUE(client.create_session(client_.create_sequence + 1).ok());
  nfs4::CloseArguments close;
  close.open_stateid = opened.result.stateid;
  EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{client_.last_handle}, close}), Status::kOk);
  // No grace: new opens go on at once.
  EXPECT_TRUE(make(client, "g").ok());
}

// A client hears of a shorter lease with its next session: until then it may be silent for as long as it was told.
// The store refuses to forget who a client was before its reboot.
TEST_F(LeaseTest, AfterARestartAClientIsWhoItWasLast) {
  constexpr size_t kClients = 8;  // which record is found first is chance
  std::vector<ClientId> last;
  for (size_t i = 0; i < kClients; ++i) {
    TestClient before(*server_, "client" + std::to_string(i));
    before.connect();
    ASSERT_TRUE(make(before, "f" + std::to_string(i)).ok());
    TestClient rebooted(*server_, "client" + std::to_string(i), 2);
    rebooted.id = rebooted.exchange_id().result.client_id;
    host_.store.stall(1);
    ASSERT_TRUE(rebooted.create_session(1).ok());
    last.push_back(rebooted.id);
  }
  for (int start = 0; start < 2; ++start) {
    server_ = nullptr;
    server_ = std::make_unique<TestServer>(host_);
    for (const ClientId id : last) EXPECT_NE(server_->clients.find(id), nullptr) << "start " << start;
    EXPECT_EQ(server_->opens.size(), 0U) << "of those before";
  }
}

// As earlier versions left them.
TEST_F(LeaseTest, OfTwoRecordsOfOneOwnerOneEndsForGood) {
  Client twin = *server_->clients.find(client_.id);
  twin.id = client_.id + 1;
  ASSERT_TRUE(server_->state_store.put(twin));
  OpenState open;
  open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), host_.random);
  open.client = twin.id;
  open.inode = 1'000'000;
  ASSERT_TRUE(server_->state_store.put(open));
  const auto both = [&] { return server_->state_store.load()->clients.size() == 2; };
  EXPECT_TRUE(both());
  server_ = nullptr;
  server_ = std::make_unique<TestServer>(host_);
  EXPECT_EQ(server_->clients.size(), 1U);
  EXPECT_FALSE(both());
  EXPECT_EQ(server_->opens.size() + (server_->clients.find(twin.id) == nullptr ? 1U : 0U), 1U)
      << "with what it had open";
}

TEST_F(LeaseTest, AClientOfBeforeHasTheLeaseItWasTold) {
  ASSERT_TRUE(make(client_, "f").ok());
  server_ = nullptr;
  host_.lease_before = Milliseconds(90'000);
  TestServer again(host_);
  host_.clock.advance(Milliseconds(80'000));
  again.leases.expire_due();
  EXPECT_EQ(again.opens.size(), 1U);
  TestClient client(again);
  client.id = client_.id;
  ASSERT_TRUE(client.create_session(client_.create_sequence + 1).ok());
  host_.clock.advance(Milliseconds(31'000));
  again.leases.expire_due();
  EXPECT_EQ(again.opens.size(), 0U);
}

TEST_F(LeaseTest, CreateSessionAnsweredByNobodyIsRunAgainAfterARestart) {
  server_ = nullptr;
  TestServer again(host_);
  TestClient client(again);
  client.id = client_.id;
  EXPECT_TRUE(client.create_session(client_.create_sequence).ok());
}

TEST_F(LeaseTest, RebootOfTheHostBringsGraceWithReclaim) {
  ASSERT_TRUE(make(client_, "f").ok());
  const auto handle = client_.last_handle;
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  EXPECT_EQ(again.opens.size(), 0U);
  TestClient client(again);
  const auto exchanged = client.exchange_id();
  client.id = exchanged.result.client_id;
  ASSERT_TRUE(client.create_session(exchanged.result.sequence_id).ok());
  EXPECT_EQ(make(client, "g").status, Status::kGrace);
  auto reclaim = client.open_arguments("", kShareBoth);
  reclaim.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
  EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{handle}, reclaim}), Status::kOk);

  TestClient stranger(again, "stranger");
  const auto strange = stranger.exchange_id();
  stranger.id = strange.result.client_id;
  ASSERT_TRUE(stranger.create_session(strange.result.sequence_id).ok());
  EXPECT_EQ(stranger.status({nfs4::PutFileHandleArguments{handle}, reclaim}), Status::kNoGrace);
  ASSERT_EQ(stranger.status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
  EXPECT_EQ(make(stranger, "g").status, Status::kGrace);

  // The only client on record is done: grace ends early.
  ASSERT_EQ(client.status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
  EXPECT_TRUE(make(stranger, "g").ok());
  EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{handle}, reclaim}), Status::kNoGrace);
}

// One who had not reclaimed could do so behind the next start, what others have got by then.
TEST_F(LeaseTest, GraceGoesOnUntilItsEndIsOnRecord) {
  ASSERT_TRUE(make(client_, "f").ok());
  server_ = nullptr;
  {
    TestServer rebooted(host_, {TestServer::default_export()}, /*same_boot=*/false);
    host_.clock.advance(Milliseconds(40'000));
    host_.store.stall(2);  // as while a snapshot is copied, or the metadata disk is full
    EXPECT_TRUE(rebooted.grace.active());
    EXPECT_TRUE(rebooted.grace.active());
    EXPECT_FALSE(rebooted.grace.active());
  }
  TestServer again(host_);
  EXPECT_FALSE(again.grace.active());
  EXPECT_EQ(again.clients.size(), 0u);
}

// Whoever has not reclaimed by then has no opens here, and would never hear of it.
TEST_F(LeaseTest, ARestartInTheGracePeriodBeginsItAnew) {
  ASSERT_TRUE(make(client_, "f").ok());
  const auto handle = client_.last_handle;
  server_ = nullptr;
  {
    const TestServer rebooted(host_, {TestServer::default_export()}, /*same_boot=*/false);
    EXPECT_EQ(rebooted.clients.size(), 0u);
  }
  {
    TestServer again(host_);
    EXPECT_TRUE(again.grace.active());
    TestClient client(again);
    client.id = client_.id;
    EXPECT_EQ(client.create_session(client_.create_sequence + 1).status, Status::kStaleClientId);
    const auto exchanged = client.exchange_id();
    client.id = exchanged.result.client_id;
    ASSERT_TRUE(client.create_session(exchanged.result.sequence_id).ok());
    auto reclaim = client.open_arguments("", kShareBoth);
    reclaim.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
    EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{handle}, reclaim}), Status::kOk);
    ASSERT_EQ(client.status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
    EXPECT_FALSE(again.grace.active());
  }
  TestServer later(host_);
  EXPECT_FALSE(later.grace.active());
  EXPECT_EQ(later.clients.size(), 1u);
  EXPECT_EQ(later.opens.size(), 1u);
}

TEST_F(LeaseTest, GraceGoesOnWhileReclaimsArriveAndNoLongerThanTwice) {
  ASSERT_TRUE(make(client_, "f").ok());
  const auto handle = client_.last_handle;
  TestClient silent(*server_, "silent");
  silent.connect();
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  TestClient client(again);
  const auto exchanged = client.exchange_id();
  client.id = exchanged.result.client_id;
  ASSERT_TRUE(client.create_session(exchanged.result.sequence_id).ok());
  auto reclaim = client.open_arguments("", kShareBoth);
  reclaim.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
  const Milliseconds lease = again.limits.lease;
  const SteadyTime began = host_.clock.now();
  Status status = Status::kOk;
  while (status == Status::kOk && host_.clock.now() - began < 3 * lease) {
    host_.clock.advance(lease / 5);
    status = client.status({nfs4::PutFileHandleArguments{handle}, reclaim});
  }
  EXPECT_EQ(status, Status::kNoGrace);
  EXPECT_GE(host_.clock.now() - began, 2 * lease);
  EXPECT_LT(host_.clock.now() - began, 2 * lease + lease / 4);
}

TEST_F(LeaseTest, GraceEndsWithItsTimeWhereNobodyReclaims) {
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  EXPECT_TRUE(again.grace.active());
  host_.clock.advance(again.limits.lease + Milliseconds(1));
  EXPECT_FALSE(again.grace.active());
}

// What a client says it had open before the reboot is checked as any OPEN: there is no record of it.
TEST_F(LeaseTest, AReclaimGoesNoFurtherThanPermissionAndExport) {
  TestClient root(*server_, "root");
  root.connect();
  auto secret = root.open_arguments("secret", kShareBoth);
  secret.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0600)));
  ASSERT_TRUE(root.open(secret).ok());
  const auto handle = root.last_handle;
  nfs4::SetAttributesArguments give;
  give.attributes.owner = "1001";
  ASSERT_EQ(root.status({nfs4::PutFileHandleArguments{handle}, give}), Status::kOk);
  const auto reclaims = [&](Export through, const Credentials& who, uint32_t access) {
    server_ = nullptr;
    TestServer again(host_, {through}, /*same_boot=*/false);
    TestClient client(again);
    const auto exchanged = client.exchange_id();
    client.id = exchanged.result.client_id;
    EXPECT_TRUE(client.create_session(exchanged.result.sequence_id).ok());
    auto reclaim = client.open_arguments("", access);
    reclaim.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
    client.who = who;
    const Status status = client.status({nfs4::PutFileHandleArguments{handle}, reclaim});
    client.who = {.uid = 0, .gid = 0, .groups = {}};
    EXPECT_EQ(client.status({nfs4::ReclaimCompleteArguments{}}), Status::kOk);
    return status;
  };
  const Export all = TestServer::default_export();
  Export read_only = all;
  read_only.read_only = true;
  const Credentials stranger{.uid = 1000, .gid = 1000, .groups = {}};
  const Credentials owner{.uid = 1001, .gid = 1001, .groups = {}};
  EXPECT_EQ(reclaims(all, stranger, kShareRead), Status::kAccess);
  EXPECT_EQ(reclaims(all, owner, kShareBoth), Status::kOk);
  EXPECT_EQ(reclaims(read_only, owner, kShareBoth), Status::kRoFs);
  EXPECT_EQ(reclaims(read_only, owner, kShareRead), Status::kOk);
}

// It may have made the file with a mode that does not let itself in, or changed the mode behind the OPEN.
TEST_F(LeaseTest, TheOwnerReclaimsWhateverTheModeSays) {
  ASSERT_TRUE(make(client_, "f").ok());
  const auto handle = client_.last_handle;
  nfs4::SetAttributesArguments give;
  give.attributes = mode_attribute(0);
  give.attributes.owner = "1001";
  ASSERT_EQ(client_.status({nfs4::PutFileHandleArguments{handle}, give}), Status::kOk);
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  TestClient client(again);
  const auto exchanged = client.exchange_id();
  client.id = exchanged.result.client_id;
  ASSERT_TRUE(client.create_session(exchanged.result.sequence_id).ok());
  auto reclaim = client.open_arguments("", kShareBoth);
  reclaim.claim = nfs4::OpenClaim::of(nfs4::ClaimType::kPrevious);
  client.who = {.uid = 1001, .gid = 1001, .groups = {}};
  EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{handle}, reclaim}), Status::kOk);
}

TEST_F(LeaseTest, GraceEndsByTime) {
  server_ = nullptr;
  TestServer again(host_, {TestServer::default_export()}, /*same_boot=*/false);
  TestClient stranger(again, "stranger");
  stranger.connect();
  EXPECT_EQ(make(stranger, "g").status, Status::kGrace);
  host_.clock.advance(Milliseconds(29'000));
  EXPECT_EQ(make(stranger, "g").status, Status::kGrace);
  host_.clock.advance(Milliseconds(2'000));
  EXPECT_TRUE(make(stranger, "g").ok());
}

}  // namespace
}  // namespace pnfsrdma::mds
