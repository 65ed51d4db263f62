// SPDX-License-Identifier: Apache-2.0
#include "shared/base/burial.h"

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

struct BurialTest : testing::Test {
  std::shared_ptr<Mortal> adopt(std::function<void()> at_end) {
    return burial->adopt(std::make_unique<Mortal>(std::move(at_end)));
  }
  std::optional<Burial> burial{std::in_place, "bury-test"};
};

TEST_F(BurialTest, WhoeverLetsGoLastDoesNotWait) {
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
  burial.reset();
  EXPECT_TRUE(ended);
}

TEST_F(BurialTest, ItsEndWaitsForAllThatWereLetGoOf) {
  std::promise<void> released;
  std::atomic<int> ended = 0;
  adopt([&] {
    released.get_future().wait();
    ++ended;
  });
  adopt([&] { ++ended; });
  auto end = std::async(std::launch::async, [&] { burial.reset(); });
  EXPECT_EQ(end.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  released.set_value();
  end.wait();
  EXPECT_EQ(ended, 2);
}

TEST_F(BurialTest, AfterItsEndObjectsEndInPlace) {
  std::thread::id where;
  auto late = adopt([&] { where = std::this_thread::get_id(); });
  burial.reset();
  late.reset();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(BurialTest, OneMayLetGoOfAnotherAsItEnds) {
  std::atomic<bool> ended = false;
  auto inner = adopt([&] { ended = true; });
  adopt([inner = std::move(inner)]() mutable { inner.reset(); });
  burial.reset();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace pnfsrdma
