// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/ring_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <latch>

#include "shared/ring/channel.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::fuse_client {
namespace {

using ring::Opcode;

// The other side, as a well-behaved program is.
class Peer {
 public:
  explicit Peer(RingServer& server, uint64_t depth = 64) {
    const auto found = server.find();
    socket_ = *ring::connect_to(found->socket.data());
    const auto [answer, descriptors] =
        ask({.kind = uint32_t(ring::RequestKind::kHello), .value = depth, .token = found->token});
    EXPECT_EQ(answer.error, 0);
    secret = answer.secret;
    doorbell_ = FileDescriptor(::dup(descriptors.at(1).get()));
    event_ = FileDescriptor(::dup(descriptors.at(2).get()));
    const size_t size = ring::rings_size(answer.number);
    rings_memory_ = {static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                                    descriptors.at(0).get(), 0)),
                     size};
    rings_.emplace(rings_memory_, answer.number);
  }
  ~Peer() {
    ::munmap(rings_memory_.data(), rings_memory_.size());
    if (!memory.empty()) ::munmap(memory.data(), memory.size());
  }

  // The number of a new memory.
  uint32_t share(size_t size) {
    const FileDescriptor file(::memfd_create("ring-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    const int descriptor = file.get();
    const auto answer = ask({.kind = uint32_t(ring::RequestKind::kAddMemory)}, {&descriptor, 1}).first;
    EXPECT_EQ(answer.error, 0) << answer.text.data();
    memory = {
        static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)),
        size};
    return answer.number;
  }
  ring::Answer add_channel(int descriptor) {
    return ask({.kind = uint32_t(ring::RequestKind::kAddChannel)}, {&descriptor, 1}).first;
  }
  void submit(const ring::Submission& submission) { submit(std::span(&submission, 1)); }
  // With one doorbell.
  void submit(std::span<const ring::Submission> submissions) {
    for (const auto& submission : submissions) ASSERT_TRUE(rings_->submit(submission));
    const uint64_t one = 1;
    if (!rings_->publish()) return;
    ASSERT_EQ(::write(doorbell_.get(), &one, sizeof one), ssize_t{sizeof one});
  }
  int64_t reap() {
    for (;;) {
      if (const auto completion = rings_->reap()) return completion->result;
      if (!rings_->may_sleep()) continue;
      pollfd readable{event_.get(), POLLIN, 0};
      if (::poll(&readable, 1, 20'000) <= 0) {
        ADD_FAILURE() << "no completion";
        return INT64_MAX;
      }
      uint64_t rung = 0;
      (void)!::read(event_.get(), &rung, sizeof rung);
      (void)rings_->awake();
    }
  }
  int64_t run(const ring::Submission& submission) {
    submit(submission);
    return reap();
  }

  ring::Secret secret{};
  MutableByteSpan memory;

 private:
  std::pair<ring::Answer, std::vector<FileDescriptor>> ask(const ring::Request& request,
                                                           std::span<const int> descriptors = {}) {
    EXPECT_TRUE(ring::send_message(socket_.get(), std::as_bytes(std::span(&request, 1)), descriptors));
    ring::Answer answer;
    auto message = ring::receive_message(socket_.get(), std::as_writable_bytes(std::span(&answer, 1)));
    EXPECT_TRUE(message);
    return {answer, std::move(message->descriptors)};
  }

  FileDescriptor socket_, doorbell_, event_;
  MutableByteSpan rings_memory_;
  std::optional<ring::ProgramRings> rings_;
};

// Has connected, and says nothing.
class Idler {
 public:
  explicit Idler(RingServer& server) : socket_(*ring::connect_to(server.find()->socket.data())) {}
  bool sees_the_end_within(Milliseconds time) const {
    pollfd closed{socket_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&closed, 1, static_cast<int>(time.count())) > 0 && ::recv(socket_.get(), &byte, 1, 0) == 0;
  }
  ring::Answer ask(const ring::Request& request, std::span<const int> descriptors = {}) {
    EXPECT_TRUE(ring::send_message(socket_.get(), std::as_bytes(std::span(&request, 1)), descriptors));
    ring::Answer answer;
    EXPECT_TRUE(ring::receive_message(socket_.get(), std::as_writable_bytes(std::span(&answer, 1))));
    return answer;
  }

