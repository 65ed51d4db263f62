// SPDX-License-Identifier: Apache-2.0
// Random operations, then the host crashes: what is left must be exactly the state after some operation that
// is not older than the last sync, consistent in itself, and reconcilable with a brick.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "server/mds/meta/boot_record.h"
#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

constexpr size_t kNamesPerDirectory = 5;

class Crash : public OverBothEngines {
 protected:
  Crash() { start(); }

  // As the daemon starts: count the boot, open, reconcile with the brick.
  void start() {
    boot_ = open_boot(*store_, random_, "host").value();
    names_ =
        Namespace::open(*store_, clock_, boot_.boot_count, {.cached_inodes = 16, .cached_names = 16}).value();
    list_ = BrickList::open(*store_, clock_).value();
    if (list_->numbers().empty()) static_cast<void>(list_->add("brick", true).value());
    space_ = &list_->space(kFirstBrick);
    space_->set_capacity(100'000);
    std::vector<brick::Run> listed;
    for (const uint64_t block : brick_) listed.push_back({block, 1});
    const SpaceDifference difference = space_->compare(listed);
    EXPECT_TRUE(difference.missing.empty());
    give_to_brick(difference.leaked);
    remember();
    synced_ = 0;
  }
  void give_to_brick(const std::vector<brick::Run>& runs) {
    for (const brick::Run& run : runs) {
      for (uint64_t i = 0; i < run.count; ++i) {
        ASSERT_EQ(brick_.erase(run.logical + i * brick::kBlockSize), 1u);
      }
    }
  }

  // Everything a client could see, as text.
  std::string dump() {
    std::string text;
    std::deque<InodeId> directories{kRootInode};
    for (; !directories.empty(); directories.pop_front()) {
      const DirectoryPage page = names_->read_directory(directories.front(), 0, 1000).value();
      for (const DirectoryEntry& entry : page.entries) {
        const InodePointer inode = names_->get(entry.inode).value();
        text +=
            fmt::format("{}/{}@{} {} links {} size {} change {} space {}\n", directories.front(), entry.name,
                        entry.cookie, inode->id, inode->nlink, inode->size, inode->change, inode->space_used);
        if (inode->is_directory()) directories.push_back(inode->id);
      }
    }
    const auto orphans = names_->orphans().value();
    for (const InodeId id : orphans) text += fmt::format("orphan {}\n", id);
    return text;
  }
  // The state now is one that a crash may leave.
  void remember() { states_.push_back(dump()); }

  std::string any_name() {
    return std::string(1, static_cast<char>('a' + random_.next_u64() % kNamesPerDirectory));
  }
  InodeId any_directory() {
    InodeId at = kRootInode;
    while (random_.next_u64() % 2 == 0) {
      const auto below = names_->lookup(at, any_name());
      if (below && (*below)->is_directory()) at = (*below)->id;
    }
    return at;
  }

  void step() {
    switch (random_.next_u64() % 9) {
      case 0:
        names_->create(any_directory(), any_name(), {.type = FileType::kDirectory, .mode = 0755});
        break;
      case 1:
        names_->create(any_directory(), any_name(), {.mode = 0644});
        break;
      case 2:
        names_->remove(any_directory(), any_name());
        break;
      case 3:
        names_->rename(any_directory(), any_name(), any_directory(), any_name());
        break;
      case 4:
        names_->exchange(any_directory(), any_name(), any_directory(), any_name());
        break;
      case 5:
        if (const auto file = names_->lookup(any_directory(), any_name())) names_->touch((*file)->id);
        break;
      case 6:
        return destroy_an_orphan();
      default:
        return grow();
    }
    remember();
  }

  // Allocate on the brick, then commit.
  void grow() {
    const auto file = names_->lookup(any_directory(), any_name());
    if (!file || !(*file)->is_regular()) return;
    const uint64_t grains = random_.next_u64() % 8 == 0 ? 600 : 1 + random_.next_u64() % 25;
    const Taken taken = space_->take({.hard = grains}).value();
    if (taken.fresh) {
      for (uint64_t i = 0; i < taken.fresh->count; ++i)
        ASSERT_TRUE(brick_.insert(taken.fresh->logical + i * brick::kBlockSize).second);
      space_->allocated(*taken.fresh);
    }
    ExtentChange extents(*store_, (*file)->id);
    uint64_t end = (*file)->space_used;  // files grow without holes here
    for (const Piece& piece : taken.pieces) {
      ASSERT_TRUE(extents.insert({end, piece.logical, piece.length}));
      end += piece.length;
    }
    Batch batch;
    extents.write_to(batch);
    Extents::mark_tail_dirty(batch, (*file)->id);
    ASSERT_TRUE(names_->update((*file)->id, {.size = end - 1, .space_used = end}, batch));
    remember();
  }
  // Commit, and when that is durable, free.
  void destroy_an_orphan() {
    const auto orphans = names_->orphans().value();
    if (orphans.empty()) return;
    ExtentChange extents(*store_, orphans.front());
    const std::vector<Extent> removed = extents.remove(0, UINT64_MAX).value();
    Batch batch;
    extents.write_to(batch);
    ASSERT_TRUE(names_->destroy(orphans.front(), batch));
    remember();
    if (random_.next_u64() % 2 == 0) return;  // the crash comes first: a leak for start() to find
    sync();
    for (const Extent& extent : removed) give_to_brick(space_->free(extent.logical, extent.length));
  }
  void sync() {
    store_.settle();
    synced_ = states_.size() - 1;
  }

  void crash() {
    names_.reset();
    list_.reset();
    store_.crash(random_);
    start();
    const std::string now = states_.back();
    const auto allowed = std::find(states_.begin() + static_cast<long>(before_), states_.end() - 1, now);
    EXPECT_NE(allowed, states_.end() - 1) << "the state after the crash never was, or is too old:\n" << now;
    const auto report = check_namespace(*store_).value();
    for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
    states_.assign(1, now);
  }

  ManualClock clock_;
  SeededRandom random_{99};
  BootRecord boot_;
  std::unique_ptr<Namespace> names_;
  std::unique_ptr<BrickList> list_;
  Space* space_ = nullptr;
  std::set<uint64_t> brick_;  // addresses of the blocks it has given out
  std::vector<std::string> states_;
  size_t synced_ = 0;
  size_t before_ = 0;
};

TEST_P(Crash, LeavesAStateThatWasAndNothingThatWasSyncedIsLost) {
  for (int round = 0; round < (GetParam() == Engine::kMemory ? 40 : 12) && !HasFailure(); ++round) {
    const uint64_t steps = 1 + random_.next_u64() % 60;
    for (uint64_t i = 0; i < steps && !HasFailure(); ++i) {
      step();
      if (random_.next_u64() % 10 == 0) sync();
    }
    before_ = synced_;
    crash();
  }
}

PNFSRDMA_OVER_BOTH_ENGINES(Crash);

}  // namespace
}  // namespace pnfsrdma::mds
