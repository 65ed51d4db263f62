// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/control_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/brickd/brick.h"
#include "server/brickd/pool.h"
#include "shared/base/log.h"
#include "shared/base/log_observer.h"
#include "shared/brick/client.h"
#include "shared/rpc/dial.h"
#include "shared/rpc/server.h"
#include "shared/rpc_tls/endpoint.h"
#include "shared/xdr/codec.h"
#include "tests/doubles/test_authority.h"
#include "tests/unit/brickd/pools.h"

namespace pnfsrdma::brick {
namespace {

// Brick and client in one loop, a socket between them.
class Server : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    folder = std::filesystem::temp_directory_path() / ("brick-control." + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    make_brick({});
  }
  void TearDown() override {
    gate.open();
    client.reset();
    brick.reset();
    std::filesystem::remove_all(folder);
    set_log_level(LogLevel::kInfo);
  }
  std::string path() const { return folder + "/control.sock"; }
  void make_brick(BrickOptions options) {
    brick.emplace(loop, std::move(*Pool::in_memory(4, random)), BootId{}, random, options);
    ASSERT_TRUE(brick->serve_control_unix(path()));
  }
  void connect(const std::string& address, Milliseconds keepalive = Milliseconds(5000),
               Milliseconds call_timeout = Milliseconds(30'000)) {
    client.emplace(loop,
                   BrickClientOptions{.address = address,
                                      .call_timeout = call_timeout,
                                      .backoff_shortest = Milliseconds(5),
                                      .keepalive = keepalive,
                                      .may_speak = [this] { return may_speak; }},
                   BrickClient::Events{[this] { ++connects; }, [this](const Error&) { ++losses; }});
    client->start();
    wait_for([this] { return client->connected(); });
  }
  template <typename Condition>
  void wait_for(Condition condition) {
    for (int turn = 0; turn < 500 && !condition(); ++turn) loop.run_once(Milliseconds(10));
    EXPECT_TRUE(condition());
  }
  template <typename Answer, typename Arguments>
  Result<Answer> call(void (BrickClient::*method)(const Arguments&, Control::Done<Answer>),
                      const Arguments& arguments) {
    std::optional<Result<Answer>> answer;
    ((*client).*method)(arguments, [&](Result<Answer> result) { answer.emplace(std::move(result)); });
    EXPECT_FALSE(answer);  // never from inside the call
    wait_for([&] { return answer.has_value(); });
    return *answer;
  }

  std::string folder;
  SystemClock clock;
  SystemRandom random;
  EventLoop loop{clock};
  HeldPersistence::Gate gate;  // of a brick whose flushes wait
  std::optional<Brick> brick;
  std::optional<BrickClient> client;
  bool may_speak = true;
  int connects = 0;
  int losses = 0;
};

class ProtectedServer : public Server {
 protected:
  void SetUp() override {
    Server::SetUp();
    authority.emplace(folder + "/ca");
    authority->issue("brick", {.names = "IP:127.0.0.1", .usage = "serverAuth"});
    authority->issue("alpha", {});
    served = *rpc_tls::Endpoint::open(rpc_tls::Role::kServer, files("brick"));
    shown = *rpc_tls::Endpoint::open(rpc_tls::Role::kClient, files("alpha"));
    address = *brick->serve_control_tcp("127.0.0.1:0", served);
  }
  rpc_tls::Files files(const std::string& name) const {
    return {authority->file(name + ".pem"), authority->file(name + ".key"), authority->file("ca.pem")};
  }
  void start_client() {
    client.emplace(loop,
                   BrickClientOptions{.address = address,
                                      .backoff_shortest = Milliseconds(5),
                                      .keepalive = Milliseconds(5000),
                                      .tls = [this]() -> Result<std::shared_ptr<rpc::TlsEndpoint>> {
                                        if (refused) return fail(EACCES, "not now");
                                        return std::shared_ptr<rpc::TlsEndpoint>(shown);
                                      }},
                   BrickClient::Events{.on_connected = [this] { ++connects; },
                                       .on_lost = [this](const Error&) { ++losses; },
                                       .on_unreachable = [this](const Error& why) { unreachable = why; }});
    client->start();
  }

  std::optional<TestAuthority> authority;
  std::shared_ptr<rpc_tls::Endpoint> served;
  std::shared_ptr<rpc_tls::Endpoint> shown;
  std::string address;
  std::optional<Error> unreachable;
  bool refused = false;
};

TEST_F(ProtectedServer, AnswersWhoHasACertificate) {
  start_client();
  wait_for([this] { return client->connected(); });
  EXPECT_TRUE(client->secured());
  EXPECT_EQ(connects, 1);
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{1, 0, 2})->runs.at(0).count, 2u);
}