 private:
  FileDescriptor socket_;
};

class RingServerTest : public initiator::DataPathTest {
 protected:
  using DataPathTest::DataPathTest;
  static constexpr size_t kBlock = 4096;
  // A connection takes eight messages that are not answered, and each covers what the mount has found in a ring at
  // once: 64 durable writes.
  static constexpr uint32_t kMoreThanFits = 1024;

  void SetUp() override {
    options_now.flush_after = Milliseconds(0);
    make_file(1 << 20);
    write(0, 1 << 20, 0);
    ASSERT_TRUE(file->fsync(cursor));
    server.emplace(RingServer::Parts{*path, invalidator, random, size_t{4} << 20, "memory", "volatile"});
    const auto started = server->start();
    ASSERT_TRUE(started) << started.error().to_string();
  }
  void TearDown() override {
    server.reset();
    initiator::DataPathTest::TearDown();
  }
  AttachedFile attached(const OpenFile& open, bool readable = true, bool writable = true) {
    return {.open_file = &open, .inode = inode, .data = file, .readable = readable, .writable = writable};
  }
  static ring::Submission submission(Opcode opcode, uint32_t file_number, uint32_t memory, uint64_t offset) {
    return {.opcode = static_cast<uint32_t>(opcode),
            .file = file_number,
            .memory = memory,
            .length = kBlock,
            .offset = offset};
  }

  static ring::Submission durable_write(uint32_t file_number, uint32_t memory, uint64_t offset) {
    ring::Submission durable = submission(Opcode::kWrite, file_number, memory, offset);
    durable.flags = ring::kDurable;
    return durable;
  }
  // The brick answers no message while it is held.
  std::unique_lock<std::mutex> silence() {
    auto held = brick.hang();
    sleep_for(Milliseconds(60));
    return held;
  }

  Invalidator invalidator;  // of no mount: what is to be dropped is gone at once
  std::optional<RingServer> server;
  std::shared_ptr<Inode> inode = std::make_shared<Inode>(handle, 5);
};

TEST_F(RingServerTest, AChannelIsASocketOfItsProgramAndIsTakenOnce) {
  Peer peer(*server), other(*server);
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
  const FileDescriptor ours(pair[0]), theirs(pair[1]);
  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  EXPECT_EQ(peer.add_channel(event.get()).error, EINVAL);
  const FileDescriptor wrong(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(peer.add_channel(wrong.get()).error, EINVAL);
  const ring::Answer added = peer.add_channel(theirs.get());
  ASSERT_EQ(added.error, 0) << added.text.data();
  EXPECT_EQ(server->take_channel(other.secret, added.number).error().number(), EPERM);
  EXPECT_EQ(server->take_channel(peer.secret, added.number + 1).error().number(), EPERM);
  EXPECT_TRUE(server->take_channel(peer.secret, added.number));
  EXPECT_EQ(server->take_channel(peer.secret, added.number).error().number(), EPERM);
  for (size_t i = 0; i < Program::kChannelsMax; ++i) ASSERT_EQ(peer.add_channel(theirs.get()).error, 0);
  EXPECT_EQ(peer.add_channel(theirs.get()).error, ENOSPC);
}

TEST_F(RingServerTest, ReadsAndWritesGoToTheBrick) {
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  ASSERT_TRUE(number);
  const int calls = channel.calls;
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *number, memory, kBlock)), int64_t{kBlock});
  EXPECT_TRUE(holds(peer.memory.data(), kBlock, kBlock, 0));
  for (size_t i = 0; i < kBlock; ++i) peer.memory[i] = pattern(i, 9);
  EXPECT_EQ(peer.run(submission(Opcode::kWrite, *number, memory, 0)), int64_t{kBlock});
  // Under the server's mutex: TSan does not see that both have mapped the rings.
  EXPECT_EQ(server->counts().operations, 2u);
  EXPECT_TRUE(holds(brick.memory(), 0, kBlock, 9));
  EXPECT_EQ(channel.calls, calls);
  // What the ring has written the file's fsync flushes.
  events.take();
  EXPECT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take().size(), 1u);
  EXPECT_EQ(server->counts().handed_back, 0u);
}

