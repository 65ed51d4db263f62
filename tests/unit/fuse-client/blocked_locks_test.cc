// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/blocked_locks.h"

#include <gtest/gtest.h>

#include <map>

#include "shared/base/guarded.h"

namespace {

// libfuse as far as waiting requests need it: who is answered what, and who hears of an interrupt.
struct Requests {
  struct State {
    std::map<fuse_req_t, int> answers;
    std::map<fuse_req_t, std::pair<fuse_interrupt_func_t, void*>> interrupts;
  };
  pnfsrdma::Guarded<State> state;
} requests;

}  // namespace

// In place of libfuse's: this program has no session.
extern "C" void fuse_req_interrupt_func(fuse_req_t request, fuse_interrupt_func_t heard, void* data) {
  requests.state.lock()->interrupts[request] = {heard, data};
}
extern "C" int fuse_reply_err(fuse_req_t request, int error) {
  requests.state.lock()->answers[request] = error;
  return 0;
}

namespace pnfsrdma::fuse_client {
namespace {

fuse_req_t request_number(uintptr_t number) {
  return reinterpret_cast<fuse_req_t>(number);
}

struct BlockedLocksTest : testing::Test {
  BlockedLocks locks;
  const std::shared_ptr<Inode> file = std::make_shared<Inode>(nfs4::FileHandle(as_bytes("f")), 1);
  std::atomic<bool> free = false;
  std::atomic<int> tries = 0;

  BlockedLocksTest() {
    requests.state.lock()->answers.clear();
    locks.start([this](BlockedLocks::Waiting& waiting) {
      ++tries;
      if (!waiting.interrupted && !free) return false;
      BlockedLocks::let_go(waiting);
      fuse_reply_err(waiting.request, waiting.interrupted ? EINTR : 0);
      return true;
    });
  }
  void add(uintptr_t number) {
    auto waiting = std::make_unique<BlockedLocks::Waiting>();
    waiting->request = request_number(number);
    waiting->wish.inode = file;
    locks.add(std::move(waiting));
  }
  static std::optional<int> answer(uintptr_t number) {
    auto state = requests.state.lock();
    const auto found = state->answers.find(request_number(number));
    return found == state->answers.end() ? std::nullopt : std::optional(found->second);
  }
  static bool comes(uintptr_t number) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!answer(number) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(Milliseconds(1));
    return answer(number).has_value();
  }
};

TEST_F(BlockedLocksTest, WaitsUntilTheLockIsFree) {
  add(1);
  add(2);
  std::this_thread::sleep_for(Milliseconds(30));
  EXPECT_GT(tries, 2);
  EXPECT_FALSE(answer(1) || answer(2));
  free = true;
  EXPECT_TRUE(comes(1) && comes(2));
  EXPECT_EQ(answer(1), 0);
}

// Its own tries are up to a quarter of a second apart by then.
TEST_F(BlockedLocksTest, LooksAtOnceWhenSomethingWasUnlocked) {
  add(1);
  std::this_thread::sleep_for(Milliseconds(600));
  free = true;
  const auto begun = std::chrono::steady_clock::now();
  const int before = tries;
  locks.look(*file);
  ASSERT_TRUE(comes(1));
  EXPECT_EQ(tries, before + 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, Milliseconds(200));
}

TEST_F(BlockedLocksTest, AnInterruptEndsTheOneItIsFor) {
  add(1);
  add(2);
  {
    // As libfuse: the request's lock is held, so it is not let go meanwhile.
    auto state = requests.state.lock();
    const auto [heard, data] = state->interrupts.at(request_number(1));
    ASSERT_NE(heard, nullptr);
    heard(request_number(1), data);
  }
  ASSERT_TRUE(comes(1));
  EXPECT_EQ(answer(1), EINTR);
  EXPECT_FALSE(answer(2));
}

TEST_F(BlockedLocksTest, TheEndAnswersAllAndTakesNoMore) {
  add(1);
  add(2);
  locks.stop();
  EXPECT_EQ(answer(1), EINTR);
  EXPECT_EQ(answer(2), EINTR);
  EXPECT_EQ(requests.state.lock()->interrupts.at(request_number(1)).first, nullptr);
  add(3);
  EXPECT_EQ(answer(3), EINTR);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
