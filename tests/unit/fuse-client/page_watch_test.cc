// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_watch.h"

#include <gtest/gtest.h>

#include "shared/nfs4/open_operations.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace std::chrono_literals;

class PageWatchTest : public testing::Test {
 protected:
  std::shared_ptr<Inode> open_file(uint64_t number) {
    auto file = std::make_shared<Inode>(nfs4::FileHandle(as_bytes(std::to_string(number))), number);
    file->begin_open();
    file->opened({}, nfs4::kShareAccessRead, {});
    EXPECT_FALSE(file->pages.outdated_by({1, 0, clock.now(), false}, clock.now()));
    return file;
  }
  std::shared_ptr<Inode> file_with_pages(uint64_t number) {
    auto file = open_file(number);
    file->pages.hand_out();
    watch.add(file);
    return file;
  }
  // As KernelPages does it.
  void drop(const std::shared_ptr<Inode>& file) {
    dropped.push_back(file->id);
    file->pages.begin_drop_in_doubt();
    file->pages.end_drop_in_doubt(clock.now());
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) {
      clock.advance(kPatience / PageWatch::kTurns);
      watch.turn();
    }
  }

  static constexpr Milliseconds kPatience = 3s;
  ManualClock clock;
  bool answers = true;
  Milliseconds takes = 0ms;
  std::vector<size_t> asked;  // files in each call
  std::vector<uint64_t> dropped;
  PageWatch watch{clock, kPatience,
                  [this](PageWatch::Files files, SteadyTime) {
                    asked.push_back(files.size());
                    const SteadyTime asked_at = clock.now();
                    clock.advance(takes);
                    for (const auto& file : files) {
                      if (answers) (void)file->pages.outdated_by({1, 0, asked_at, false}, clock.now());
                    }
                  },
                  [this](const std::shared_ptr<Inode>& file) { drop(file); }};
};

TEST_F(PageWatchTest, AsksTwiceInThatTimeAndNotMore) {
  const auto file = file_with_pages(1);
  turns(3);
  EXPECT_TRUE(asked.empty());
  turns(1);
  EXPECT_EQ(asked, std::vector<size_t>{1});
  turns(12);
  EXPECT_EQ(asked.size(), 4u);
  EXPECT_TRUE(dropped.empty());
}

TEST_F(PageWatchTest, OtherAnswersSpareTheQuestion) {
  const auto file = file_with_pages(1);
  for (int i = 0; i < 20; ++i) {
    turns(1);
    EXPECT_FALSE(file->pages.outdated_by({1, 0, clock.now(), false}, clock.now()));
  }
  EXPECT_TRUE(asked.empty());
}

TEST_F(PageWatchTest, WithoutAnAnswerPagesGoBeforeTheyAreTooOld) {
  const auto file = file_with_pages(1);
  answers = false;
  const SteadyTime begun = clock.now();
  while (dropped.empty()) turns(1);
  EXPECT_LT(clock.now() - begun, kPatience);
  EXPECT_FALSE(file->pages.handed_out());
  const size_t calls = asked.size();
  turns(20);
  EXPECT_EQ(asked.size(), calls) << "there is nothing to ask for";
  EXPECT_EQ(watch.size(), 0u);
}

TEST_F(PageWatchTest, ASilentServerHoldsNoFileUpForLong) {
  std::vector<std::shared_ptr<Inode>> files;
  for (uint64_t i = 0; i < 500; ++i) files.push_back(file_with_pages(i));
  answers = false;
  takes = kPatience / PageWatch::kTurns;
  const SteadyTime begun = clock.now();
  while (dropped.size() < files.size() && clock.now() - begun < 2 * kPatience) turns(1);
  EXPECT_EQ(dropped.size(), files.size());
  EXPECT_LE(clock.now() - begun, kPatience);
}

TEST_F(PageWatchTest, AsksForManyInFewCalls) {
  std::vector<std::shared_ptr<Inode>> files;
  for (uint64_t i = 0; i < 100; ++i) files.push_back(file_with_pages(i));
  turns(4);
  EXPECT_EQ(asked.size(), (100 + PageWatch::kFilesAtOnce - 1) / PageWatch::kFilesAtOnce);
}

TEST_F(PageWatchTest, OfTooManyTheOldestLoseTheirPages) {
  std::vector<std::shared_ptr<Inode>> files;
  for (uint64_t i = 0; i < PageWatch::kFilesMax + 3; ++i) files.push_back(file_with_pages(i));
  EXPECT_EQ(watch.size(), PageWatch::kFilesMax);
  EXPECT_EQ(dropped, (std::vector<uint64_t>{0, 1, 2}));
  files[0]->pages.hand_out();
  watch.add(files[0]);
  EXPECT_EQ(dropped.back(), 3u);
}

TEST_F(PageWatchTest, ClosedAndForgottenFilesAreOfNoConcern) {
  const auto closed = file_with_pages(1);
  auto forgotten = file_with_pages(2);
  watch.add(closed);
  EXPECT_EQ(watch.size(), 2u);
  EXPECT_TRUE(closed->release());
  closed->closed();
  forgotten.reset();
  turns(8);
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(watch.size(), 0u);
  // Opened again, with the pages it had.
  closed->begin_open();
  closed->opened({}, nfs4::kShareAccessRead, {});
  watch.add(closed);
  turns(1);
  EXPECT_EQ(asked.size(), 1u);
}

TEST_F(PageWatchTest, AtTheEndAllPagesGo) {
  const auto first = file_with_pages(1), second = file_with_pages(2);
  watch.drop_all();
  EXPECT_EQ(dropped, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(watch.size(), 0u);
}

TEST_F(PageWatchTest, ItsThreadAsksAndEnds) {
  const auto file = open_file(1);
  std::atomic<int> questions = 0;
  const SystemClock real;
  PageWatch running(real, 40ms, [&](PageWatch::Files, SteadyTime) { ++questions; }, [](const auto&) {});
  running.start();
  file->pages.hand_out();
  running.add(file);
  const auto until = real.now() + 20s;
  while (questions == 0 && real.now() < until) std::this_thread::sleep_for(1ms);
  EXPECT_GT(questions, 0);
  running.stop();
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