// As beyond the loopback.
class RingServerOverTcpWithCrc : public RingServerTest {
 protected:
  RingServerOverTcpWithCrc() : RingServerTest(true, {.crc = rdma::iwarp::CrcPolicy::kRequire}) {}
};

TEST_F(RingServerOverTcpWithCrc, AStoreIntoABufferUnderWayIsThatProgramsAffairOnly) {
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 20);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  ring::Submission whole = submission(Opcode::kWrite, *number, memory, 0);
  whole.length = 1 << 20;
  std::atomic<bool> stop = false;
  Thread scribbler([&] {
    for (size_t i = 0; !stop; ++i) std::ranges::fill(peer.memory, static_cast<std::byte>(i));
  });
  for (int i = 0; i < 50; ++i) ASSERT_EQ(peer.run(whole), int64_t{1 << 20});
  stop = true;
  scribbler.join();
  EXPECT_EQ(path->statistics().reconnects.value(), 0u);
  EXPECT_EQ(brick.connections, 1);
  EXPECT_EQ(server->counts().handed_back, 0u);
}

TEST_F(RingServerTest, WhoConnectsAndSaysNothingKeepsNobodyOut) {
  rlimit descriptors{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &descriptors), 0);
  descriptors.rlim_cur = descriptors.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &descriptors), 0);
  std::vector<std::unique_ptr<Idler>> idlers;
  for (int i = 0; i < 600; ++i) idlers.push_back(std::make_unique<Idler>(*server));
  std::vector<std::unique_ptr<Peer>> peers;
  for (size_t i = 0; i < RingServer::kProgramsMax; ++i) peers.push_back(std::make_unique<Peer>(*server));
  EXPECT_EQ(server->counts().programs, RingServer::kProgramsMax);
  EXPECT_TRUE(idlers.front()->sees_the_end_within(Milliseconds(1000)));
  // One that comes too late is told.
  Idler late(*server);
  EXPECT_EQ(
      late.ask({.kind = uint32_t(ring::RequestKind::kHello), .value = 64, .token = server->find()->token})
          .error,
      EUSERS);
}

// As the processes of a job begin.
TEST_F(RingServerTest, ManyThatComeAtOnceAreAllHeard) {
  const ring::Request hello{
      .kind = uint32_t(ring::RequestKind::kHello), .value = 64, .token = server->find()->token};
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 200; ++i) {
    sockets.push_back(*ring::connect_to(server->find()->socket.data()));
    ASSERT_TRUE(ring::send_message(sockets.back().get(), std::as_bytes(std::span(&hello, 1))));
  }
  for (const FileDescriptor& socket : sockets) {
    ring::Answer answer;
    const auto said = ring::receive_message(socket.get(), std::as_writable_bytes(std::span(&answer, 1)));
    ASSERT_TRUE(said);
    EXPECT_EQ(said->size, sizeof answer);
    EXPECT_EQ(answer.error, 0);
  }
}

TEST_F(RingServerTest, WhoSaysNothingIsSentAwayAfterAWhile) {
  Idler idler(*server);
  EXPECT_TRUE(idler.sees_the_end_within(2 * Arrivals::kPatience));
}

