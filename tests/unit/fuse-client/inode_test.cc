// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/inode.h"

#include <gtest/gtest.h>

#include <thread>

#include "fuse-client/inode_table.h"
#include "shared/nfs4/open_operations.h"
#include "tests/unit/fuse-client/inode_case.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace inode_case;

TEST_F(InodeTest, IsOpenedByItsNewestNameUntilThatLeadsElsewhere) {
  const auto directory = std::make_shared<Inode>(handle("d"), 2);
  inode.learn(attributes(1), start, timeouts, kNow);
  EXPECT_EQ(inode.name(), nullptr);
  EXPECT_FALSE(inode.name_is_lost());
  inode.named(directory, "a");
  const auto first = inode.name();
  inode.named(directory, "b");
  inode.lose_name(first);  // was found out before the kernel heard of the other
  ASSERT_NE(inode.name(), nullptr);
  EXPECT_EQ(inode.name()->name, "b");
  inode.lose_name(inode.name());
  EXPECT_EQ(inode.name(), nullptr);
  EXPECT_TRUE(inode.name_is_lost());
  inode.named(directory, "c");
  EXPECT_EQ(inode.name()->directory, directory);
  EXPECT_FALSE(inode.name_is_lost());
}

// A file of one link that is found by another name had been renamed: the kernel may still open it by the old one.
TEST_F(InodeTest, HasAnOldNameForAWhileWhenSomebodyElseHasRenamedIt) {
  const auto directory = std::make_shared<Inode>(handle("d"), 2);
  inode.learn(attributes(1), start, timeouts, kNow);
  inode.found_as(*directory, "a", start + 30s);
  inode.named(directory, "a");
  inode.found_as(*directory, "a", start + 30s);
  EXPECT_FALSE(inode.has_old_name(start));
  inode.named(directory, "b");  // by our own rename
  EXPECT_FALSE(inode.has_old_name(start));
  inode.found_as(*directory, "c", start + 30s);
  inode.named(directory, "c");
  EXPECT_TRUE(inode.has_old_name(start + 29s));
  EXPECT_FALSE(inode.has_old_name(start + 30s));
  auto linked = attributes(2);
  linked.status.st_nlink = 2;
  inode.learn(linked, start + 1s, timeouts, kNow);
  inode.found_as(*directory, "d", start + 60s);
  EXPECT_FALSE(inode.has_old_name(start + 31s)) << "both may be names of it";
}

// Nobody opens them, and directories that hold each other would never go.
TEST_F(InodeTest, ADirectoryHoldsNoName) {
  client::FileAttributes known = attributes(1);
  known.status.st_mode = S_IFDIR | 0755;
  inode.learn(known, start, timeouts, kNow);
  inode.named(std::make_shared<Inode>(handle("d"), 2), "a");
  EXPECT_EQ(inode.name(), nullptr);
}

TEST_F(InodeTest, AttributesAreBelievedLongerWhileNothingChanges) {
  EXPECT_EQ(inode.learn(attributes(1), start, timeouts, kNow), 3s);
  EXPECT_EQ(inode.learn(attributes(1), start + 1s, timeouts, kNow), 6s);
  EXPECT_EQ(inode.learn(attributes(1), start + 2s, timeouts, kNow), 12s);
  EXPECT_EQ(inode.learn(attributes(2), start + 3s, timeouts, kNow), 3s);
}

TEST_F(InodeTest, AnAnswerThatWasOvertakenIsDropped) {
  inode.learn(attributes(2, 20), start + 1s, timeouts, kNow);
  EXPECT_EQ(inode.learn(attributes(1, 10), start, timeouts, kNow), 0s);
  EXPECT_EQ(inode.believed(start + 2s, 7)->attributes.change, 2u);
}

