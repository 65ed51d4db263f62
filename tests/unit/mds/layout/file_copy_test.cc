// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/file_copy.h"

#include <gtest/gtest.h>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;
using Answer = std::expected<FileCopy::Copied, Status>;

class FileCopyTest : public ::testing::Test {
 protected:
  // Whose bytes LayoutWorld::check() takes for the source's own: every 26th file has the same pattern.
  InodeId make_target() {
    for (int i = 0; i < 25; ++i) world_.create("between" + std::to_string(i));
    return world_.create("target");
  }
  std::string pattern(size_t count) const {
    return std::string(count, static_cast<char>('A' + source_ % 26));
  }
  static std::string zeros(size_t count) { return std::string(count, '\0'); }
  Answer copy(uint64_t source_offset, uint64_t target_offset, uint64_t count) {
    return copy({.client = kBob,
                 .source = source_,
                 .source_offset = source_offset,
                 .target = target_,
                 .target_offset = target_offset,
                 .count = count});
  }
  Answer copy(const FileCopy::What& what) {
    std::optional<Answer> answer;
    world_.mds->copies().copy(what, [&](const Answer& got) { answer = got; });
    for (int i = 0; i < 20 && !answer; ++i) world_.settle();
    return answer.value_or(std::unexpected(Status::kServerFault));
  }
  std::string target(uint64_t offset, uint32_t count) { return world_.read(target_, offset, count); }

  LayoutWorld world_{32};
  const InodeId source_ = world_.create("source");
  const InodeId target_ = make_target();
};

TEST_F(FileCopyTest, TheTargetHasTheBytesDurably) {
  const uint64_t size = 3 * FileCopy::kPieceBytes + 1000;
  ASSERT_EQ(world_.write(source_, 0, pattern(size)), Status::kOk);
  const uint64_t change = world_.stat(target_)->change;
  const size_t persisted = world_.brick.count("persist");
  const Answer answer = copy(0, 0, size);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->count, size);
  EXPECT_EQ(world_.stat(target_)->size, size);
  EXPECT_GT(world_.stat(target_)->change, change);
  EXPECT_GT(world_.brick.count("persist"), persisted);
  EXPECT_TRUE(target(0, size) == pattern(size));
  world_.check("copied");
  // The host dies: what was answered is there.
  world_.crash(0);
  world_.start();
  EXPECT_TRUE(target(0, size) == pattern(size));
  world_.check("restarted");
}

TEST_F(FileCopyTest, BytesGoToAnyPlaceAndWhatIsAroundThemStays) {
  ASSERT_EQ(world_.write(source_, 0, pattern(10000)), Status::kOk);
  ASSERT_EQ(world_.set_size(target_, 20000), Status::kOk);
  const Answer answer = copy(123, 5001, 7000);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->count, 7000u);
  EXPECT_EQ(world_.stat(target_)->size, 20000u);
  EXPECT_TRUE(target(0, 20000) == zeros(5001) + pattern(7000) + zeros(7999));
  world_.check("copied");
}

TEST_F(FileCopyTest, AHoleStaysAHole) {
  ASSERT_EQ(world_.write(source_, 0, pattern(5000)), Status::kOk);
  ASSERT_EQ(world_.write(source_, 1 << 20, pattern(5000)), Status::kOk);
  ASSERT_EQ(world_.set_size(source_, 2 << 20), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(1500000)), Status::kOk);
  const Answer answer = copy(0, 0, 2 << 20);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->count, uint64_t{2} << 20);
  EXPECT_EQ(world_.stat(target_)->size, uint64_t{2} << 20);
  EXPECT_TRUE(target(0, 2 << 20) == world_.read(source_, 0, 2 << 20));
  EXPECT_LT(world_.stat(target_)->space_used, uint64_t{256} << 10);
  world_.check("copied");
}

TEST_F(FileCopyTest, ItEndsWithTheSourceAndAfterSoMuch) {
  ASSERT_EQ(world_.write(source_, 0, pattern(5000)), Status::kOk);
  EXPECT_EQ(copy(4000, 0, 5000).value_or(FileCopy::Copied{}).count, 1000u);
  EXPECT_EQ(copy(5000, 0, 5000).value_or(FileCopy::Copied{.count = 1}).count, 0u);
  EXPECT_EQ(world_.stat(target_)->size, 1000u);
  ASSERT_EQ(world_.set_size(source_, 2 * FileCopy::kBytesMax), Status::kOk);
  EXPECT_EQ(copy(0, 0, 2 * FileCopy::kBytesMax).value_or(FileCopy::Copied{}).count, FileCopy::kBytesMax);
  EXPECT_EQ(world_.stat(target_)->size, FileCopy::kBytesMax);
  world_.check("copied");
}