TEST_F(ProtectedServer, AnswersNobodyElse) {
  shown = nullptr;
  start_client();
  wait_for([this] { return client->connected(); });
  const auto plain = call(&BrickClient::claim, ClaimArguments{1, "test"});
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().number(), EACCES) << plain.error().to_string();
  // Its Unix socket is as it was.
  connect(path());
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
}

TEST_F(ProtectedServer, AClientWithACertificateSaysNothingToABrickWithout) {
  address = *brick->serve_control_tcp("127.0.0.1:0");
  start_client();
  wait_for([this] { return unreachable.has_value(); });
  EXPECT_EQ(unreachable->number(), ENOTSUP) << unreachable->to_string();
  EXPECT_EQ(connects, 0);
}

TEST_F(ProtectedServer, AClientThatMustNotConnectDoesNot) {
  refused = true;
  start_client();
  wait_for([this] { return unreachable.has_value(); });
  EXPECT_EQ(unreachable->number(), EACCES);
  refused = false;
  wait_for([this] { return client->connected(); });
}

TEST_F(ProtectedServer, WhoIsTakenOutOfTheListIsEndedAndNotLetInAgain) {
  start_client();
  wait_for([this] { return client->connected(); });
  ASSERT_TRUE(served->reload(files("brick"), {"beta"}));
  brick->reassess_tls();
  wait_for([this] { return losses == 1; });
  wait_for([this] { return unreachable.has_value(); });
  EXPECT_EQ(connects, 1);
  ASSERT_TRUE(served->reload(files("brick"), {"beta", "alpha"}));
  brick->reassess_tls();
  wait_for([this] { return client->connected(); });
}

// At whatever moment of connecting the reload comes.
TEST_F(ProtectedServer, WhoIsTakenOutWhileItConnectsIsNotLetIn) {
  for (int turns = 0; turns < 40; ++turns) {
    SCOPED_TRACE("after turns: " + std::to_string(turns));
    ASSERT_TRUE(served->reload(files("brick")));
    unreachable.reset();
    connects = losses = 0;
    start_client();
    for (int turn = 0; turn < turns; ++turn) loop.run_once(Milliseconds(0));
    ASSERT_TRUE(served->reload(files("brick"), {"beta"}));
    brick->reassess_tls();
    wait_for([this] { return unreachable.has_value(); });
    EXPECT_FALSE(client->connected());
    EXPECT_EQ(connects, losses);
  }
}

TEST_F(ProtectedServer, ABrickOfAnAuthorityThatIsRemovedIsNotReached) {
  TestAuthority other(folder + "/other");
  const rpc_tls::Files changed{files("alpha").certificate, files("alpha").key, other.file("ca.pem")};
  const auto first = shown;
  for (const bool reloaded : {true, false}) {  // else another endpoint takes the place of this one
    for (int turns = 0; turns < 40; ++turns) {
      SCOPED_TRACE((reloaded ? "reloaded after turns: " : "replaced after turns: ") + std::to_string(turns));
      shown = first;
      ASSERT_TRUE(shown->reload(files("alpha")));
      unreachable.reset();
      connects = losses = 0;
      start_client();
      for (int turn = 0; turn < turns && connects == 0; ++turn) loop.run_once(Milliseconds(0));
      if (!reloaded && connects > 0)
        break;  // BrickTls ends such a connection before it takes another endpoint
      if (reloaded) {
        ASSERT_TRUE(shown->reload(changed));
      } else {
        shown = *rpc_tls::Endpoint::open(rpc_tls::Role::kClient, changed);
      }
      client->reassess_tls();
      wait_for([this] { return unreachable.has_value(); });
      EXPECT_FALSE(client->connected());
      EXPECT_EQ(connects, losses);
    }
  }
}

TEST_F(ProtectedServer, AClientThatIsToUseItFromNowOnConnectsAnew) {
  const auto certificate = std::exchange(shown, nullptr);
  address = *brick->serve_control_tcp("127.0.0.1:0");
  start_client();
  wait_for([this] { return client->connected(); });
  client->reassess_tls();
  EXPECT_TRUE(client->connected());
  shown = certificate;
  client->reassess_tls();
  wait_for([this] { return unreachable.has_value(); });
  EXPECT_EQ(unreachable->number(), ENOTSUP) << "this brick does not offer it";
}