TEST_F(RingServerTest, WhoHasNotSaidTheTokenSharesNoMemory) {
  Idler stranger(*server);
  const FileDescriptor file(::memfd_create("ring-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), kBlock), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const int descriptor = file.get();
  EXPECT_EQ(stranger.ask({.kind = uint32_t(ring::RequestKind::kAddMemory)}, {&descriptor, 1}).error, EACCES);
  EXPECT_EQ(server->counts().memory_bytes, 0u);
}

// What it submits is done at once, so the thread never rests.
TEST_F(RingServerTest, AProgramThatNeverRestsKeepsNobodyOut) {
  Peer busy(*server, 4096);
  std::atomic<bool> stop = false;
  Thread submitting([&] {
    uint32_t under_way = 0;
    while (!stop) {
      for (; under_way < 2048; ++under_way) busy.submit(submission(Opcode::kRead, 99, 99, 0));
      for (; under_way > 1024; --under_way) EXPECT_EQ(busy.reap(), -EBADF);
    }
  });
  for (int i = 0; i < 20; ++i) Peer other(*server);
  stop = true;
  submitting.join();
}

TEST_F(RingServerTest, ADescriptorsRightsAreTheRings) {
  Peer peer(*server), other(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto reader = server->attach(peer.secret, attached(open, true, false));
  const auto writer = server->attach(peer.secret, attached(open, false, true));
  EXPECT_EQ(peer.run(submission(Opcode::kWrite, *reader, memory, 0)), -EBADF);
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *writer, memory, 0)), -EBADF);
  EXPECT_EQ(other.run(submission(Opcode::kRead, *reader, memory, 0)), -EBADF);
  EXPECT_EQ(server->attach({}, attached(open)).error().number(), EPERM);
  EXPECT_EQ(server->memory(other.secret, memory, 0, 1).error().number(), EFAULT);
  EXPECT_EQ(server->memory(peer.secret, memory, 0, (1 << 16) + 1).error().number(), EFAULT);
  EXPECT_TRUE(holds(brick.memory(), 0, kBlock, 0));
  server->detach(open);
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *reader, memory, 0)), -EBADF);
}

TEST_F(RingServerTest, WhatWouldWaitIsHandedBack) {
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *number, memory, 1 << 20)), ring::kUseDescriptor);
  EXPECT_EQ(peer.run(submission(Opcode::kWrite, *number, memory, (1 << 20) - 1)), ring::kUseDescriptor);
  path->layouts_lost();
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *number, memory, 0)), ring::kUseDescriptor);
  EXPECT_EQ(channel.size, 1u << 20);
}

TEST_F(RingServerTest, DurableWritesThatComeTogetherHaveOneFlush) {
  Peer peer(*server, 64);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  const uint32_t memory = peer.share(1 << 16);
  ASSERT_EQ(peer.run(durable_write(*number, memory, 0)), int64_t{kBlock});
  events.take();
  std::vector<ring::Submission> chain;
  for (uint32_t i = 0; i < 16; ++i) chain.push_back(durable_write(*number, memory, i * 2 * kBlock));
  peer.submit(chain);
  for (size_t i = 0; i < chain.size(); ++i) ASSERT_EQ(peer.reap(), int64_t{kBlock});
  const auto said = events.take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(std::ranges::count(said[0], '+'), 16);
  EXPECT_EQ(server->counts().handed_back, 0u);
  // Its answer is lost: whoever submitted does it by the descriptor.
  brick.unanswered_persists = 1;
  peer.submit(chain);
  for (size_t i = 0; i < chain.size(); ++i) EXPECT_EQ(peer.reap(), ring::kUseDescriptor);
}

TEST_F(RingServerTest, WhatDoesNotFitInTheConnectionWaitsForRoomThere) {
  Peer peer(*server, 1024);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  auto held = silence();
  for (uint32_t i = 0; i < kMoreThanFits; ++i) peer.submit(durable_write(*number, memory, i % 200 * kBlock));
  sleep_for(Milliseconds(50));
  EXPECT_LT(server->counts().operations, kMoreThanFits);
  held.unlock();
  for (uint32_t i = 0; i < kMoreThanFits; ++i) ASSERT_EQ(peer.reap(), int64_t{kBlock});
  EXPECT_EQ(server->counts().handed_back, 0u);
}