TEST_F(FileCopyTest, WhoeverAskedCanEndItBetweenTwoPieces) {
  const uint64_t size = 4 * FileCopy::kPieceBytes;
  ASSERT_EQ(world_.write(source_, 0, pattern(size)), Status::kOk);
  FileCopy::What what{.client = kBob, .source = source_, .target = target_, .count = size};
  what.goes_on = [](uint64_t copied) { return copied < 2 * FileCopy::kPieceBytes; };
  const Answer answer = copy(what);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->count, 2 * FileCopy::kPieceBytes);
  EXPECT_EQ(world_.stat(target_)->size, answer->count);
  EXPECT_TRUE(target(0, answer->count) == pattern(answer->count));
  world_.check("ended");
}

TEST_F(FileCopyTest, OneFileCanBeBoth) {
  ASSERT_EQ(world_.write(source_, 0, pattern(8192)), Status::kOk);
  const Answer answer = copy({.client = kBob,
                              .source = source_,
                              .source_offset = 0,
                              .target = source_,
                              .target_offset = 20000,
                              .count = 8192});
  ASSERT_TRUE(answer);
  EXPECT_TRUE(world_.read(source_, 0, 30000) == pattern(8192) + zeros(20000 - 8192) + pattern(8192));
  world_.check("copied");
}

TEST_F(FileCopyTest, WhoeverReadsZerosFromAHoleOfTheTargetMustAskAgain) {
  ASSERT_EQ(world_.write(source_, 0, pattern(65536)), Status::kOk);
  ASSERT_EQ(world_.set_size(target_, 65536), Status::kOk);
  ASSERT_TRUE(world_.get(kAlice, target_, IoMode::kRead, 0, 65536));
  world_.obey_recalls();
  ASSERT_TRUE(copy(0, 0, 65536));
  EXPECT_EQ(world_.recaller.recalls.size(), 1u);
  EXPECT_TRUE(target(0, 65536) == pattern(65536));
}

TEST_F(FileCopyTest, WhatIsDoneWhenSomethingFailsIsAnsweredAndTheRestFailsNext) {
  const uint64_t size = 4 * FileCopy::kPieceBytes;
  ASSERT_EQ(world_.write(source_, 0, pattern(size)), Status::kOk);
  // Room for two pieces.
  const uint64_t free = world_.mds->data().space().free;
  ASSERT_EQ(world_.allocate(world_.create("fill"), {0, free - 2 * FileCopy::kPieceBytes}), Status::kOk);
  const Answer answer = copy(0, 0, size);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->count, 2 * FileCopy::kPieceBytes);
  EXPECT_EQ(world_.stat(target_)->size, answer->count);
  EXPECT_EQ(copy(answer->count, answer->count, size - answer->count).error(), Status::kNoSpc);
  EXPECT_EQ(world_.stat(target_)->size, answer->count);
  world_.check("full");
}

TEST_F(FileCopyTest, TooFarIsFBIG) {
  ASSERT_EQ(world_.write(source_, 0, pattern(5000)), Status::kOk);
  EXPECT_EQ(copy(0, kFileSizeMax - 10, 5000).error(), Status::kFBig);
}

TEST_F(FileCopyTest, TwoInOppositeDirectionsBothEnd) {
  ASSERT_EQ(world_.write(source_, 0, pattern(2 * FileCopy::kPieceBytes)), Status::kOk);
  ASSERT_EQ(world_.write(target_, 0, pattern(2 * FileCopy::kPieceBytes)), Status::kOk);
  int ended = 0;
  for (const auto& [from, to] : {std::pair(source_, target_), std::pair(target_, source_)}) {
    world_.mds->copies().copy({.client = kBob,
                               .source = from,
                               .source_offset = 0,
                               .target = to,
                               .target_offset = 2 * FileCopy::kPieceBytes,
                               .count = 2 * FileCopy::kPieceBytes},
                              [&](const Answer& answer) { ended += answer ? 1 : 0; });
  }
  for (int i = 0; i < 20; ++i) world_.settle();
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(target(0, 4 * FileCopy::kPieceBytes) == pattern(4 * FileCopy::kPieceBytes));
  world_.check("copied");
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