// The journal of calls: those that change something, with who called and what it was answered, in order.
TEST_F(Server, JournalsCallsUnderAnEpochAndNothingElse) {
  std::vector<std::string> lines;
  observe_log([&lines](LogLevel level, std::string_view component, std::string_view text) {
    if (level == LogLevel::kDebug && component == "brick") lines.emplace_back(text);
  });
  connect(path());
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);  // not logged yet
  set_log_level(LogLevel::kDebug);
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{5, "test"})->status, Status::kOk);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{4, 0, 2})->status, Status::kStaleEpoch);
  EXPECT_EQ(call(&BrickClient::open_session, OpenSessionArguments{5, 7, {}})->status, Status::kInvalid);
  std::optional<Result<IdentifyResult>> identified;
  client->identify([&](Result<IdentifyResult> result) { identified.emplace(std::move(result)); });
  wait_for([&] { return identified.has_value(); });
  set_log_level(LogLevel::kOff);
  observe_log(nullptr);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].find(" procedure=claim epoch=5 status=ok microseconds="), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(" procedure=alloc epoch=4 status=stale-epoch microseconds="), std::string::npos)
      << lines[1];
  EXPECT_NE(lines[2].find(" procedure=open-session epoch=5 status=invalid microseconds="), std::string::npos)
      << lines[2];
  for (const std::string& line : lines) EXPECT_TRUE(line.starts_with("call peer=")) << line;
}

TEST_F(Server, AnswersOverItsUnixSocketWhichOnlyItsOwnerCanUse) {
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  connect("unix:" + path());
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{3, "test"})->claimed_epoch, 3u);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{3, 0, 2})->runs.at(0).count, 2u);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{2, 0, 2})->status, Status::kStaleEpoch);
  EXPECT_EQ(call(&BrickClient::list, ListArguments{0, 8})->runs.at(0).run.count, 2u);
  EXPECT_EQ(call(&BrickClient::list_grants, ListGrantsArguments{5})->status, Status::kNotFound);
}

TEST_F(Server, AnswersOverTcp) {
  const auto address = brick->serve_control_tcp("127.0.0.1:0");
  ASSERT_TRUE(address);
  connect(*address);
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
}

TEST_F(Server, ClientFindsARestartedBrickByItself) {
  connect(path());
  const uint64_t first = call(&BrickClient::claim, ClaimArguments{1, "test"})->incarnation;
  brick.reset();
  wait_for([this] { return losses == 1; });
  const auto lost = call(&BrickClient::alloc, AllocArguments{1, 0, 1});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().number(), ENOTCONN);
  make_brick({});
  wait_for([this] { return connects == 2; });
  EXPECT_NE(call(&BrickClient::claim, ClaimArguments{1, "test"})->incarnation, first);
}

TEST_F(Server, AnMdsOfBeforeIsToldOfAllGrantsAtOnce) {
  connect(path());
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  ASSERT_EQ(call(&BrickClient::open_session, OpenSessionArguments{1, 7, {std::byte{1}}})->status,
            Status::kOk);
  ASSERT_EQ(call(&BrickClient::alloc, AllocArguments{1, 0, 1})->status, Status::kOk);
  const size_t several = kListedGrantsPerCall + 1;
  size_t answered = 0;
  for (size_t i = 0; i < several; ++i) {
    client->expose({1, 7, 0, 4096, true}, [&](const Result<ExposeResult>&) { ++answered; });
    if (i % 64 == 0) wait_for([&] { return answered == i + 1; });
  }
  wait_for([&] { return answered == several; });

  auto socket = rpc::SocketAddress::parse("unix:" + path(), 0);
  ASSERT_TRUE(socket);
  rpc::ConnectionPointer before;
  rpc::dial(loop, *socket, Milliseconds(1000), [&](Result<FileDescriptor> connected) {
    before = rpc::Connection::start(loop, std::move(*connected), {.record_bytes_max = 1 << 20}, nullptr);
  });
  wait_for([&] { return before != nullptr; });
  std::optional<AllGrantsResult> all;
  before->call(kProgram, kVersion, 12, {}, xdr::encode_to_bytes(ListAllGrantsArguments{7}),
               Milliseconds(1000),
               [&](Result<rpc::Reply> reply) { all = *xdr::decode_from<AllGrantsResult>(reply->results); });
  wait_for([&] { return all.has_value(); });
  EXPECT_EQ(all->status, Status::kOk);
  EXPECT_EQ(all->grants.size(), several);
  before->close();
}

