// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/connection.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shared/rpc/dial.h"
#include "shared/rpc/limits.h"
#include "shared/rpc/record.h"
#include "shared/rpc/record_stream.h"
#include "shared/rpc/server.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::rpc {
namespace {

constexpr Milliseconds kLong{5000};

Bytes bytes_of(size_t size, unsigned value) {
  return Bytes(size, static_cast<std::byte>(value));
}

// Two connections in one loop, joined by a socketpair.
class ConnectionTest : public testing::Test {
 protected:
  ~ConnectionTest() override {
    if (left_) left_->close();
    if (right_) right_->close();
  }

  void join(Connection::CallHandler left_calls, Connection::CallHandler right_calls,
            ConnectionOptions right_options = {}) {
    auto [one, other] = pair();
    left_ = Connection::start(loop_, std::move(one), {}, std::move(left_calls));
    right_ = Connection::start(
        loop_, std::move(other), right_options, std::move(right_calls),
        [this](const ConnectionPointer&, const Error& reason) { closed_ = reason.number(); });
  }
  static std::pair<FileDescriptor, FileDescriptor> pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    return {FileDescriptor(fds[0]), FileDescriptor(fds[1])};
  }
  template <typename Done>
  bool run_until(Done done) {
    for (int i = 0; i < 3000; ++i) {
      if (done()) return true;
      loop_.run_once(Milliseconds(2));
    }
    return false;
  }
  // Waits for the answer of one call from left to right: the results, or the errno.
  struct Answer {
    int number = 0;
    Bytes results;
  };
  Answer call(Bytes arguments, Milliseconds timeout = kLong) {
    std::optional<Answer> answer;
    left_->call(1, 2, 3, {}, std::move(arguments), timeout, [&](Result<Reply> reply) {
      answer = reply ? Answer{0, Bytes(reply->results.begin(), reply->results.end())}
                     : Answer{reply.error().number(), {}};
    });
    EXPECT_FALSE(answer.has_value()) << "answered from inside call()";
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer.value_or(Answer{-1, {}});
  }

  SystemClock clock_;
  std::optional<MemoryBudget> budget_;
  EventLoop loop_{clock_};
  ConnectionPointer left_;
  ConnectionPointer right_;
  int closed_ = 0;
};

// Answers every call with its arguments.
void echo(const ConnectionPointer&, IncomingCall call, Responder responder) {
  responder.reply(Bytes(call.arguments.begin(), call.arguments.end()));
}

TEST_F(ConnectionTest, CallsGoBothWaysAtOnce) {
  int answered = 0;
  join(echo, [&](const ConnectionPointer& connection, IncomingCall call, Responder responder) {
    // The server calls back before it answers.
    connection->call(9, 1, 1, {}, bytes_of(8, 7), kLong,
                     [&answered, results = Bytes(call.arguments.begin(), call.arguments.end()),
                      waiting = std::make_shared<Responder>(std::move(responder))](Result<Reply> reply) {
                       ASSERT_TRUE(reply.has_value());
                       EXPECT_EQ(to_hex(reply->results), "0707070707070707");
                       ++answered;
                       waiting->reply(results);
                     });
  });
  const Answer answer = call(bytes_of(4, 1));
  EXPECT_EQ(answer.number, 0);
  EXPECT_EQ(to_hex(answer.results), "01010101");
  EXPECT_EQ(answered, 1);
}

TEST_F(ConnectionTest, TheHandlerSeesTheHeader) {
  CallHeader seen;
  join(nullptr, [&](const ConnectionPointer& connection, IncomingCall call, Responder responder) {
    seen = call.header;
    EXPECT_TRUE(connection->is_unix());
    EXPECT_EQ(connection->peer(), "unix");
    ASSERT_TRUE(connection->peer_credentials().has_value());
    EXPECT_EQ(connection->peer_credentials()->uid, getuid());
    responder.reply(Bytes());
  });
  call({});
  EXPECT_EQ(seen.program, 1u);
  EXPECT_EQ(seen.version, 2u);
  EXPECT_EQ(seen.procedure, 3u);
}

