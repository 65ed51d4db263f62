// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/file_bricks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "tests/unit/mds/layout/layout_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

// A file with more extents than a turn may look at on the first brick, and one behind them on the second.
struct AFileOnTwoBricks : ::testing::Test {
  static constexpr uint64_t kExtents = 4 * FileBricks::kExtentsPerTurn + 7;
  static constexpr uint64_t kEnd = kExtents * 2 * kGrainSize;
  static constexpr uint64_t kOnSecond = uint64_t{1} << 48;  // its zone
  // Rows beside the extents: the inode, and where a scan ends.
  static constexpr size_t kOthers = 8;
  LayoutWorld world{64, {64}};
  InodeId file = world.create_sparse("f", kExtents);
  FileBricks bricks{world.loop, world.store, world.mds->bricks()};
  size_t rows_of_a_turn = 0;  // the most of any

  void SetUp() override { add({kEnd, kOnSecond, kGrainSize}); }
  void add(const Extent& extent) {
    Batch batch;
    ExtentChange change(world.store, file);
    ASSERT_TRUE(change.insert(extent));
    change.write_to(batch);
    ASSERT_TRUE(world.names->update(file, {.size = kEnd + kGrainSize}, batch));
  }
  void lose(BrickNumber number) { world.plug.down(world.addresses()[number - 1]); }
  void find_again(BrickNumber number) {
    world.plug.up(world.addresses()[number - 1]);
    world.settle();
  }
  // The second brick, once the loop has no more to do about it.
  void lose_second() {
    lose(2);
    world.settle();
  }
  void turn() {
    const size_t before = world.store.rows_visited;
    world.loop.run_once(Milliseconds(0));
    rows_of_a_turn = std::max(rows_of_a_turn, world.store.rows_visited - before);
  }
  using Answer = std::shared_ptr<std::optional<Status>>;
  Answer ask(const ByteRange& range = {0, kEndOfFile}) {
    auto answer = std::make_shared<std::optional<Status>>();
    bricks.absence(file, range, [answer](Status status) {
      EXPECT_FALSE(*answer) << "once";
      *answer = status;
    });
    return answer;
  }
};

TEST_F(AFileOnTwoBricks, IsNotLookedAtWhenAllBricksAreReady) {
  const size_t before = world.store.rows_visited;
  EXPECT_EQ(*ask(), Status::kOk);
  EXPECT_EQ(world.store.rows_visited, before);
}

TEST_F(AFileOnTwoBricks, IsLookedThroughABatchOfExtentsATurn) {
  lose_second();
  const Answer answer = ask();
  EXPECT_FALSE(*answer) << "in one turn";
  for (int i = 0; i < 10 && !*answer; ++i) turn();
  EXPECT_EQ(*answer, Status::kDelay);
  EXPECT_LE(rows_of_a_turn, FileBricks::kExtentsPerTurn + kOthers);
}

TEST_F(AFileOnTwoBricks, AFewExtentsAreLookedAtAtOnce) {
  lose_second();
  EXPECT_EQ(*ask({0, 20 * kGrainSize}), Status::kOk);
  EXPECT_EQ(*ask({kEnd, kEndOfFile}), Status::kDelay);
  EXPECT_EQ(*ask({kEnd, kEnd}), Status::kOk) << "an empty range";
}

TEST_F(AFileOnTwoBricks, NothingIsLookedAtBehindTheOneThatIsAway) {
  add({kGrainSize, kOnSecond + kGrainSize, kGrainSize});  // in the first hole
  lose_second();
  const size_t before = world.store.rows_visited;
  EXPECT_EQ(*ask(), Status::kDelay);
  EXPECT_LE(world.store.rows_visited - before, FileBricks::kFirstLook + kOthers);
}

// Many who ask at once take turns.
TEST_F(AFileOnTwoBricks, ManyQuestionsMakeNoTurnLonger) {
  lose_second();
  std::vector<Answer> answers;
  for (int i = 0; i < 20; ++i) answers.push_back(ask());
  for (int i = 0; i < 200; ++i) turn();
  for (const Answer& answer : answers) EXPECT_EQ(*answer, Status::kDelay);
  EXPECT_LE(rows_of_a_turn, FileBricks::kExtentsPerTurn + kOthers);
}