TEST_F(RingServerTest, WhatWaitsForRoomHoldsUpNoOtherProgram) {
  Peer greedy(*server, 1024), other(*server);
  const OpenFile open;
  const auto number = server->attach(greedy.secret, attached(open));
  const uint32_t memory = greedy.share(1 << 16);
  auto held = silence();
  for (uint32_t i = 0; i < kMoreThanFits; ++i)
    greedy.submit(durable_write(*number, memory, i % 200 * kBlock));
  sleep_for(Milliseconds(50));
  EXPECT_EQ(other.run(submission(Opcode::kRead, 99, 99, 0)), -EBADF);
  held.unlock();
  for (uint32_t i = 0; i < kMoreThanFits; ++i) ASSERT_EQ(greedy.reap(), int64_t{kBlock});
}

TEST_F(RingServerTest, AProgramThatAlwaysHasMoreThanFitsLeavesOthersTheirTurn) {
  Peer greedy(*server, 4096), other(*server);
  const OpenFile open, also_open;
  const auto number = server->attach(greedy.secret, attached(open));
  const auto others = server->attach(other.secret, attached(also_open));
  const uint32_t memory = greedy.share(1 << 16), others_memory = other.share(1 << 16);
  std::atomic<bool> stop = false;
  Thread submitting([&] {
    uint32_t under_way = 0;
    for (uint32_t i = 0; !stop; ++i) {
      for (; under_way < 2048; ++under_way) greedy.submit(durable_write(*number, memory, i % 128 * kBlock));
      for (; under_way > 1500; --under_way) EXPECT_EQ(greedy.reap(), int64_t{kBlock});
    }
    for (; under_way > 0; --under_way) EXPECT_EQ(greedy.reap(), int64_t{kBlock});
  });
  while (server->counts().operations < 4000) yield_thread();
  const uint64_t before = server->counts().operations;
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(other.run(durable_write(*others, others_memory, (1 << 20) - kBlock)), int64_t{kBlock});
  // Each waits for about what the connection takes at once, not for what the other program has in its ring.
  EXPECT_LT(server->counts().operations - before, 20u * 1000);
  stop = true;
  submitting.join();
}

TEST_F(RingServerTest, AProgramMayEndWhileItsOperationsWaitForRoom) {
  const OpenFile open;
  auto held = silence();
  {
    Peer peer(*server, 1024);
    const uint32_t memory = peer.share(1 << 16);
    const auto number = server->attach(peer.secret, attached(open));
    for (uint32_t i = 0; i < kMoreThanFits; ++i)
      peer.submit(durable_write(*number, memory, i % 200 * kBlock));
    sleep_for(Milliseconds(50));
  }
  while (server->counts().programs > 0) yield_thread();
  held.unlock();
  server->detach(open);
  EXPECT_EQ(server->counts().memory_bytes, 0u);
}

TEST_F(RingServerTest, WhatWaitsForRoomIsHandedBackWhenTheConnectionDies) {
  Peer peer(*server, 1024);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  auto held = silence();
  for (uint32_t i = 0; i < kMoreThanFits; ++i) peer.submit(durable_write(*number, memory, i % 200 * kBlock));
  sleep_for(Milliseconds(50));
  brick.cut_connection();
  held.unlock();
  uint64_t done = 0;
  for (uint32_t i = 0; i < kMoreThanFits; ++i) {
    const int64_t result = peer.reap();
    ASSERT_TRUE(result == int64_t{kBlock} || result == ring::kUseDescriptor) << result;
    done += result == int64_t{kBlock} ? 1 : 0;
  }
  EXPECT_LT(done, kMoreThanFits);
}