TEST_F(InodeTest, AnAnswerThatWasOvertakenDoesNotMakeTheKnownOneCurrent) {
  inode.learn(attributes(2, 20), start + 1s, timeouts, kNow);
  inode.learn(attributes(1, 10), start, timeouts, Inode::Versions{.data = 8});
  EXPECT_FALSE(inode.believed(start + 2s, 8));
}

TEST_F(InodeTest, ATruncationThatWaitedAtTheServerIsNotForgottenForAnAnswerOfMeanwhile) {
  const Inode::Versions behind_it{.data = 8};
  inode.learn(attributes(1, 20), start + 1s, timeouts, kNow);
  EXPECT_EQ(inode.learn(attributes(2, 10), start, timeouts, behind_it), 0s);
  EXPECT_FALSE(inode.believed(start + 2s, 8));
  EXPECT_EQ(inode.last_known()->status.st_size, 10);
  // Answers in the other order: the old size is not believed either.
  inode.learn(attributes(1, 20), start + 1s, timeouts, kNow);
  EXPECT_FALSE(inode.believed(start + 2s, std::nullopt));
  inode.learn(attributes(2, 10), start + 2s, timeouts, behind_it);
  EXPECT_EQ(inode.believed(start + 3s, 8)->attributes.status.st_size, 10);
}

TEST_F(InodeTest, BeliefEndsWithTimeAndWithOwnWrites) {
  inode.learn(attributes(1), start, timeouts, kNow);
  EXPECT_TRUE(inode.believed(start + 2s, 7));
  EXPECT_FALSE(inode.believed(start + 2s, 8)) << "written through the server since";
  EXPECT_TRUE(inode.believed(start + 2s, std::nullopt));
  EXPECT_FALSE(inode.believed(start + 3s, 7));
  inode.expire();
  EXPECT_FALSE(inode.believed(start, 7));
}

TEST_F(InodeTest, PagesAreKeptUntilAnotherHostChangesTheFile) {
  const auto opens = [&](uint64_t change, SteadyTime asked_at, bool own) {
    inode.judge_pages({change, asked_at, asked_at + 1ms, own}, {});
    return inode.at_open(attributes(change), start).keep_pages;
  };
  EXPECT_FALSE(opens(1, start, false));
  EXPECT_TRUE(opens(1, start + 10ms, false));
  EXPECT_TRUE(opens(2, start + 20ms, true));
  EXPECT_FALSE(opens(3, start + 30ms, false));
  inode.doubt_pages();
  EXPECT_FALSE(opens(3, start + 40ms, false));
}

TEST_F(InodeTest, AWriteUnderThePagesWaitsForThemAndForThoseThatAreBeingDropped) {
  EXPECT_FALSE(inode.drop_pages());
  inode.pages_filled();
  EXPECT_TRUE(inode.drop_pages());
  EXPECT_TRUE(inode.drop_pages());
  inode.pages_dropped();
  EXPECT_TRUE(inode.drop_pages());
  inode.pages_dropped();
  inode.pages_dropped();
  EXPECT_FALSE(inode.drop_pages());
  inode.told_kernel({}, start);
  EXPECT_TRUE(inode.drop_pages());
  inode.pages_dropped();
}

TEST_F(InodeTest, AnOldSizeInTheKernelIsNoticedAtOpen) {
  EXPECT_FALSE(inode.at_open(attributes(1, 5), start).kernel_attributes_old);
  inode.told_kernel(attributes(1, 5), start);
  EXPECT_FALSE(inode.at_open(attributes(1, 5), start).kernel_attributes_old);
  EXPECT_TRUE(inode.at_open(attributes(2, 6), start).kernel_attributes_old);
}