TEST_F(AFileOnTwoBricks, ABrickThatComesBackMeanwhileIsReady) {
  lose_second();
  // So many that none of them is through before it is back.
  std::vector<Answer> answers;
  for (int i = 0; i < 40; ++i) answers.push_back(ask());
  find_again(2);
  ASSERT_TRUE(world.mds->ready());
  for (int i = 0; i < 200; ++i) turn();
  for (const Answer& answer : answers) EXPECT_EQ(*answer, Status::kOk);
}

// It was there when the search had found it.
TEST_F(AFileOnTwoBricks, ABrickThatGoesMeanwhileIsAway) {
  lose_second();
  const Answer answer = ask({0, kEnd});
  turn();
  EXPECT_FALSE(*answer);
  lose(1);
  for (int i = 0; i < 10 && !*answer; ++i) turn();
  EXPECT_EQ(*answer, Status::kDelay);
}

TEST_F(AFileOnTwoBricks, ThatIsRemovedMeanwhileNeedsNoBrickAnyMore) {
  lose_second();
  const Answer answer = ask();
  turn();
  Batch batch;
  ExtentChange change(world.store, file);
  ASSERT_TRUE(change.remove(0, UINT64_MAX));
  change.write_to(batch);
  ASSERT_TRUE(world.names->update(file, {.space_used = 0, .space_only = true}, batch));
  for (int i = 0; i < 10 && !*answer; ++i) turn();
  EXPECT_EQ(*answer, Status::kOk);
}

TEST_F(AFileOnTwoBricks, NobodyHearsOfASearchThatHasGone) {
  lose_second();
  auto search = std::make_unique<FileBricks>(world.loop, world.store, world.mds->bricks());
  bool answered = false;
  search->absence(file, {0, kEndOfFile}, [&](Status) { answered = true; });
  turn();
  search = nullptr;
  world.settle();
  EXPECT_FALSE(answered);
}

// --- who asks ---

TEST_F(AFileOnTwoBricks, ATruncateAsksForABatchATurn) {
  lose_second();
  std::optional<Status> answer;
  world.mds->conflicts().set_size(file, 100, kBob, [&](Status status) { answer = status; });
  EXPECT_FALSE(answer);
  for (int i = 0; i < 20 && !answer; ++i) turn();
  EXPECT_EQ(answer, Status::kDelay);
  EXPECT_LE(rows_of_a_turn, FileBricks::kExtentsPerTurn + kOthers);
  EXPECT_EQ(world.stat(file)->size, kEnd + kGrainSize);
}

TEST_F(AFileOnTwoBricks, ALayoutGetAsksForABatchATurn) {
  lose_second();
  std::optional<LayoutGranter::Answer> answer;
  GrantRequest request{.client = kAlice, .inode = file, .mode = IoMode::kRead};
  request.range = {0, kEndOfFile};
  request.min_length = 1;
  request.max_bytes = 65536;
  world.mds->granter().grant(request, [&](LayoutGranter::Answer got) { answer = std::move(got); });
  for (int i = 0; i < 20 && !answer; ++i) turn();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error(), Status::kLayoutTryLater);
  EXPECT_LE(rows_of_a_turn, FileBricks::kExtentsPerTurn + kOthers);
}

TEST_F(AFileOnTwoBricks, ADeallocateAsksForABatchATurn) {
  lose_second();
  std::optional<Status> answer;
  world.mds->ranges().deallocate({.client = kBob, .inode = file}, {0, kEnd + kGrainSize},
                                 [&](Status status) { answer = status; });
  EXPECT_FALSE(answer);
  for (int i = 0; i < 20 && !answer; ++i) turn();
  EXPECT_EQ(answer, Status::kDelay);
  EXPECT_LE(rows_of_a_turn, FileBricks::kExtentsPerTurn + kOthers);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