TEST_F(ConnectionTest, ManyLargeCallsAreAnsweredOutOfOrder) {
  std::vector<std::pair<Responder, Bytes>> held;
  join(nullptr, [&](const ConnectionPointer&, IncomingCall call, Responder responder) {
    held.emplace_back(std::move(responder), Bytes(call.arguments.begin(), call.arguments.end()));
  });
  constexpr size_t kCalls = 20;
  size_t right_answers = 0;
  for (size_t i = 0; i < kCalls; ++i) {
    left_->call(1, 1, 1, {}, bytes_of(200000 + 4 * i, static_cast<unsigned>(i)), kLong,
                [&right_answers, i](Result<Reply> reply) {
                  if (reply && reply->results.size() == 200000 + 4 * i &&
                      reply->results.back() == static_cast<std::byte>(i)) {
                    ++right_answers;
                  }
                });
  }
  ASSERT_TRUE(run_until([&] { return held.size() == kCalls; }));
  while (!held.empty()) {
    held.back().first.reply(std::move(held.back().second));
    held.pop_back();
  }
  EXPECT_TRUE(run_until([&] { return right_answers == kCalls; }));
  EXPECT_EQ(right_->calls_unanswered(), 0u);
  EXPECT_EQ(left_->calls_outstanding(), 0u);
}

TEST_F(ConnectionTest, RefusalsArriveAsErrors) {
  int which = 0;
  join(nullptr, [&](const ConnectionPointer&, IncomingCall, Responder responder) {
    switch (which++) {
      case 0:
        return responder.refuse(AcceptStatus::kProgramUnavailable);
      case 1:
        return responder.refuse_version({4, 4});
      case 2:
        return responder.refuse(AcceptStatus::kProcedureUnavailable);
      case 3:
        return responder.refuse(AcceptStatus::kGarbageArguments);
      case 4:
        return responder.refuse_auth(AuthStatus::kTooWeak);
      default:
        return;  // dropped unanswered: SYSTEM_ERR
    }
  });
  EXPECT_EQ(call({}).number, EPROTONOSUPPORT);
  EXPECT_EQ(call({}).number, EPROTONOSUPPORT);
  EXPECT_EQ(call({}).number, EOPNOTSUPP);
  EXPECT_EQ(call({}).number, EBADMSG);
  EXPECT_EQ(call({}).number, EACCES);
  EXPECT_EQ(call({}).number, EIO);
}

TEST_F(ConnectionTest, WithoutAHandlerNoProgramIsAvailable) {
  join(nullptr, nullptr);
  EXPECT_EQ(call({}).number, EPROTONOSUPPORT);
}

TEST_F(ConnectionTest, ACallTimesOutAndItsLateAnswerIsDropped) {
  std::optional<Responder> late;
  join(nullptr, [&](const ConnectionPointer&, IncomingCall call, Responder responder) {
    if (!late) {
      late.emplace(std::move(responder));
    } else {
      echo(nullptr, std::move(call), std::move(responder));
    }
  });
  EXPECT_EQ(call({}, Milliseconds(20)).number, ETIMEDOUT);
  ASSERT_TRUE(late.has_value());
  late->reply(bytes_of(4, 1));
  EXPECT_EQ(to_hex(call(bytes_of(4, 2)).results), "02020202");
}

TEST_F(ConnectionTest, TheClosedConnectionFailsWhatIsOutstanding) {
  std::vector<Responder> held;
  join(nullptr, [&](const ConnectionPointer&, IncomingCall, Responder responder) {
    held.push_back(std::move(responder));
  });
  int number = 0;
  left_->call(1, 1, 1, {}, {}, kLong, [&](Result<Reply> reply) { number = reply.error().number(); });
  ASSERT_TRUE(run_until([&] { return !held.empty(); }));
  left_->close();
  EXPECT_EQ(number, ECONNRESET);
  EXPECT_TRUE(run_until([&] { return closed_ != 0; }));
  EXPECT_EQ(closed_, ECONNRESET);
  held.front().reply(Bytes());  // to nobody
  EXPECT_EQ(call({}).number, ECONNRESET);
}