// An own truncation was answered beside the OPEN: what the kernel had before it may show still.
TEST_F(InodeTest, WhatTheKernelWasToldAMomentAgoMayNotHaveReachedIt) {
  inode.told_kernel(attributes(1, 5), start);
  EXPECT_FALSE(inode.at_open(attributes(1, 5), start).kernel_attributes_old) << "it had none before";
  inode.told_kernel(attributes(2, 6), start + 1s);
  EXPECT_TRUE(inode.at_open(attributes(2, 6), start + 999ms).kernel_attributes_old);
  EXPECT_TRUE(inode.at_open(attributes(2, 6), start + 1s + Inode::kOnItsWay / 2).kernel_attributes_old);
  EXPECT_FALSE(inode.at_open(attributes(2, 6), start + 1s + Inode::kOnItsWay).kernel_attributes_old);
  inode.told_kernel(attributes(2, 6), start + 2s);
  EXPECT_FALSE(inode.at_open(attributes(2, 6), start + 2s).kernel_attributes_old) << "the same again";
}

TEST_F(InodeTest, OpensShareOneStateidAndTheLastReleaseClosesIt) {
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {10, 10, {}});
  EXPECT_FALSE(inode.open_state(true));
  inode.begin_open();
  inode.opened(stateid(1, 2), nfs4::kShareAccessWrite, {20, 20, {}});
  EXPECT_EQ(inode.open_state(true)->credential.user, 20u);
  EXPECT_EQ(inode.open_state(false)->credential.user, 10u);
  EXPECT_EQ(inode.to_reclaim()->stateid.seqid, 2u);
  EXPECT_EQ(inode.open_state(false)->stateid.seqid, 0u);
  EXPECT_FALSE(inode.release());
  ASSERT_TRUE(inode.release());
  inode.settled();
  const auto close = inode.begin_close();
  ASSERT_TRUE(close);
  EXPECT_EQ(close->open->stateid, stateid(1, 2));
  inode.closed();
  EXPECT_FALSE(inode.open_state(false));
}

TEST_F(InodeTest, ANameThatIsNotThereIsBelievedForTheLeastTimeWhileItsDirectoryIsAsItWas) {
  const auto lacks = [&](SteadyTime now) { return inode.lacks_name("a", now, timeouts, {}); };
  EXPECT_FALSE(lacks(start));
  inode.name_is_absent("a", 1);
  EXPECT_FALSE(lacks(start));  // nothing is known of the directory
  inode.learn(attributes(1), start, timeouts, kNow);
  EXPECT_TRUE(lacks(start + 2999ms));
  EXPECT_FALSE(lacks(start + 3s));
  inode.learn(attributes(1), start + 4s, timeouts, kNow);
  EXPECT_TRUE(lacks(start + 5s));
  EXPECT_FALSE(inode.lacks_name("a", start + 5s, {0s, 60s, 30s, 60s}, {}));
  EXPECT_FALSE(inode.lacks_name("a", start + 5s, {3s, 60s, 0s, 60s}, {}));
  inode.learn(attributes(2), start + 5s, timeouts, kNow);
  EXPECT_FALSE(lacks(start + 5s));
  inode.names_complete({"b"}, 2);
  EXPECT_TRUE(lacks(start + 5s));
  inode.forget_names();
  EXPECT_FALSE(lacks(start + 5s));
}

TEST_F(InodeTest, TheKernelKeepsAListingForTheLeastTimeWhileTheDirectoryIsAsItWas) {
  const auto keeps = [&](SteadyTime now) { return inode.keeps_listing(now, timeouts, {}); };
  inode.learn(attributes(1), start, timeouts, kNow);
  EXPECT_FALSE(keeps(start));
  inode.listed(1, start);
  EXPECT_TRUE(keeps(start + 2999ms));
  EXPECT_FALSE(keeps(start + 3s));
  inode.learn(attributes(1), start + 2s, timeouts, kNow);
  EXPECT_FALSE(keeps(start + 3s)) << "the attributes of its files are as old as they were";
  inode.listed(1, start + 2s);
  EXPECT_TRUE(keeps(start + 3s));
  EXPECT_FALSE(inode.listing_is_old());
  inode.learn(attributes(2), start + 3s, timeouts, kNow);
  EXPECT_FALSE(keeps(start + 3s));
  EXPECT_TRUE(inode.listing_is_old());
  EXPECT_FALSE(inode.listing_is_old());
  inode.listed(2, start + 3s);
  inode.forget_listing();
  EXPECT_FALSE(keeps(start + 3s));
}

