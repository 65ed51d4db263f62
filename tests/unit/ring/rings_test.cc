// SPDX-License-Identifier: Apache-2.0
#include "shared/ring/rings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "shared/base/sync.h"

namespace pnfsrdma::ring {
namespace {

// Page-aligned zeros.
class SharedMemory {
 public:
  explicit SharedMemory(uint32_t depth)
      : size_(rings_size(depth)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, size_)), &std::free) {
    std::memset(memory_.get(), 0, size_);
  }
  MutableByteSpan bytes() const { return {memory_.get(), size_}; }

 private:
  const size_t size_;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

class RingsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kDepth = 4;
  SharedMemory memory{kDepth};
  ProgramRings program{memory.bytes(), kDepth};
  MountRings mount{memory.bytes(), kDepth};
  RingsHeader& header = RingsView(memory.bytes(), kDepth).header();
};

TEST(RoundedDepth, IsAPowerOfTwoUpTo4096) {
  EXPECT_EQ(rounded_depth(0), std::nullopt);
  EXPECT_EQ(rounded_depth(1), 1u);
  EXPECT_EQ(rounded_depth(5), 8u);
  EXPECT_EQ(rounded_depth(4096), 4096u);
  EXPECT_EQ(rounded_depth(4097), std::nullopt);
  EXPECT_EQ(rounded_depth(uint64_t{1} << 40), std::nullopt);
}

TEST_F(RingsTest, ASubmissionArrivesWholeAndItsCompletionComesBack) {
  const Submission sent{.opcode = 1,
                        .flags = kDurable,
                        .file = 7,
                        .memory = 8,
                        .memory_offset = 9,
                        .length = 10,
                        .offset = 11,
                        .user_data = 12};
  ASSERT_TRUE(program.submit(sent));
  EXPECT_FALSE(mount.take());
  EXPECT_FALSE(program.publish());
  const auto taken = mount.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(std::memcmp(&*taken, &sent, sizeof sent), 0);
  EXPECT_FALSE(mount.take());
  mount.complete({.user_data = 12, .result = -5});
  EXPECT_FALSE(program.reap());
  EXPECT_FALSE(mount.publish());
  const auto completion = program.reap();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->user_data, 12u);
  EXPECT_EQ(completion->result, -5);
}

TEST_F(RingsTest, WhatIsNotReapedTakesPlaces) {
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(program.submit({}));
  EXPECT_FALSE(program.submit({}));
  (void)program.publish();
  for (uint32_t i = 0; i < kDepth; ++i) {
    ASSERT_TRUE(mount.take());
    mount.complete({});
  }
  (void)mount.publish();
  ASSERT_TRUE(program.submit({}));
  (void)program.publish();
  EXPECT_FALSE(mount.take());
  ASSERT_TRUE(program.reap());
  EXPECT_TRUE(mount.take());
}

TEST_F(RingsTest, AProgramThatClaimsToHaveReapedGetsNoMoreOnTheirWay) {
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(program.submit({}));
  (void)program.publish();
  for (uint32_t i = 0; i < kDepth; ++i) ASSERT_TRUE(mount.take());
  header.reaped.value = kDepth;
  header.submitted.value = 2 * kDepth;
  EXPECT_FALSE(mount.take());
}

TEST_F(RingsTest, IndicesThatCannotBeAreNothing) {
  for (const uint32_t submitted : {kDepth + 1, 1u << 31, UINT32_MAX}) {
    header.submitted.value = submitted;
    EXPECT_FALSE(mount.take());
    EXPECT_TRUE(mount.may_sleep());
  }
  header.submitted.value = 1;
  for (const uint32_t reaped : {1u, 1u << 31, UINT32_MAX - kDepth}) {
    header.reaped.value = reaped;
    EXPECT_FALSE(mount.take());
  }
}

TEST_F(RingsTest, WhoeverSleepsIsToBeWoken) {
  EXPECT_TRUE(mount.may_sleep());
  ASSERT_TRUE(program.submit({}));
  EXPECT_TRUE(program.publish());
  EXPECT_FALSE(program.publish());  // it has been woken
  mount.awake();
  EXPECT_FALSE(program.publish());
  EXPECT_FALSE(mount.may_sleep());  // there is something to take
  ASSERT_TRUE(mount.take());
  EXPECT_TRUE(program.may_sleep());
  mount.complete({});
  EXPECT_TRUE(mount.publish());
  EXPECT_FALSE(mount.publish());
  EXPECT_TRUE(program.awake());
  EXPECT_FALSE(program.may_sleep());  // there is something to reap
  mount.complete({});
  EXPECT_TRUE(mount.publish());
  EXPECT_TRUE(program.awake()) << "rung, though it did not sleep";
  ASSERT_TRUE(program.reap() && program.reap());
  EXPECT_TRUE(program.may_sleep());
  EXPECT_FALSE(program.awake());  // nobody has rung
}

// Two threads, each sleeping on a condition of its own when there is nothing to do: none is forgotten there.
TEST(RingsInTwoThreads, NothingIsLostAndNobodySleepsForEver) {
  constexpr uint32_t kDepth = 8;
  constexpr uint64_t kCount = 50'000;
  SharedMemory memory(kDepth);
  ProgramRings program(memory.bytes(), kDepth);
  MountRings mount(memory.bytes(), kDepth);
  struct Bell {
    std::atomic<uint32_t> rung = 0;
    void ring() {
      rung = 1;
      rung.notify_one();
    }
    void wait() {
      rung.wait(0);
      rung = 0;
    }
  } to_mount, to_program;
  Thread serving([&] {
    for (uint64_t served = 0; served < kCount;) {
      const auto submission = mount.take();
      if (submission) {
        mount.complete(
            {.user_data = submission->user_data, .result = static_cast<int64_t>(submission->length)});
        if (mount.publish()) to_program.ring();
        ++served;
      } else if (mount.may_sleep()) {
        to_mount.wait();
        mount.awake();
      }
    }
  });
  uint64_t sent = 0, reaped = 0;
  while (reaped < kCount) {
    bool any = false;
    while (sent < kCount && sent - reaped < kDepth &&
           program.submit({.length = sent * 3, .user_data = sent})) {
      ++sent;
      any = true;
    }
    if (any && program.publish()) to_mount.ring();
    if (const auto completion = program.reap()) {
      ASSERT_EQ(completion->user_data, reaped);
      ASSERT_EQ(completion->result, static_cast<int64_t>(reaped * 3));
      ++reaped;
    } else if (program.may_sleep()) {
      to_program.wait();
      program.awake();
    }
  }
  serving.join();
}

}  // namespace
}  // namespace pnfsrdma::ring
