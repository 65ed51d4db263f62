// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quota_trees.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/quota_world.h"

namespace pnfsrdma::mds {
namespace {

class Trees : public QuotaWorld {
 protected:
  Trees() { begin(); }
  QuotaTree begin_tree(InodeId directory) { return names_->begin_tree(directory, "/a/tree").value(); }
  // All that is in the directory, too.
  QuotaTree make_tree(InodeId directory) {
    const QuotaTree tree = begin_tree(directory);
    mark(directory, tree.number);
    EXPECT_EQ(status(names_->complete_tree(tree.number)), Status::kOk);
    return tree;
  }
  void mark(InodeId directory, TreeNumber tree) {
    const DirectoryPage page = names_->read_directory(directory, 0, 1000).value();
    for (const DirectoryEntry& entry : page.entries) {
      if (*names_->place_in_tree(entry.inode, tree) && entry.type == FileType::kDirectory)
        mark(entry.inode, tree);
    }
  }
  TreeNumber tree_of(InodeId inode) { return quotas().trees().tree_of(*names_->get(inode).value()); }
};

TEST_P(Trees, ADirectoryWithAllThatIsInItCountsOnce) {
  const InodeId top = make_directory("top");
  const InodeId below = make_directory("below", top);
  give(make(below, "file", 7, 8), kGrainSize);
  make(kRootInode, "beside");
  const QuotaTree made = make_tree(top);
  EXPECT_EQ(usage(tree(made)).inodes.used, 3U);
  EXPECT_EQ(usage(tree(made)).space.used, kGrainSize);
  give(make(below, "later", 9, 9), 2 * kGrainSize);
  EXPECT_EQ(usage(tree(made)).inodes.used, 4U);
  EXPECT_EQ(usage(tree(made)).space.used, 3 * kGrainSize);
  restart();
  EXPECT_EQ(quotas().trees().find(made.number)->root, top);
  EXPECT_TRUE(quotas().trees().find(made.number)->complete);
  EXPECT_EQ(tree_of(id_of("later", below)), made.number);
}

TEST_P(Trees, TheCheckerFindsWhatIsInATreeAndDoesNotCountForIt) {
  const InodeId top = make_directory("top");
  const InodeId below = make_directory("below", top);
  const InodeId file = make(below, "file", 7, 8);
  const InodeId outside = make_directory("outside");
  const QuotaTree made = make_tree(top);
  EXPECT_TRUE(check_namespace(*store_)->consistent());
  const auto problems_with = [&](InodeId id, TreeNumber number) {
    Inode changed = *names_->get(id).value();
    const Inode before = changed;
    changed.tree = number;
    Batch batch;
    put_value(batch, number_key(kInodeTag, id), changed);
    EXPECT_TRUE(store_->commit(batch, CommitKind::kNamespace));
    const auto problems = check_namespace(*store_)->problems;
    Batch back;
    put_value(back, number_key(kInodeTag, id), before);
    EXPECT_TRUE(store_->commit(back, CommitKind::kNamespace));
    return std::ranges::count_if(problems, [](const std::string& problem) {
      return problem.find("not counted for the quota tree that it is in") != std::string::npos;
    });
  };
  EXPECT_EQ(problems_with(file, {}), 1);
  EXPECT_EQ(problems_with(file, made.number), 0);
  EXPECT_EQ(problems_with(below, {}), 1) << "its file may have another name elsewhere";
  EXPECT_EQ(problems_with(outside, made.number), 1);
}

TEST_P(Trees, ItsLimitHoldsForEverybodyOnceItIsComplete) {
  const InodeId top = make_directory("top");
  const QuotaTree made = begin_tree(top);
  limit(tree(made), {.space = {.hard = kGrainSize}, .inodes = {.hard = 2}});
  const InodeId file = make(top, "one", 7, 8);
  make(top, "two", 0, 0);
  EXPECT_EQ(give_status(file, 4 * kGrainSize), Status::kOk);
  EXPECT_EQ(quotas().tree_space(*names_->get(file).value()).value(), std::nullopt);
  ASSERT_EQ(status(names_->complete_tree(made.number)), Status::kOk);
  EXPECT_EQ(status(create("three", 0, 0, top)), Status::kDQuot);
  EXPECT_EQ(give_status(file, kGrainSize), Status::kDQuot);
  EXPECT_EQ(status(create("elsewhere", 0, 0)), Status::kOk);
  const auto room = quotas().tree_space(*names_->get(file).value()).value();
  EXPECT_EQ(room->total, kGrainSize);
  EXPECT_EQ(room->left, 0U);
  EXPECT_EQ(quotas().tree_inodes(*names_->get(top).value()).value()->total, 2U);
  EXPECT_EQ(quotas().tree_space(*names_->get(kRootInode).value()).value(), std::nullopt);
}

TEST_P(Trees, NothingComesOrGoesByName) {
  const InodeId top = make_directory("top");
  const InodeId below = make_directory("below", top);
  make(top, "inside");
  make(kRootInode, "outside");
  make_directory("directory");
  make_tree(top);
  EXPECT_EQ(status(names_->rename(kRootInode, "outside", top, "outside")), Status::kXDev);
  EXPECT_EQ(status(names_->rename(kRootInode, "directory", below, "directory")), Status::kXDev);
  EXPECT_EQ(status(names_->rename(top, "inside", kRootInode, "inside")), Status::kXDev);
  EXPECT_EQ(status(names_->exchange(top, "inside", kRootInode, "outside")), Status::kXDev);
  EXPECT_EQ(status(names_->link(id_of("outside"), top, "link")), Status::kXDev);
  EXPECT_EQ(status(names_->link(id_of("inside", top), kRootInode, "link")), Status::kXDev);
  EXPECT_EQ(status(names_->rename(top, "inside", below, "moved")), Status::kOk);
  EXPECT_EQ(status(names_->link(id_of("moved", below), top, "link")), Status::kOk);
}

TEST_P(Trees, TheDirectoryItselfGoesWhereThereIsNoTree) {
  const InodeId top = make_directory("top");
  const InodeId other = make_directory("other");
  const InodeId plain = make_directory("plain");
  const QuotaTree made = make_tree(top);
  make_tree(other);
  EXPECT_EQ(status(names_->rename(kRootInode, "top", other, "top")), Status::kXDev);
  EXPECT_EQ(status(names_->rename(kRootInode, "top", plain, "renamed")), Status::kOk);
  EXPECT_EQ(tree_of(id_of("renamed", plain)), made.number);
  EXPECT_EQ(status(names_->exchange(plain, "renamed", kRootInode, "other")), Status::kOk) << "two roots";
}

TEST_P(Trees, WhatIsNotMarkedYetStaysWhereItIs) {
  const InodeId top = make_directory("top");
  const InodeId first = make_directory("first", top);
  make(top, "second");
  const QuotaTree made = begin_tree(top);
  ASSERT_TRUE(*names_->place_in_tree(first, made.number));
  EXPECT_EQ(status(names_->rename(top, "second", first, "second")), Status::kDelay)
      << "it will have its number";
  EXPECT_EQ(status(names_->link(id_of("second", top), first, "second")), Status::kDelay);
  EXPECT_EQ(status(names_->rename(top, "second", top, "renamed")), Status::kOk) << "an editor's backup";
  EXPECT_EQ(tree_of(make(first, "new")), made.number);
  EXPECT_EQ(status(names_->rename(first, "new", kRootInode, "new")), Status::kDelay)
      << "out of the tree, or to where the walk has not been";
  mark(top, made.number);
  ASSERT_EQ(status(names_->complete_tree(made.number)), Status::kOk);
  EXPECT_EQ(status(names_->rename(first, "new", kRootInode, "new")), Status::kXDev);
  EXPECT_EQ(status(names_->rename(top, "renamed", first, "second")), Status::kOk);
}

TEST_P(Trees, AnExchangeInADirectoryIsThatOfWhoeverIsThere) {
  const InodeId top = make_directory("top");
  const InodeId home = make_directory("home");
  const InodeId file = make(top, "inside");
  make(home, "neighbour");
  names_->link(file, home, "outside").value();
  const QuotaTree made = begin_tree(top);
  ASSERT_TRUE(*names_->place_in_tree(file, made.number));
  EXPECT_EQ(status(names_->exchange(home, "outside", home, "neighbour")), Status::kDelay)
      << "the walk would meet one of them only";
  ASSERT_EQ(status(names_->complete_tree(made.number)), Status::kOk);
  EXPECT_EQ(status(names_->exchange(home, "outside", home, "neighbour")), Status::kOk);
  EXPECT_EQ(id_of("neighbour", home), file);
  EXPECT_EQ(status(names_->exchange(home, "neighbour", kRootInode, "top")), Status::kXDev);
}

TEST_P(Trees, NoDirectoryGetsAnotherParentWhileOneIsMarked) {
  const InodeId top = make_directory("top");
  const InodeId first = make_directory("first", top);
  const InodeId other = make_directory("other");
  make_directory("child", first);
  make_directory("stranger", other);
  const QuotaTree made = begin_tree(top);
  mark(top, made.number);
  EXPECT_EQ(status(names_->rename(first, "child", top, "child")), Status::kDelay)
      << "the walk may have been there";
  EXPECT_EQ(status(names_->rename(other, "stranger", top, "stranger")), Status::kDelay)
      << "it may have a tree in it";
  EXPECT_EQ(status(names_->exchange(first, "child", other, "stranger")), Status::kDelay);
  EXPECT_EQ(status(names_->rename(first, "child", first, "renamed")), Status::kOk);
  ASSERT_EQ(status(names_->complete_tree(made.number)), Status::kOk);
  EXPECT_EQ(status(names_->rename(first, "renamed", top, "child")), Status::kOk);
  EXPECT_EQ(status(names_->rename(other, "stranger", top, "stranger")), Status::kXDev);
}

TEST_P(Trees, AFileWithNamesElsewhereIsRenamedThere) {
  const InodeId top = make_directory("top");
  const InodeId home = make_directory("home");
  const InodeId file = make(top, "inside");
  names_->link(file, home, "outside").value();
  make_tree(top);
  EXPECT_EQ(status(names_->rename(home, "outside", home, "renamed")), Status::kOk);
  EXPECT_EQ(status(names_->link(file, home, "another")), Status::kXDev);
}

TEST_P(Trees, TheFormatOfQuotasIsNotLoweredByAnAcl) {
  names_
      ->update(make(kRootInode, "file"), {.access_acl = PosixAcl::of({{nfs4::PosixAceTag::kUserObject, 7, 0},
                                                                      {nfs4::PosixAceTag::kUser, 7, 5},
                                                                      {nfs4::PosixAceTag::kGroupObject, 5, 0},
                                                                      {nfs4::PosixAceTag::kMask, 7, 0},
                                                                      {nfs4::PosixAceTag::kOther, 0, 0}})
                                                            .value()})
      .value();
  EXPECT_EQ(stored_format(), kFormatQuotas);
}

TEST_P(Trees, ThereIsNoneInAnother) {
  const InodeId top = make_directory("top");
  const InodeId middle = make_directory("middle", top);
  const InodeId bottom = make_directory("bottom", middle);
  begin_tree(middle);
  EXPECT_EQ(status(names_->begin_tree(middle, "")), Status::kExist);
  EXPECT_EQ(status(names_->begin_tree(top, "")), Status::kNotEmpty);
  EXPECT_EQ(status(names_->begin_tree(bottom, "")), Status::kNotEmpty) << "even while it is not marked";
  EXPECT_EQ(status(names_->begin_tree(kRootInode, "")), Status::kNotEmpty);
  EXPECT_EQ(status(names_->begin_tree(make(kRootInode, "file"), "")), Status::kNotDir);
  EXPECT_EQ(quotas().trees().all().size(), 1U);
}

TEST_P(Trees, ItGoesWithItsDirectory) {
  const InodeId top = make_directory("top");
  const QuotaTree made = make_tree(top);
  limit(tree(made), {.space = {}, .inodes = {.hard = 5}});
  names_->remove(kRootInode, "top").value();
  EXPECT_EQ(quotas().trees().find(made.number), nullptr);
  EXPECT_TRUE(quotas().limits().empty());
  EXPECT_TRUE(usage(tree(made)).empty());
  restart();
  EXPECT_TRUE(quotas().trees().all().empty());
  EXPECT_TRUE(quotas().limits().empty());
}

TEST_P(Trees, EndedItLeavesFilesInNoTreeAndItsNumberIsNotGivenAgain) {
  const InodeId top = make_directory("top");
  const InodeId file = make(top, "file");
  const QuotaTree made = make_tree(top);
  ASSERT_EQ(status(names_->end_tree(made.number)), Status::kOk);
  EXPECT_EQ(tree_of(file).value, 0U);
  EXPECT_EQ(status(names_->rename(top, "file", kRootInode, "file")), Status::kOk);
  EXPECT_EQ(status(names_->end_tree(made.number)), Status::kNoEnt);
  restart();
  const QuotaTree again = make_tree(top);
  EXPECT_GT(again.number, made.number);
  EXPECT_EQ(usage(tree(again)).inodes.used, 1U);
}

TEST_P(Trees, ThereAreSoManyAtMost) {
  for (size_t i = 0; i < QuotaTrees::kTreesMax; ++i) begin_tree(make_directory(std::to_string(i)));
  EXPECT_EQ(status(names_->begin_tree(make_directory("one more"), "")), Status::kMLink);
}

PNFSRDMA_OVER_BOTH_ENGINES(Trees);

// Whatever is done in whatever order, and wherever it stops, the counts are what the inodes add up to.
class AnyChanges : public QuotaWorld {
 protected:
  uint64_t any(uint64_t of) { return random_.next_u64() % of; }
  InodeId any_directory() {
    InodeId at = kRootInode;
    for (uint64_t depth = any(4); depth > 0; --depth) {
      const auto inside = names_->read_directory(at, 0, 100).value().entries;
      if (inside.empty()) break;
      const DirectoryEntry& entry = inside[any(inside.size())];
      if (entry.type == FileType::kDirectory) at = entry.inode;
    }
    return at;
  }
  std::string any_name() { return std::string(1, static_cast<char>('a' + any(5))); }
  void change_file(const InodePointer& file) {
    if (!file->is_regular()) return;
    if (any(3) == 0) return take(file->id);
    give_status(file->id, (1 + any(3)) * kGrainSize);
  }
  void change_tree() {
    const auto& trees = quotas().trees().all();
    if (trees.empty() || any(3) == 0) {
      static_cast<void>(names_->begin_tree(any_directory(), "/a"));
    } else if (any(4) == 0) {
      static_cast<void>(names_->end_tree(trees.begin()->first));
    } else {
      const QuotaTree tree = trees.rbegin()->second;
      const bool all = any(2) == 0;
      place_below(tree.root, tree.number, all);
      if (all) {
        EXPECT_TRUE(names_->complete_tree(tree.number));
      }
    }
  }
  // What is in it, or some of that, from above: a walk that is not over.
  void place_below(InodeId directory, TreeNumber tree, bool all) {
    const auto page = names_->read_directory(directory, 0, 100).value();
    for (const DirectoryEntry& entry : page.entries) {
      if (!all && any(3) == 0) continue;
      EXPECT_TRUE(names_->place_in_tree(entry.inode, tree));
      if (entry.type == FileType::kDirectory) place_below(entry.inode, tree, all);
    }
  }
  void change_limits() {
    const QuotaId id{static_cast<QuotaKind>(1 + any(2)), any(4)};
    limit(id,
          {.space = {.soft = any(4) * kGrainSize, .hard = any(8) * kGrainSize}, .inodes = {.hard = any(8)}});
  }
  void step() {
    const InodeId here = any_directory();
    const InodeId there = any_directory();
    const auto owner = static_cast<uint32_t>(any(4));
    switch (any(12)) {
      case 0:
      case 1:
        static_cast<void>(create(any_name(), owner, owner, here, FileType::kDirectory));
        break;
      case 2:
      case 3:
        static_cast<void>(create(any_name(), owner, static_cast<uint32_t>(any(4)), here));
        break;
      case 4:
        if (const auto removed = names_->remove(here, any_name()); removed && removed->orphaned) {
          take(removed->inode->id);
          names_->destroy(removed->inode->id).value();
        }
        break;
      case 5:
        rename(here, there);
        break;
      case 6:
        static_cast<void>(names_->exchange(here, any_name(), there, any_name()));
        break;
      case 7:
        if (const auto found = names_->lookup(here, any_name())) {
          static_cast<void>(names_->link((*found)->id, there, any_name()));
          change_file(*found);
        }
        break;
      case 8:
        if (const auto found = names_->lookup(here, any_name()))
          static_cast<void>(names_->update((*found)->id, {.uid = owner, .gid = owner}));
        break;
      case 9:
        change_tree();
        break;
      case 10:
        change_limits();
        break;
      default:
        if (quotas().on() && !quotas().counted()) count_slice(2);
        if (any(10) == 0) {
          ASSERT_TRUE(quotas().begin());
        }
    }
    clock_.advance(Milliseconds(1000));
  }
  void rename(InodeId here, InodeId there) {
    const auto renamed = names_->rename(here, any_name(), there, any_name());
    if (!renamed || !renamed->replaced || !renamed->replaced->orphaned) return;
    take(renamed->replaced->inode->id);
    names_->destroy(renamed->replaced->inode->id).value();
  }
  void check() {
    const auto report = check_namespace(*store_).value();
    ASSERT_TRUE(report.consistent()) << report.problems.front();
  }

  SeededRandom random_{1};
};

TEST_P(AnyChanges, AreCounted) {
  for (int i = 0; i < 4000 && !HasFatalFailure(); ++i) {
    step();
    if (i % 100 == 0) check();
    if (i % 500 == 499) restart();
    if (i % 900 == 899) {
      names_.reset();
      store_.crash(random_);
      open(boot_ + 1);
      check();
    }
  }
  EXPECT_TRUE(quotas().on());
}

PNFSRDMA_OVER_BOTH_ENGINES(AnyChanges);

}  // namespace
}  // namespace pnfsrdma::mds