// A name changes its directory, and the file that has lost it: an answer to what was asked before is overtaken.
TEST_F(InodeTest, WhatANameHasChangedIsNotBelievedAsItWas) {
  const auto is_believed = [&] { return inode.believed(start + 1ms, std::nullopt).has_value(); };
  const auto learn = [&](uint64_t change, SteadyTime asked_at, uint64_t name_changes) {
    return inode.learn(attributes(change), asked_at, timeouts, Inode::Versions{0, name_changes});
  };
  EXPECT_GT(learn(1, start, 0), 0ms);
  EXPECT_TRUE(is_believed());
  EXPECT_TRUE(inode.name_changed(0, 5));  // 1 to 4 were elsewhere
  EXPECT_FALSE(is_believed());
  EXPECT_EQ(learn(1, start + 1us, 4), 0ms);
  EXPECT_FALSE(is_believed());
  EXPECT_GT(learn(2, start + 2us, 5), 0ms);
  EXPECT_TRUE(is_believed());
  // Two at once: what the first one's answer says may be from before the other.
  EXPECT_TRUE(inode.name_changed(5, 6));
  EXPECT_FALSE(inode.name_changed(5, 7));
  EXPECT_EQ(learn(3, start + 3us, 6), 0ms);
  EXPECT_GT(learn(4, start + 4us, 7), 0ms);
}

// Which of the files with several names has lost one is not always known.
TEST_F(InodeTest, AFileWithSeveralLinksIsNotBelievedSinceOneWasLostSomewhere) {
  const auto is_believed = [&](uint64_t lost) {
    return inode.believed(start + 1ms, std::nullopt, lost).has_value();
  };
  client::FileAttributes known = attributes(1);
  known.status.st_nlink = 2;
  inode.learn(known, start, timeouts, Inode::Versions{0, 4});
  EXPECT_TRUE(is_believed(4));
  EXPECT_FALSE(is_believed(5));
  known.status.st_nlink = 1;
  inode.learn(known, start, timeouts, Inode::Versions{0, 4});
  EXPECT_TRUE(is_believed(5));
  // Of a directory that is the number of those in it.
  known.status.st_nlink = 5;
  known.status.st_mode = S_IFDIR | 0755;
  inode.learn(known, start, timeouts, Inode::Versions{0, 4});
  EXPECT_TRUE(is_believed(5));
}

// A server checks reclaims: none may ask for what only the other user had.
TEST_F(InodeTest, AReclaimAsksForEachUserWhatHeHad) {
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {10, 10, {}});
  inode.begin_open();
  inode.opened(stateid(1, 2), nfs4::kShareAccessWrite, {20, 20, {}});
  const auto open = inode.to_reclaim();
  ASSERT_EQ(open->parts.size(), 2u);
  EXPECT_EQ(open->parts[0].share_access, nfs4::kShareAccessRead);
  EXPECT_EQ(open->parts[0].credential.user, 10u);
  EXPECT_EQ(open->parts[1].share_access, nfs4::kShareAccessWrite);
  EXPECT_EQ(open->parts[1].credential.user, 20u);
  inode.begin_open();
  inode.opened(stateid(1, 3), nfs4::kShareAccessBoth, {20, 20, {}});
  ASSERT_EQ(inode.to_reclaim()->parts.size(), 1u);
  EXPECT_EQ(inode.to_reclaim()->parts[0].share_access, nfs4::kShareAccessBoth);
}

