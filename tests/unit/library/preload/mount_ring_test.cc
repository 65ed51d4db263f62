// SPDX-License-Identifier: Apache-2.0
#include "library/preload/mount_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shared/base/guarded.h"
#include "tests/unit/library/mounted/fake_mount.h"

namespace pnfsrdma::preload {
namespace {

using library::mounted::FakeMount;

constexpr size_t kFile = size_t{1} << 20;
constexpr uint32_t kClosed = 9;  // the number of a file that the mount does not know

// A mount that has one file, and answers out of order.
class Server {
 public:
  explicit Server(bool is_slow = false) : is_slow_(is_slow) {
    mount_.serve();
    bytes_.resize(kFile);
    thread_ = Thread([this] { work(); });
  }
  ~Server() { end(); }

  ring::Find find() const {
    ring::Find found;
    mount_.name().copy(found.socket.data(), found.socket.size() - 1);
    return found;
  }
  void end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void die() {
    end();
    mount_.die();
  }
  std::byte* bytes() { return bytes_.data(); }
  std::atomic<bool> hands_back = false, holds = false;

 private:
  void work() {
    std::vector<ring::Submission> taken;
    std::mt19937 random(1);
    while (!ends_) {
      while (const auto submission = mount_.rings->take()) taken.push_back(*submission);
      if (!holds && !taken.empty() && (!is_slow_ || random() % 4 == 0)) {
        std::swap(taken[random() % taken.size()], taken.back());
        const ring::Submission one = taken.back();
        taken.pop_back();
        mount_.complete({one.user_data, answer(one)});
        continue;
      }
      pollfd rung{mount_.doorbell(), POLLIN, 0};
      if (mount_.rings->may_sleep()) (void)::poll(&rung, 1, taken.empty() && !holds ? 5 : 0);
      mount_.rings->awake();
      (void)mount_.rung();
    }
  }

  int64_t answer(const ring::Submission& one) {
    if (one.file == kClosed) return -EBADF;
    if (hands_back) return ring::kUseDescriptor;
    const int memory = mount_.newest_memory;
    std::byte* const data = bytes_.data() + one.offset;
    const auto at = static_cast<off_t>(one.memory_offset);
    return one.opcode == static_cast<uint32_t>(ring::Opcode::kRead) ? ::pwrite(memory, data, one.length, at)
                                                                    : ::pread(memory, data, one.length, at);
  }

  const bool is_slow_;
  FakeMount mount_{MountRing::kPlaces};
  std::vector<std::byte> bytes_;
  std::atomic<bool> ends_ = false;
  Thread thread_;
};

class MountRingTest : public testing::Test {
 protected:
  void TearDown() override { ring_->abandon(); }

  int64_t move(ring::Opcode opcode, void* memory, size_t length, uint64_t offset, uint32_t file = 1) {
    const iovec piece{memory, length};
    return ring_->run(
        {.opcode = opcode, .file = file, .offset = offset, .length = length, .vector = &piece, .count = 1});
  }
  int64_t read(void* memory, size_t length, uint64_t offset) {
    return move(ring::Opcode::kRead, memory, length, offset);
  }
  int64_t write(void* memory, size_t length, uint64_t offset) {
    return move(ring::Opcode::kWrite, memory, length, offset);
  }