TEST_F(ConnectionTest, APeerThatHalfClosesIsClosed) {
  auto [one, other] = pair();
  right_ =
      Connection::start(loop_, std::move(other), {}, echo,
                        [this](const ConnectionPointer&, const Error& reason) { closed_ = reason.number(); });
  shutdown(one.get(), SHUT_WR);
  EXPECT_TRUE(run_until([&] { return closed_ != 0; }));
  EXPECT_FALSE(right_->is_open());
}

TEST_F(ConnectionTest, GarbageAndOversizedRecordsCloseTheConnection) {
  for (const char* hex : {"80000004deadbeef", "8000000800000001000000ff", "7fffffff", "80000000"}) {
    auto [one, other] = pair();
    closed_ = 0;
    right_ = Connection::start(
        loop_, std::move(other), {}, echo,
        [this](const ConnectionPointer&, const Error& reason) { closed_ = reason.number(); });
    Bytes raw;
    for (const char* at = hex; *at != 0; at += 2) {
      raw.push_back(static_cast<std::byte>(std::stoi(std::string(at, 2), nullptr, 16)));
    }
    ASSERT_EQ(write(one.get(), raw.data(), raw.size()), static_cast<ssize_t>(raw.size()));
    EXPECT_TRUE(run_until([&] { return closed_ != 0; })) << hex;
    EXPECT_TRUE(closed_ == EBADMSG || closed_ == EMSGSIZE) << hex;
  }
}

TEST_F(ConnectionTest, AnotherRpcVersionIsDeniedAndTheConnectionLives) {
  auto [one, other] = pair();
  right_ = Connection::start(loop_, std::move(other), {}, echo);
  Bytes raw = xdr::encode_to_bytes(CallHeader{5, 1, 1, 1, {}, {}});
  store_big_endian(raw.data() + 8, uint32_t{9});
  std::byte mark[kMarkSize];
  write_record_mark(mark, raw.size());
  raw.insert(raw.begin(), std::begin(mark), std::end(mark));
  ASSERT_EQ(write(one.get(), raw.data(), raw.size()), static_cast<ssize_t>(raw.size()));
  Bytes answer(64);
  ssize_t got = -1;
  EXPECT_TRUE(run_until([&] { return (got = read(one.get(), answer.data(), answer.size())) > 0; }));
  answer.resize(static_cast<size_t>(got));
  EXPECT_EQ(to_hex(answer), "80000018000000050000000100000001000000000000000200000002");
  EXPECT_TRUE(right_->is_open());
}

TEST_F(ConnectionTest, ASlowReaderStopsTheReadingOfItsCalls) {
  ConnectionOptions options;
  options.unsent_bytes_max = 1 << 20;
  size_t served = 0;
  join(nullptr, nullptr);
  left_->close();
  right_->close();
  auto [one, other] = pair();
  right_ = Connection::start(loop_, std::move(other), options,
                             [&](const ConnectionPointer&, IncomingCall, Responder responder) {
                               ++served;
                               responder.reply(bytes_of(200000, 1));
                             });
  // 200 calls of 200 kB answers each, none of which is read.
  Bytes raw;
  for (uint32_t xid = 1; xid <= 200; ++xid) {
    const Bytes call = xdr::encode_to_bytes(CallHeader{xid, 1, 1, 1, {}, {}});
    std::byte mark[kMarkSize];
    write_record_mark(mark, call.size());
    raw.insert(raw.end(), std::begin(mark), std::end(mark));
    raw.insert(raw.end(), call.begin(), call.end());
  }
  ASSERT_EQ(write(one.get(), raw.data(), raw.size()), static_cast<ssize_t>(raw.size()));
  for (int i = 0; i < 20; ++i) loop_.run_once(Milliseconds(1));
  EXPECT_TRUE(right_->paused());
  EXPECT_LT(served, 20u);
  EXPECT_LT(right_->unsent_bytes(), 2u << 20);
  // It reads at last: everything comes.
  size_t received = 0;
  Bytes sink(1 << 20);
  EXPECT_TRUE(run_until([&] {
    const ssize_t got = read(one.get(), sink.data(), sink.size());
    if (got > 0) received += static_cast<size_t>(got);
    return received >= 200u * 200000u;
  }));
  EXPECT_EQ(served, 200u);
}