TEST_F(InodeTest, AnswersOfParallelOpensMayComeInAnyOrder) {
  inode.begin_open();
  inode.begin_open();
  inode.opened(stateid(1, 2), nfs4::kShareAccessRead, {});
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {});
  EXPECT_EQ(inode.to_reclaim()->stateid.seqid, 2u);
  EXPECT_EQ(inode.open_state(false)->stateid.seqid, 0u);
}

TEST_F(InodeTest, AnOpenUnderWayKeepsTheFileFromBeingClosed) {
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {});
  inode.begin_open();
  EXPECT_FALSE(inode.release());
  inode.begin_open();
  EXPECT_FALSE(inode.open_failed());
  // It has failed too, and is the last.
  ASSERT_TRUE(inode.open_failed());
  inode.settled();
  const auto close = inode.begin_close();
  ASSERT_TRUE(close);
  EXPECT_EQ(close->open->stateid, stateid(1, 1));
  inode.closed();
}

TEST_F(InodeTest, AttributesOfAnOpenFileAreNotBelievedEverLonger) {
  inode.learn(attributes(1), start, timeouts, kNow);
  EXPECT_EQ(inode.learn(attributes(1), start + 4s, timeouts, kNow), 2 * timeouts.file_min);
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {});
  EXPECT_EQ(inode.learn(attributes(1), start + 8s, timeouts, kNow), timeouts.file_min);
  EXPECT_EQ(inode.learn(attributes(1), start + 12s, timeouts, kNow), timeouts.file_min);
  ASSERT_TRUE(inode.release());
  inode.settled();
  ASSERT_TRUE(inode.begin_close());
  inode.closed();
  EXPECT_EQ(inode.learn(attributes(1), start + 16s, timeouts, kNow), 2 * timeouts.file_min);
}

TEST_F(InodeTest, AnOpenThatFailsWithoutAnyOtherClosesNothing) {
  inode.begin_open();
  EXPECT_FALSE(inode.open_failed());
}

TEST_F(InodeTest, AnOpenWaitsForACloseUnderWay) {
  for (const bool settling : {true, false}) {
    inode.begin_open();
    inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {});
    ASSERT_TRUE(inode.release());
    if (!settling) {
      inode.settled();
      ASSERT_TRUE(inode.begin_close());
    }
    std::atomic<bool> begun = false;
    std::thread opener([&] {
      inode.begin_open();
      begun = true;
    });
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(begun);
    settling ? (void)inode.settled() : inode.closed();
    opener.join();
    EXPECT_TRUE(begun);
    EXPECT_EQ(inode.open_failed(), settling);
    if (settling) inode.settled();
  }
}

TEST_F(InodeTest, WhatIsOpenedAgainBeforeItsCloseStaysOpen) {
  inode.begin_open();
  inode.opened(stateid(1, 1), nfs4::kShareAccessRead, {});
  ASSERT_TRUE(inode.release());
  inode.settled();
  EXPECT_TRUE(inode.open_state(false));  // for what goes on behind the close
  inode.begin_open();
  EXPECT_FALSE(inode.begin_close());
  inode.opened(stateid(1, 2), nfs4::kShareAccessRead, {});
  EXPECT_FALSE(inode.begin_close());
  ASSERT_TRUE(inode.release());
  inode.settled();
  EXPECT_EQ(inode.begin_close()->open->stateid, stateid(1, 2));
  EXPECT_FALSE(inode.begin_close());  // added twice
  inode.closed();
  EXPECT_FALSE(inode.begin_close());
}

TEST_F(InodeTest, AWriteByAUserTakesSetUserIdAway) {
  client::FileAttributes file = attributes(1);
  inode.learn(file, start, timeouts, kNow);
  EXPECT_FALSE(inode.mode_without_privileges());
  file.status.st_mode = S_IFREG | 06755;
  inode.learn(file, start + 1s, timeouts, kNow);
  EXPECT_EQ(inode.mode_without_privileges(), mode_t{0755});
}

