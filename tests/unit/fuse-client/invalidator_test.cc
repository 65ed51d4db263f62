// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/invalidator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>

#include "shared/base/guarded.h"

namespace pnfsrdma::fuse_client {
namespace {

// A kernel whose pages of some files wait for a brick that is silent.
class InvalidatorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSilent = 1000;  // from here on

  InvalidatorTest() {
    invalidator.start([this](uint64_t node, bool with_pages) {
      if (with_pages && node >= kSilent) silent.wait();
      told.lock()->push_back(node);
    });
  }
  ~InvalidatorTest() override {
    if (!silent.try_wait()) silent.count_down();
    invalidator.stop();
  }
  void drop_and_wait(uint64_t node) {
    std::latch dropped(1);
    invalidator.pages(node, [&] { dropped.count_down(); });
    dropped.wait();
  }

  std::latch silent{1};
  Guarded<std::vector<uint64_t>> told;
  Invalidator invalidator;
};

TEST_F(InvalidatorTest, FilesOfASilentBrickHoldUpNoOther) {
  std::atomic<int> done = 0;
  for (uint64_t i = 0; i < 100; ++i) invalidator.pages(kSilent + i, [&] { ++done; });
  for (uint64_t node = 1; node < 50; ++node) drop_and_wait(node);
  invalidator.attributes(kSilent);
  EXPECT_EQ(told.lock()->back(), kSilent) << "attributes wait for no page";
  EXPECT_EQ(done, 0);
  EXPECT_LE(invalidator.threads(), 103u);
  silent.count_down();
  while (done < 100) yield_thread();
}

TEST_F(InvalidatorTest, OneFileIsOneThreadsAndInOrder) {
  std::atomic<int> done = 0;
  for (int i = 0; i < 100; ++i) invalidator.pages(kSilent, [&, i] { EXPECT_EQ(done++, i); });
  for (int i = 0; i < 10'000; ++i) invalidator.pages(kSilent);
  drop_and_wait(1);
  EXPECT_LE(invalidator.threads(), 3u);
  silent.count_down();
  drop_and_wait(kSilent);
  EXPECT_EQ(done, 100);
  EXPECT_LT(told.lock()->size(), 110u) << "what nobody waits for is done once";
}

TEST_F(InvalidatorTest, ThreadsAreBoundedAndWhatIsLeftAtTheEndIsDone) {
  std::atomic<size_t> done = 0;
  constexpr size_t kFiles = Invalidator::kThreadsMax + 50;
  for (uint64_t i = 0; i < kFiles; ++i) invalidator.pages(kSilent + i, [&] { ++done; });
  EXPECT_LE(invalidator.threads(), Invalidator::kThreadsMax + 1);
  Thread stopping([&] { invalidator.stop(); });
  silent.count_down();
  stopping.join();
  EXPECT_EQ(done, kFiles);
  invalidator.pages(1, [&] { ++done; });
  EXPECT_EQ(done, kFiles + 1);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