// `calls` calls without arguments, each in a record of its own, as one run of bytes.
Bytes many_calls(uint32_t calls) {
  Bytes raw;
  for (uint32_t xid = 1; xid <= calls; ++xid) {
    const Bytes call = xdr::encode_to_bytes(CallHeader{xid, 1, 1, 1, {}, {}});
    std::byte mark[kMarkSize];
    write_record_mark(mark, call.size());
    raw.insert(raw.end(), std::begin(mark), std::end(mark));
    raw.insert(raw.end(), call.begin(), call.end());
  }
  return raw;
}

// A hundred peers, each in the middle of a long record, send more of it at once.
TEST_F(ConnectionTest, LongRecordsOfManyTakeTheirTurnsWithOthers) {
  constexpr size_t kPeers = 100;
  constexpr size_t kMore = 100'000;
  std::vector<FileDescriptor> peers;
  std::vector<FileDescriptor> ends;  // the victims' sockets once more: what they have not read can be asked
  std::vector<ConnectionPointer> victims;
  for (size_t i = 0; i < kPeers; ++i) {
    auto [peer, end] = pair();
    ends.emplace_back(dup(end.get()));
    victims.push_back(Connection::start(loop_, std::move(end), {}, nullptr));
    peers.push_back(std::move(peer));
  }
  const auto unread = [&] {
    size_t sum = 0;
    for (const FileDescriptor& end : ends) {
      int bytes = 0;
      EXPECT_EQ(ioctl(end.get(), FIONREAD, &bytes), 0);
      sum += static_cast<size_t>(bytes);
    }
    return sum;
  };
  const auto send_all = [&](const Bytes& bytes) {
    for (const FileDescriptor& peer : peers)
      ASSERT_EQ(write(peer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  };
  std::byte mark[kMarkSize];
  write_record_mark(mark, size_t{1} << 20);
  send_all(Bytes(std::begin(mark), std::end(mark)));
  ASSERT_TRUE(run_until([&] { return unread() == 0; }));

  size_t left = 0;
  join(nullptr, [&](const ConnectionPointer&, IncomingCall, Responder responder) {
    left = unread();
    responder.reply(Bytes());
  });
  send_all(Bytes(kMore));
  EXPECT_EQ(call({}).number, 0);
  EXPECT_GE(left, kPeers * kMore - 4 * kLongRecordBytesPerTurn)
      << "of all long records, a few turns' share was read first";
  EXPECT_TRUE(run_until([&] { return unread() == 0; })) << "and the rest behind it";
  for (const ConnectionPointer& victim : victims) victim->close();
}

TEST_F(ConnectionTest, AFloodTakesItsTurnWithOthers) {
  size_t served = 0;
  std::vector<size_t> before;  // calls of the flood served before each of the other's
  auto [flood, flooded] = pair();
  const auto count = [&](const ConnectionPointer&, IncomingCall, Responder responder) {
    ++served;
    responder.reply(Bytes());
  };
  const auto victim = Connection::start(loop_, std::move(flooded), {}, count);
  join(nullptr, [&](const ConnectionPointer&, IncomingCall, Responder responder) {
    before.push_back(served);
    responder.reply(Bytes());
  });
  const Bytes raw = many_calls(1000);
  ASSERT_EQ(write(flood.get(), raw.data(), raw.size()), static_cast<ssize_t>(raw.size()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call({}).number, 0);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_LE(before.back(), 12 * kMessagesPerTurn) << "a few turns for each of three calls";
  EXPECT_TRUE(run_until([&] { return served == 1000; })) << "without further events of its socket";
  victim->close();
}

TEST_F(ConnectionTest, WhatItHoldsIsCountedUntilItIsGivenBack) {
  MemoryBudget& budget = budget_.emplace(clock_, MemoryLimits());
  std::optional<Responder> waiting;
  const ConnectionOptions options{.memory = budget.open("192.0.2.1:1")};
  join(
      nullptr,
      [&](const ConnectionPointer&, IncomingCall, Responder responder) { waiting = std::move(responder); },
      options);
  const size_t idle = budget.held();
  bool answered = false;
  left_->call(1, 2, 3, {}, bytes_of(100000, 1), kLong, [&](const Result<Reply>&) { answered = true; });
  ASSERT_TRUE(run_until([&] { return waiting.has_value(); }));
  EXPECT_GE(budget.held(), idle + 100000);
  right_->hold_more(5000);
  EXPECT_GE(budget.held(), idle + 105000);
  right_->hold_more(-5000);
  waiting->reply(bytes_of(100, 1));
  ASSERT_TRUE(run_until([&] { return answered; }));
  EXPECT_EQ(budget.held(), idle);
}

TEST_F(ConnectionTest, PastItsBudgetNothingIsReadAndALongWaitEndsIt) {
  MemoryBudget& budget =
      budget_.emplace(clock_, MemoryLimits{.bytes = 2 << 20, .bytes_per_address = 200'000});
  budget.start(loop_);
  ConnectionOptions options{.memory = budget.open("192.0.2.1:1")};
  join(nullptr, echo, options);
  left_->close();
  right_->close();
  auto [one, other] = pair();
  closed_ = 0;
  options.memory = budget.open("192.0.2.1:2");
  right_ =
      Connection::start(loop_, std::move(other), options, echo,
                        [this](const ConnectionPointer&, const Error& reason) { closed_ = reason.number(); });
  std::byte mark[kMarkSize];
  write_record_mark(mark, 1'000'000);
  ASSERT_EQ(write(one.get(), mark, sizeof mark), 4);
  const Bytes part(600'000);
  size_t sent = 0;
  ASSERT_TRUE(run_until([&] {
    const ssize_t put = send(one.get(), part.data() + sent, part.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) sent += static_cast<size_t>(put);
    return right_->paused() || sent == part.size();
  }));
  EXPECT_TRUE(right_->paused());
  EXPECT_LE(budget.held(), 900'000u) << "the step in which it was passed at most";
  EXPECT_TRUE(run_until([&] { return closed_ != 0; }));
  EXPECT_EQ(closed_, ENOBUFS);
  EXPECT_EQ(budget.held(), 0u);
}

// Answers of 28 bytes: 8 MiB of them, counted by the bytes on the wire, were 50 MiB of memory.
TEST_F(ConnectionTest, SmallAnswersThatNobodyReadsCountWithWhatHoldingThemCosts) {
  auto [one, other] = pair();
  const auto stream = std::make_shared<RecordStream>(loop_, std::move(other), kRecordBytesMax);
  stream->start(
      {.on_message = [](Bytes) {}, .on_sent = [] {}, .on_part = nullptr, .on_failed = [](Error) {}});
  for (int i = 0; i < 1000; ++i) {
    Bytes head(28);
    head.reserve(64);
    stream->send(std::move(head), std::make_shared<const Bytes>());
  }
  EXPECT_GE(stream->unsent_bytes(), 150'000u);
  loop_.run_once(Milliseconds(1));
  EXPECT_EQ(stream->unsent_bytes(), 0u) << "when they are sent";
  stream->close();
}

// Freed in one turn, what sixteen peers had not read took 120 ms.
TEST_F(ConnectionTest, WhatAPeerHasNotReadIsFreedInPartsWhenItGoes) {
  MemoryBudget budget(loop_.clock(), {.bytes = 64 << 20});
  auto [one, other] = pair();
  const auto stream = std::make_shared<RecordStream>(loop_, std::move(other), kRecordBytesMax);
  stream->count_in(budget.open("192.0.2.1:1"));
  stream->start(
      {.on_message = [](Bytes) {}, .on_sent = [] {}, .on_part = nullptr, .on_failed = [](Error) {}});
  std::vector<std::weak_ptr<const Bytes>> bodies;
  for (size_t i = 0; i < 4 * kMessagesFreedAtOnce; ++i) {
    auto body = std::make_shared<const Bytes>(28);
    bodies.push_back(body);
    stream->send(Bytes(28), std::move(body));
  }
  const size_t held = stream->unsent_bytes();
  stream->close();
  for (size_t parts = 0; parts <= 4; ++parts) {
    EXPECT_EQ(std::ranges::count_if(bodies, [](const auto& body) { return body.expired(); }),
              static_cast<ptrdiff_t>(parts * kMessagesFreedAtOnce));
    EXPECT_EQ(budget.held(), held / 4 * (4 - parts)) << "it counts until it is freed";
    loop_.run_once(Milliseconds(0));
  }
}

TEST_F(ConnectionTest, TooManyUnansweredCallsWait) {
  ConnectionOptions options;
  options.calls_unanswered_max = 4;
  std::vector<Responder> held;
  join(
      nullptr,
      [&](const ConnectionPointer&, IncomingCall, Responder responder) {
        held.push_back(std::move(responder));
      },
      options);
  int answered = 0;
  for (int i = 0; i < 10; ++i) {
    left_->call(1, 1, 1, {}, {}, kLong, [&](Result<Reply> reply) { answered += reply.has_value(); });
  }
  for (int i = 0; i < 20; ++i) loop_.run_once(Milliseconds(1));
  EXPECT_EQ(held.size(), 4u);
  EXPECT_TRUE(run_until([&] {
    for (Responder& responder : std::exchange(held, {})) responder.reply(Bytes());
    return answered == 10;
  }));
}

TEST_F(ConnectionTest, CloseWhenSentDeliversTheAnswerFirst) {
  join(nullptr, [&](const ConnectionPointer& connection, IncomingCall, Responder responder) {
    responder.reply(bytes_of(500000, 3));
    connection->close_when_sent();
  });
  EXPECT_EQ(call({}).results.size(), 500000u);
  EXPECT_TRUE(run_until([&] { return !left_->is_open() && !right_->is_open(); }));
}

// Over real sockets: TCP of both families, and Unix.
class ListenerTest : public testing::TestWithParam<const char*> {
 protected:
  SystemClock clock_;
  std::optional<MemoryBudget> budget_;
  EventLoop loop_{clock_};
};

TEST_P(ListenerTest, ServesWhoDials) {
  const std::string path = "/tmp/pnfsrdma-rpc-test-" + std::to_string(getpid());
  const std::string where = std::string(GetParam()) == "unix" ? path : GetParam();
  int accepted = 0;
  Service service{.on_call = echo};
  service.on_accept = [&](const ConnectionPointer&) { ++accepted; };
  auto listener = Listener::listen(loop_, *SocketAddress::parse(where), service);
  if (!listener && listener.error().number() == EADDRNOTAVAIL)
    GTEST_SKIP() << "no " << where << " on this machine";
  ASSERT_TRUE(listener.has_value()) << listener.error().to_string();

  ConnectionPointer client;
  std::string results;
  dial(loop_, (*listener)->address(), kLong, [&](Result<FileDescriptor> socket) {
    ASSERT_TRUE(socket.has_value()) << socket.error().to_string();
    client = Connection::start(loop_, std::move(*socket), {}, nullptr);
    client->call(1, 1, 1, {}, bytes_of(4, 9), kLong,
                 [&](Result<Reply> reply) { results = reply ? to_hex(reply->results) : "error"; });
  });
  for (int i = 0; i < 1000 && results.empty(); ++i) loop_.run_once(Milliseconds(5));
  EXPECT_EQ(results, "09090909");
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ((*listener)->connections(), 1u);
  client->close();
  for (int i = 0; i < 1000 && (*listener)->connections() > 0; ++i) loop_.run_once(Milliseconds(5));
  EXPECT_EQ((*listener)->connections(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Families, ListenerTest, testing::Values("127.0.0.1:0", "[::1]:0", "unix"));

TEST(Listener, ReplacesTheSocketFileOfADeadProcessAndSparesALivingOne) {
  SystemClock clock;
  EventLoop loop(clock);
  const std::string path = "/tmp/pnfsrdma-rpc-stale-" + std::to_string(getpid());
  const SocketAddress address = *SocketAddress::unix_path(path);
  {
    FileDescriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(dead.get(), address.data(), address.size()), 0);
  }
  auto first = Listener::listen(loop, address, Service{});
  ASSERT_TRUE(first.has_value()) << first.error().to_string();
  auto second = Listener::listen(loop, address, Service{});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().number(), EADDRINUSE);
  first->reset();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace pnfsrdma::rpc
