// SPDX-License-Identifier: Apache-2.0
#include "shared/base/deferred_destruction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>

namespace pnfsrdma {
namespace {

// Does something as it ends.
struct Mortal {
  explicit Mortal(std::function<void()> at_end) : end(std::move(at_end)) {}
  ~Mortal() { end(); }
  std::function<void()> end;
};

struct DeferredDestructionTest : testing::Test {
  std::shared_ptr<Mortal> adopt(std::function<void()> at_end) {
    return destruction->adopt(std::make_unique<Mortal>(std::move(at_end)));
  }
  std::optional<DeferredDestruction> destruction{std::in_place, "destroy-test"};
};

TEST_F(DeferredDestructionTest, WhoeverLetsGoLastDoesNotWait) {
  std::promise<void> released;
  std::atomic<bool> ended = false;
  auto first = adopt([&] {
    released.get_future().wait();
    ended = true;
  });
  auto second = first;
  first.reset();
  second.reset();
  EXPECT_FALSE(ended);
  released.set_value();
  destruction.reset();
  EXPECT_TRUE(ended);
}

TEST_F(DeferredDestructionTest, ItsEndWaitsForAllThatWereLetGoOf) {
  std::promise<void> released;
  std::atomic<int> ended = 0;
  adopt([&] {
    released.get_future().wait();
    ++ended;
  });
  adopt([&] { ++ended; });
  auto end = std::async(std::launch::async, [&] { destruction.reset(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  released.set_value();
  end.wait();
  EXPECT_EQ(ended, 2);
}

TEST_F(DeferredDestructionTest, AfterItsEndObjectsEndInPlace) {
  std::thread::id where;
  auto late = adopt([&] { where = std::this_thread::get_id(); });
  destruction.reset();
  late.reset();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(DeferredDestructionTest, OneMayLetGoOfAnotherAsItEnds) {
  std::atomic<bool> ended = false;
  auto inner = adopt([&] { ended = true; });
  adopt([inner = std::move(inner)]() mutable { inner.reset(); });
  destruction.reset();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace pnfsrdma