  const std::unique_ptr<MountRing> ring_ = std::make_unique<MountRing>();
};

TEST_F(MountRingTest, WhatIsWrittenIsRead) {
  Server server;
  ASSERT_TRUE(ring_->connect(server.find()));
  std::string sent(MountRing::kPlaceSize, 'a'), received(sent.size(), '\0');
  sent.back() = 'z';
  EXPECT_EQ(write(sent.data(), sent.size(), 5), static_cast<int64_t>(sent.size()));
  EXPECT_EQ(read(received.data(), received.size(), 5), static_cast<int64_t>(sent.size()));
  EXPECT_EQ(received, sent);
  server.end();
  EXPECT_EQ(std::memcmp(server.bytes() + 5, sent.data(), sent.size()), 0);
}

TEST_F(MountRingTest, PiecesOfMemoryAreOneMove) {
  Server server;
  ASSERT_TRUE(ring_->connect(server.find()));
  std::string one = "one", none, three = "three";
  const iovec pieces[] = {{one.data(), 3}, {none.data(), 0}, {three.data(), 5}};
  ring::Opcode opcode = ring::Opcode::kWrite;
  EXPECT_EQ(ring_->run({.opcode = opcode, .file = 1, .offset = 0, .length = 8, .vector = pieces, .count = 3}),
            8);
  one = three = "     ";
  opcode = ring::Opcode::kRead;
  EXPECT_EQ(ring_->run({.opcode = opcode, .file = 1, .offset = 0, .length = 8, .vector = pieces, .count = 3}),
            8);
  EXPECT_EQ(one.substr(0, 3) + three, "onethree");
  server.end();
  EXPECT_EQ(std::memcmp(server.bytes(), "onethree", 8), 0);
}

TEST_F(MountRingTest, WhatTheMountDoesNotDoItSays) {
  Server server;
  ASSERT_TRUE(ring_->connect(server.find()));
  char byte = 'x';
  EXPECT_EQ(move(ring::Opcode::kRead, &byte, 1, 0, kClosed), -EBADF);
  server.hands_back = true;
  EXPECT_EQ(read(&byte, 1, 0), ring::kUseDescriptor);
  EXPECT_EQ(byte, 'x');
  server.hands_back = false;
  EXPECT_EQ(read(&byte, 1, 0), 1);
}

TEST_F(MountRingTest, NobodyThereIsNoMount) {
  ring::Find found;
  std::strcpy(found.socket.data(), "pnfsrdma-nobody");
  EXPECT_FALSE(ring_->connect(found));
}

TEST_F(MountRingTest, AMountThatRefusesIsNoMount) {
  FakeMount mount(MountRing::kPlaces);
  mount.serve("too many programs");
  ring::Find found;
  mount.name().copy(found.socket.data(), found.socket.size() - 1);
  EXPECT_FALSE(ring_->connect(found));
}

TEST_F(MountRingTest, AMountOfAnotherDepthIsNoMount) {
  FakeMount mount;
  mount.serve();
  ring::Find found;
  mount.name().copy(found.socket.data(), found.socket.size() - 1);
  EXPECT_FALSE(ring_->connect(found));
}

TEST_F(MountRingTest, TheDescriptorsAreOutOfTheWay) {
  const FileDescriptor before(::dup(0));
  Server server;
  ASSERT_TRUE(ring_->connect(server.find()));
  for (int number = 900; number < 1000; ++number)
    EXPECT_LT(::fcntl(number, F_GETFD), 0) << number << " is not at the end of the numbers";
  int kept = 0;
  for (int number = 1000; number < 1024; ++number) kept += ::fcntl(number, F_GETFD) >= 0 ? 1 : 0;
  EXPECT_EQ(kept, 3);
}

// A program that closes a descriptor that it has not opened, and gets its number for a file of its own.
TEST_F(MountRingTest, AFileAtTheNumberOfADoorbellIsLeftAlone) {
  for (const int nth : {1, 2}) {  // behind the socket: the mount's, the program's
    Server server(true);          // sleeps between
    ASSERT_TRUE(ring_->connect(server.find()));
    char byte = 'x';
    ASSERT_EQ(read(&byte, 1, 0), 1);
    int number = 1000;
    for (int found = 0; found <= nth; ++number) found += ::fcntl(number, F_GETFD) >= 0 ? 1 : 0;
    const FileDescriptor file(::memfd_create("file of the program", 0));
    ASSERT_EQ(::write(file.get(), "untouched", 9), 9);
    ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    ASSERT_EQ(::dup2(file.get(), number - 1), number - 1);
    for (int turn = 0; turn < 50; ++turn) {
      const int64_t result = read(&byte, 1, 0);
      EXPECT_TRUE(result == 1 || result == ring::kUseDescriptor) << result;
    }
    EXPECT_TRUE(ring_->is_gone());
    EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 0) << "it was written to, or read";
    std::array<char, 16> content{};
    EXPECT_EQ(::pread(file.get(), content.data(), content.size(), 0), 9);
    EXPECT_STREQ(content.data(), "untouched");
    ring_->abandon();
  }
}

TEST_F(MountRingTest, WhenTheMountEndsTheKernelIsAsked) {
  auto server = std::make_unique<Server>();
  ASSERT_TRUE(ring_->connect(server->find()));
  char byte = 'x';
  ASSERT_EQ(read(&byte, 1, 0), 1);
  server->holds = true;
  std::atomic<int64_t> result = 0;
  Thread waits([&] {
    char unread = 0;
    result = read(&unread, 1, 0);
  });
  Thread waits_too([&] {
    char unread = 0;
    (void)read(&unread, 1, 0);
  });
  server->die();
  waits.join();
  waits_too.join();
  EXPECT_EQ(result, ring::kUseDescriptor);
  EXPECT_TRUE(ring_->is_gone());
  EXPECT_EQ(read(&byte, 1, 0), ring::kUseDescriptor);
}

TEST_F(MountRingTest, ManyThreadsGetWhatEachHasAskedFor) {
  for (const bool is_slow : {false, true}) {
    Server server(is_slow);
    ASSERT_TRUE(ring_->connect(server.find()));
    constexpr size_t kThreads = 80, kLength = 512;  // more than there are places
    std::atomic<int> wrong = 0, done = 0;
    std::vector<Thread> threads;
    for (size_t number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        std::mt19937 random(static_cast<unsigned>(number));
        for (int turn = 0; turn < 60; ++turn) {
          std::string sent(kLength, static_cast<char>(random())), received(kLength, '\0');
          const uint64_t offset = number * kLength;
          const int64_t written = write(sent.data(), kLength, offset);
          if (written == ring::kUseDescriptor) continue;  // no place
          const int64_t back = read(received.data(), kLength, offset);
          if (back == ring::kUseDescriptor) continue;
          ++done;
          if (written != kLength || back != kLength || sent != received) ++wrong;
        }
      });
    }
    for (Thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(done, 100);
    ring_->abandon();
  }
}

std::atomic<int> handled;
MountRing* interrupted;

// As a program that writes its log in a signal handler.
void read_in_handler(int) {
  char byte = 0;
  const iovec piece{&byte, 1};
  const int64_t result = interrupted->run(
      {.opcode = ring::Opcode::kRead, .file = 1, .offset = 0, .length = 1, .vector = &piece, .count = 1});
  if (result == 1 || result == ring::kUseDescriptor) ++handled;
}

TEST_F(MountRingTest, SignalHandlersDoTheSame) {
  Server server;
  ASSERT_TRUE(ring_->connect(server.find()));
  interrupted = ring_.get();
  handled = 0;
  struct sigaction action{};
  action.sa_handler = read_in_handler;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> ends = false;
  std::atomic<int> wrong = 0;
  Thread reads([&] {
    char byte = 0;
    while (!ends) {
      if (read(&byte, 1, 0) != 1) ++wrong;
    }
  });
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(::pthread_kill(reads.native_handle(), SIGUSR1), 0);
    if (i % 16 == 0) (void)::poll(nullptr, 0, 1);
  }
  ends = true;
  reads.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(handled, 10);
  (void)::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace pnfsrdma::preload