TEST_F(RingServerTest, ADetachWaitsForWhatIsUnderWay) {
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  auto held = silence();
  peer.submit(durable_write(*number, memory, 0));
  while (server->counts().operations == 0) yield_thread();
  sleep_for(Milliseconds(20));
  std::atomic<bool> detached = false;
  Thread detaching([&] {
    server->detach(open);
    detached = true;
  });
  sleep_for(Milliseconds(50));
  EXPECT_FALSE(detached);
  held.unlock();
  detaching.join();
  EXPECT_EQ(peer.reap(), int64_t{kBlock});
}

// A page whose read waits for a silent brick goes when that answers.
TEST_F(RingServerTest, ADetachDoesNotWaitForTheKernelsPages) {
  std::latch silent(1);
  invalidator.start([&](uint64_t, bool) { silent.wait(); });
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  inode->pages_filled();
  peer.submit(durable_write(*number, memory, 0));
  while (server->counts().operations == 0) yield_thread();
  server->detach(open);
  EXPECT_EQ(peer.run(submission(Opcode::kRead, *number, memory, 0)), -EBADF) << "the write is not told yet";
  silent.count_down();
  EXPECT_EQ(peer.reap(), int64_t{kBlock});
  invalidator.stop();
}

TEST_F(RingServerTest, AFileOfAProgramThatHasEndedIsWaitedForToo) {
  const OpenFile open;
  auto held = silence();
  {
    Peer peer(*server);
    const uint32_t memory = peer.share(1 << 16);
    peer.submit(durable_write(*server->attach(peer.secret, attached(open)), memory, 0));
    while (server->counts().operations == 0) yield_thread();
    sleep_for(Milliseconds(20));
  }
  while (server->counts().programs > 0) yield_thread();
  std::atomic<bool> detached = false;
  Thread detaching([&] {
    server->detach(open);
    detached = true;
  });
  sleep_for(Milliseconds(50));
  EXPECT_FALSE(detached);
  held.unlock();
  detaching.join();
  EXPECT_EQ(server->counts().memory_bytes, 0u);
}

TEST_F(RingServerTest, TheEndWaitsForWhatIsUnderWayAndTakesNothingMore) {
  Peer peer(*server);
  const uint32_t memory = peer.share(1 << 16);
  const OpenFile open;
  const auto number = server->attach(peer.secret, attached(open));
  for (int i = 0; i < 32; ++i) peer.submit(submission(Opcode::kWrite, *number, memory, i * kBlock));
  server->stop();
  peer.submit(submission(Opcode::kWrite, *number, memory, 0));
  EXPECT_LE(server->counts().operations, 32u);
}

TEST_F(RingServerTest, ProgramsComeAndGoBesideEachOther) {
  std::vector<Thread> programs;
  for (int each = 0; each < 4; ++each) {
    programs.emplace_back([&, each] {
      for (int turn = 0; turn < 20; ++turn) {
        Peer peer(*server);
        const uint32_t memory = peer.share(1 << 16);
        const OpenFile open;
        const auto number = server->attach(peer.secret, attached(open));
        ASSERT_TRUE(number);
        for (int i = 0; i < 16; ++i)
          peer.submit(submission(i % 2 == 0 ? Opcode::kRead : Opcode::kWrite, *number, memory,
                                 (each * 16 + i) * kBlock));
        if (turn % 2 == 0) {
          for (int i = 0; i < 16; ++i) {
            const int64_t result = peer.reap();
            EXPECT_TRUE(result == int64_t{kBlock} || result == ring::kUseDescriptor) << result;
          }
        }
        server->detach(open);
      }
    });
  }
  for (Thread& program : programs) program.join();
  const auto end = steady_now() + std::chrono::seconds(20);
  while (server->counts().programs > 0 && steady_now() < end) sleep_for(Milliseconds(5));
  EXPECT_EQ(server->counts().programs, 0u);
  EXPECT_EQ(server->counts().memory_bytes, 0u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