TEST(InodeTable, TheSameHandleIsTheSameInodeUntilForgotten) {
  InodeTable table;
  table.set_root(std::make_shared<Inode>(handle("root"), 1));
  const auto one = table.look_up(handle("a"), 2);
  EXPECT_EQ(table.look_up(handle("a"), 2), one);
  EXPECT_EQ(table.look_up(handle("root"), 1), table.root());
  const uint64_t node = one->node;
  EXPECT_EQ(table.at(node), one);
  table.forget(node, 1);
  EXPECT_NE(table.find(handle("a")), nullptr);
  table.forget(node, 1);
  EXPECT_EQ(table.find(handle("a")), nullptr);
}

TEST(InodeTable, FindsAFileByItsNewestName) {
  InodeTable table;
  table.set_root(std::make_shared<Inode>(handle("root"), 1));
  const auto one = table.look_up(handle("a"), 2), other = table.look_up(handle("b"), 3);
  table.named(*one, table.root(), "first");
  EXPECT_EQ(table.find(*table.root(), "first"), one);
  EXPECT_EQ(table.find(*other, "first"), nullptr);
  table.named(*one, table.root(), "second");
  EXPECT_EQ(table.find(*table.root(), "first"), nullptr);
  table.named(*other, table.root(), "second");
  table.named(*one, other, "third");
  EXPECT_EQ(table.find(*table.root(), "second"), other);
  table.forget(other->node, 1);
  EXPECT_EQ(table.find(*table.root(), "second"), nullptr);
}

TEST(InodeTable, AForgottenFileKeepsItsNumberAndNoOtherFileGetsIt) {
  InodeTable table(17);
  table.set_root(std::make_shared<Inode>(handle("root"), 1));
  const uint64_t node = table.look_up(handle("a"), 2)->node;
  EXPECT_EQ(table.handle_of(node), handle("a"));
  table.forget(node, 1);
  EXPECT_EQ(table.handle_of(node), handle("a"));
  EXPECT_NE(table.look_up(handle("b"), 3)->node, node);
  EXPECT_FALSE(table.handle_of(node + 100));
  const auto again = table.look_up(handle("a"), 2);
  EXPECT_EQ(again->node, node);
  EXPECT_EQ(table.at(node), again);
  EXPECT_EQ(table.generation_of(*again), 17u);
  EXPECT_EQ(table.generation_of(*table.root()), 0u);
  EXPECT_EQ(table.handle_of(kRootNode), handle("root"));
}

constexpr Inode::Versions kAnswered{.data = 0};

// A table that keeps, and a file that the kernel has looked up.
class KeptInodeTest : public InodeTest {
 protected:
  KeptInodeTest() { table.set_root(std::make_shared<Inode>(handle("root"), 1)); }
  std::shared_ptr<Inode> look_up(std::string_view name, uint64_t change = 1) {
    const auto made = table.look_up(handle(name), 2);
    made->learn(attributes(change), start, timeouts, kAnswered);
    table.named(*made, table.root(), name);
    return made;
  }

  InodeTable table{17, 4 * Inode(handle("x"), 1).memory()};
};

TEST_F(KeptInodeTest, WhatIsBelievedOutlivesTheKernelsMemory) {
  const auto file = look_up("a");
  table.forget(file->node, 1);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.kept().inodes, 1u);
  EXPECT_TRUE(table.take_gone().empty());
  EXPECT_EQ(table.find(*table.root(), "a"), file);
  EXPECT_EQ(table.find(file->node), file);
  EXPECT_TRUE(file->believed(start + 1s, std::nullopt));
  EXPECT_EQ(table.look_up(handle("a"), 2), file);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.kept().inodes, 0u);
  EXPECT_EQ(table.kept().bytes, 0u);
}