TEST_F(Server, ABrickOfBeforeIsAskedForAllGrantsAtOnce) {
  const std::string socket = folder + "/before.sock";
  std::vector<uint32_t> asked;
  rpc::Service service;
  service.on_call = [&](const rpc::ConnectionPointer&, const rpc::IncomingCall& call,
                        rpc::Responder responder) {
    asked.push_back(call.header.procedure);
    if (call.header.procedure != 12) return responder.refuse(rpc::AcceptStatus::kProcedureUnavailable);
    AllGrantsResult all;
    all.grants.resize(kListedGrantsPerCall + 1);
    responder.reply(xdr::encode_to_bytes(all));
  };
  auto address = rpc::SocketAddress::parse("unix:" + socket, 0);
  ASSERT_TRUE(address);
  const auto listener = rpc::Listener::listen(loop, *address, std::move(service));
  ASSERT_TRUE(listener);
  connect("unix:" + socket);
  const auto listed = call(&BrickClient::list_grants, ListGrantsArguments{7});
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->grants.size(), kListedGrantsPerCall + 1);
  EXPECT_FALSE(listed->more);
  EXPECT_EQ(asked, (std::vector<uint32_t>{22, 12}));
}

// Another one may have taken its place, which perhaps does not reach this brick.
TEST_F(Server, AnMdsThatMayNotSpeakRenewsNoLeaseAndChangesNothing) {
  brick.reset();
  make_brick({.lease = Milliseconds(200)});
  connect(path(), Milliseconds(50));
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  ASSERT_EQ(call(&BrickClient::alloc, AllocArguments{1, 0, 1})->status, Status::kOk);
  may_speak = false;
  const auto refused = call(&BrickClient::alloc, AllocArguments{1, 1, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOTCONN);
  wait_for([this] { return losses == 1; });  // its lease has run out
  may_speak = true;
  wait_for([this] { return connects == 2; });
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{1, 1, 1})->status, Status::kLapsed);
  EXPECT_EQ(call(&BrickClient::list, ListArguments{0, 8})->runs.at(0).run.count, 1u);
}

TEST_F(Server, NullCallsKeepTheLeaseOfTheMds) {
  brick.reset();
  make_brick({.lease = Milliseconds(200)});
  connect(path(), Milliseconds(50));
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  ASSERT_EQ(call(&BrickClient::open_session, OpenSessionArguments{1, 7, {std::byte{1}}})->status,
            Status::kOk);
  const SteadyTime until = clock.now() + Milliseconds(600);
  while (clock.now() < until) loop.run_once(Milliseconds(20));
  EXPECT_EQ(call(&BrickClient::list_grants, ListGrantsArguments{7})->status, Status::kOk);
}

TEST_F(Server, AnMdsThatWasSilentForALeaseIsToldByTheEndOfItsConnectionAndClaimsAnew) {
  brick.reset();
  make_brick({.lease = Milliseconds(200)});
  connect(path(), Milliseconds(60'000));  // it does not keep itself alive
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  ASSERT_EQ(call(&BrickClient::open_session, OpenSessionArguments{1, 7, {std::byte{1}}})->status,
            Status::kOk);
  wait_for([this] { return losses == 1; });
  wait_for([this] { return connects == 2; });
  EXPECT_EQ(call(&BrickClient::open_session, OpenSessionArguments{1, 7, {std::byte{1}}})->status,
            Status::kLapsed);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{1, 0, 1})->status, Status::kLapsed);
  EXPECT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kStaleEpoch);
  EXPECT_EQ(call(&BrickClient::list_grants, ListGrantsArguments{7})->status, Status::kNotFound);
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{2, "test"})->status, Status::kOk);
  EXPECT_EQ(call(&BrickClient::alloc, AllocArguments{2, 0, 1})->status, Status::kOk);
}

TEST_F(Server, AFlushThatTakesLongerThanACallMayEndsNoConnection) {
  brick.reset();
  brick.emplace(loop, make_pool(std::make_unique<HeldPersistence>(gate), random), BootId{}, random,
                BrickOptions{});
  ASSERT_TRUE(brick->serve_control_unix(path()));
  connect(path(), Milliseconds(20), Milliseconds(200));
  ASSERT_EQ(call(&BrickClient::claim, ClaimArguments{1, "test"})->status, Status::kOk);
  ASSERT_EQ(call(&BrickClient::alloc, AllocArguments{1, 0, 1})->status, Status::kOk);
  gate.shut();
  std::optional<Result<PersistResult>> answer;
  client->persist({1, {{{0, kBlockSize}}}},
                  [&](Result<PersistResult> result) { answer = std::move(result); });
  const SteadyTime until = clock.now() + Milliseconds(400);
  while (clock.now() < until) loop.run_once(Milliseconds(20));
  EXPECT_EQ(losses, 0);
  EXPECT_FALSE(answer);
  gate.open();
  wait_for([&] { return answer.has_value(); });
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->status, Status::kOk);
}

TEST_F(Server, SecondSocketOnTheSamePathIsRefused) {
  Brick other(loop, std::move(*Pool::in_memory(1, random)), BootId{}, random, {});
  EXPECT_FALSE(other.serve_control_unix(path()));
}

}  // namespace
}  // namespace pnfsrdma::brick
