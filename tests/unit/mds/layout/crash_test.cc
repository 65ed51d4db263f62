// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "server/mds/layout/file_copy.h"
#include "tests/unit/mds/layout/layout_world.h"

// The MDS dies at every call to the brick and at every commit, one after the other, before it and behind it;
// then it starts again over what is left.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

// Kills the MDS at the n-th point it passes.
struct Reaper {
  LayoutWorld& world;
  int left;
  bool dead = false;

  bool pass() {
    if (dead) return false;
    if (left-- > 0) return true;
    dead = true;
    world.brick.dead = true;
    return false;
  }
  void arm() {
    const auto point = [this] { return pass(); };
    world.brick.before_call = world.brick.behind_call = point;
    world.store.before_commit = world.store.behind_commit = point;
  }
  void disarm() const {
    const auto nothing = [] { return true; };
    world.brick.before_call = world.brick.behind_call = nothing;
    world.store.before_commit = world.store.behind_commit = nothing;
  }
};

struct Files {
  InodeId a, b, c, clone;
};

std::byte own(InodeId inode) {
  return static_cast<std::byte>('A' + inode % 26);
}
std::string pattern(InodeId inode, size_t count) {
  return std::string(count, static_cast<char>(own(inode)));
}

// Writes `count` bytes from `offset` under a layout, whatever of it can be had.
LayoutGranter::Answer write_directly(LayoutWorld& world, InodeId file, uint64_t offset, uint64_t count) {
  auto answer = world.get(kAlice, file, IoMode::kReadWrite, offset, UINT64_MAX, count);
  for (const nfs4::Segment& segment : world.segments(answer)) {
    const ByteRange part =
        intersection({segment.file_offset, segment.file_offset + segment.length}, {offset, offset + count});
    if (part.empty()) continue;
    world.brick.client_write(kAlice, segment.write.grant, part.begin - segment.file_offset, own(file),
                             part.length());
  }
  return answer;
}

// A bit of everything that moves memory between files. Stops where the MDS stops.
void live(LayoutWorld& world, const Files& files, const Reaper& reaper) {
  std::optional<LayoutGranter::Answer> layout;
  const std::vector<std::function<void()>> steps = {
      [&] { world.write(files.a, 0, pattern(files.a, 9000)); },
      [&] { layout = write_directly(world, files.b, 0, 300000); },
      [&] {
        if (*layout)
          world.commit(kAlice, files.b, world.stateid_of(*layout), {0, 300000}, 199999, {{0, 200000}});
      },
      [&] { world.set_size(files.b, 5000); },
      [&] { write_directly(world, files.b, 3000, 40000); },
      [&] { world.write(files.b, 4000, pattern(files.b, 5000)); },
      [&] {
        if (world.names->remove(kRootInode, "a")) world.mds->conflicts().on_orphaned(files.a);
        world.settle();
      },
      [&] { world.allocate(files.b, {20000, 60000}); },
      [&] { write_directly(world, files.b, 0, 60000); },
      [&] { world.deallocate(files.b, {5000, 50000}); },
      [&] {
        // Data, a hole, data; into what it has, and behind its end.
        FileCopy::What what{.client = kBob, .source = files.b, .source_offset = 100, .target = files.b};
        what.target_offset = 100000;
        what.count = 59000;
        world.mds->copies().copy(what, [](const auto&) {});
        world.settle();
      },
      [&] {
        // Over what it has; then either is written and cut, and the first one goes.
        world.write(files.clone, 0, pattern(files.clone, 30000));
        world.clone({.client = kBob, .source = files.b, .target = files.clone, .count = 5000});
        world.clone({.client = kBob, .source = files.b, .target = files.clone});
      },
      [&] { world.write(files.clone, 3000, pattern(files.clone, 30000)); },
      [&] { write_directly(world, files.b, 50000, 9000); },
      [&] { world.set_size(files.clone, 41000); },
      [&] { world.pass(Milliseconds(300)); },
      [&] { world.write(files.c, 100, pattern(files.c, 20)); },
      [&] { world.give_back(kAlice, files.b); },
      [&] { world.write(files.c, 120, pattern(files.c, 20)); },
      [&] {
        world.mds->conflicts().on_last_close({files.b}, [] {});
        world.settle();
      },
      [&] { world.set_size(files.b, 0); },
      [&] { write_directly(world, files.c, 0, 5000); },
      [&] {
        world.mds->conflicts().on_client_gone(kAlice, [] {});
        world.pass(Milliseconds(200));
      },
      [&] { world.set_size(files.c, 20000); },
  };
  for (const auto& step : steps) {
    if (reaper.dead) return;
    step();
  }
}

// Returns false when the whole life passed before the point was reached.
bool die_at(int point, std::optional<size_t> keep) {
  SCOPED_TRACE("point " + std::to_string(point) + (keep ? ", unsynced commits lost" : ", process only"));
  LayoutWorld world(8);
  Files files{world.create("a"), world.create("b"), world.create("c"), kNoInode};
  // Of the same pattern as its source.
  while ((files.clone = world.create("clone" + std::to_string(files.clone))) % 26 != files.b % 26) {
  }
  world.settle();
  world.obey_recalls();
  Reaper reaper{world, point};
  reaper.arm();
  live(world, files, reaper);
  reaper.disarm();
  world.crash(keep);
  world.start();
  world.obey_recalls();
  world.pass(Milliseconds(300));
  world.check("started again");
  // And it serves: what nobody may see does not come up by growing either.
  for (const InodeId file : {files.b, files.clone}) EXPECT_EQ(world.set_size(file, 1 << 20), Status::kOk);
  EXPECT_EQ(world.write(files.c, 50000, pattern(files.c, 100)), Status::kOk);
  world.check("served again");
  return reaper.dead;
}

// All points take minutes under the sanitizers: every seventh is tried, each test from another one, and all
// of them when PNFSRDMA_EXHAUSTIVE is set.
int stride() {
  return std::getenv("PNFSRDMA_EXHAUSTIVE") != nullptr ? 1 : 7;
}

TEST(Crash, BetweenAnyTwoLinesTheDeathOfTheProcessLeaksNothingAndShowsNothing) {
  int point = 0;
  while (die_at(point, std::nullopt) && !HasFailure()) point += stride();
  EXPECT_GT(point, 60);
}

TEST(Crash, NorDoesTheDeathOfTheHostWithEverythingUnsyncedLost) {
  int point = stride() / 2;
  while (die_at(point, 0) && !HasFailure()) point += stride();
  EXPECT_GT(point, 60);
}

TEST(Crash, AFileSomebodyWasWritingShowsAChangeAfterwards) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  const auto layout = write_directly(world, file, 0, 4096);
  ASSERT_EQ(world.commit(kAlice, file, world.stateid_of(layout), {0, 4096}, 4095), Status::kOk);
  const uint64_t change = world.stat(file)->change;
  world.unknown = {kAlice};
  world.crash();
  world.start();
  EXPECT_GT(world.stat(file)->change, change);
  EXPECT_TRUE(world.brick.grants.empty());
  EXPECT_TRUE(world.brick.sessions.empty());
}

TEST(Crash, AnOrphanOfAnEarlierRunIsFreed) {
  LayoutWorld world;
  const InodeId file = world.create("f");
  ASSERT_EQ(world.write(file, 0, pattern(file, 3 << 20)), Status::kOk);
  world.recaller.opens.insert({file, kAlice});
  ASSERT_TRUE(world.names->remove(kRootInode, "f"));
  world.crash();
  world.start();
  EXPECT_FALSE(world.names->get(file));
  EXPECT_TRUE(world.brick.blocks.empty());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