TEST_F(KeptInodeTest, TheOneForgottenFirstGoesAndKeepsItsNumber) {
  const uint64_t first = look_up("a")->node;
  for (const char* name : {"b", "c", "d", "e"}) {
    const auto file = look_up(name);
    table.forget(file->node, 1);
  }
  table.forget(first, 1);
  const auto gone = table.take_gone();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0]->handle, handle("b"));
  EXPECT_EQ(table.find(handle("b")), nullptr);
  EXPECT_EQ(table.find(*table.root(), "b"), nullptr);
  EXPECT_EQ(table.handle_of(gone[0]->node), handle("b"));
  EXPECT_EQ(table.look_up(handle("b"), 2)->node, gone[0]->node);
  EXPECT_NE(table.find(handle("a")), nullptr);
  EXPECT_EQ(table.forgotten(), 1u);
}

TEST_F(KeptInodeTest, NothingIsKeptOfWhichNothingIsBelieved) {
  const auto expired = look_up("a"), removed = look_up("b"), unknown = table.look_up(handle("c"), 3);
  expired->expire();
  removed->name_removed();
  for (const auto& inode : {expired, removed, unknown}) table.forget(inode->node, 1);
  EXPECT_EQ(table.kept().inodes, 0u);
  EXPECT_EQ(table.take_gone().size(), 3u);
}

TEST_F(KeptInodeTest, AListedFileIsKeptThoughTheKernelDoesNotKnowIt) {
  const auto file = table.keep(handle("a"), 2);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.look_up(handle("a"), 2), file);
  EXPECT_EQ(table.keep(handle("a"), 2), file);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.kept().inodes, 0u);
  EXPECT_EQ(table.keep(handle("root"), 1), table.root());
  InodeTable none;
  none.set_root(table.root());
  EXPECT_EQ(none.keep(handle("a"), 2), nullptr);
}

TEST_F(KeptInodeTest, TheKernelsViewOfItsPagesIsForgottenWithThem) {
  const auto file = look_up("a");
  client::FileAttributes told = attributes(1);
  file->told_kernel(told, start);
  file->at_open(told, start);
  told = attributes(2);
  told.status.st_mtim = {.tv_sec = 100, .tv_nsec = 0};
  file->judge_pages({1, start, start, false}, {.tv_sec = 50, .tv_nsec = 0});
  file->judge_pages({2, start + 1s, start + 1s, true}, told.status.st_mtim);  // an own write: the pages stay
  file->learn(told, start + 1s, timeouts, kAnswered);
  EXPECT_TRUE(file->page_time_instead_of(told.status.st_mtim, 10, PageAsker::kName));
  table.forget(file->node, 1);
  ASSERT_EQ(table.look_up(handle("a"), 2), file);
  EXPECT_FALSE(file->page_time_instead_of(told.status.st_mtim, 10, PageAsker::kName));
  EXPECT_FALSE(file->has_kept_pages());
  EXPECT_FALSE(file->at_open(told, start + 1s).kernel_attributes_old);
}

TEST_F(InodeTest, AFoundNameIsBelievedAsLongAsTheKernelMay) {
  client::FileAttributes directory = attributes(5);
  directory.status.st_mode = S_IFDIR | 0755;
  inode.learn(directory, start, timeouts, kNow);
  inode.name_is_found("a", 5);
  const AttributeTimeouts times{.file_min = 3s, .file_max = 60s, .directory_min = 30s, .directory_max = 60s};
  EXPECT_EQ(inode.found_name_at("a", start + 29s, times, {}), start);
  EXPECT_FALSE(inode.found_name_at("a", start + 30s, times, {}));
  EXPECT_FALSE(inode.found_name_at("b", start, times, {}));
  inode.learn(directory, start + 20s, timeouts, kNow);  // it was so then, too
  EXPECT_EQ(inode.found_name_at("a", start + 49s, times, {}), start + 20s);
  directory.change = 6;
  inode.learn(directory, start + 21s, timeouts, kNow);
  EXPECT_FALSE(inode.found_name_at("a", start + 21s, times, {}));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
