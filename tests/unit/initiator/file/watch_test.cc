// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/initiator/file/data_path_fixture.h"

// Signals and who watches: an event or a gap, whatever becomes of connections, grants and the brick; never too early.
namespace pnfsrdma::initiator {
namespace {

using Log = std::vector<std::string>;
using Kind = WatchEvent::Kind;

class WatchTest : public DataPathTest {
 protected:
  static constexpr uint64_t kSize = uint64_t{4} << 20;
  void SetUp() override { ready(); }
  // Connected, under a layout for writing, nothing left to tell.
  void ready() {
    make_file(kSize);
    write(8192, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    ASSERT_TRUE(file->settle());
    begin();
  }
  void begin() {
    events.take();
    calls_before_ = channel.calls;
    round_trips_before_ = path->statistics().rdma_round_trips.value();
  }
  std::shared_ptr<Watch> watch(uint64_t offset, uint64_t length) {
    auto watched = file->watch({offset, length});
    EXPECT_TRUE(watched) << watched.error().to_string();
    return watched ? *watched : nullptr;
  }
  int signal(uint64_t offset, uint64_t length, uint64_t value) {
    const auto done = file->signal({offset, length}, value, cursor);
    return done ? 0 : done.error().number();
  }
  // None: there is none within a second.
  static std::optional<WatchEvent> next(Watch& watch) {
    pollfd ready{watch.fd(), POLLIN, 0};
    if (::poll(&ready, 1, 1000) != 1) return std::nullopt;
    return watch.next();
  }
  static auto next_within(Watch& watch, Milliseconds patience) {
    pollfd ready{watch.fd(), POLLIN, 0};
    const bool any = ::poll(&ready, 1, static_cast<int>(patience.count())) == 1;
    return any ? watch.next() : std::nullopt;
  }
  static bool gap_comes_within(Watch& watch, Milliseconds patience) {
    const auto event = next_within(watch, patience);
    return event && event->kind == Kind::kGapLost;
  }
  static bool gap_comes(Watch& watch) {
    const auto event = next(watch);
    return event && event->kind == Kind::kGapLost;
  }
  // Behind the loss it is told two gaps, or one if it had not taken the first.
  void expect_watched_again(Watch& watch) {
    EXPECT_TRUE(gap_comes(watch));
    for (int i = 0; i < 100 && brick.watches() == 0; ++i) std::this_thread::sleep_for(Milliseconds(10));
    EXPECT_EQ(brick.watches(), 1u);
    EXPECT_TRUE(gap_comes(watch));
    ASSERT_EQ(signal(100, 10, 1234), 0);
    const auto event = next(watch);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, Kind::kSignal);
    EXPECT_EQ(event->value, 1234u);
  }
  int mds_calls() const { return channel.calls - calls_before_; }
  uint64_t round_trips() const { return path->statistics().rdma_round_trips.value() - round_trips_before_; }

 private:
  int calls_before_ = 0;
  uint64_t round_trips_before_ = 0;
};

TEST_F(WatchTest, AnEventSaysWhereAndWhat) {
  const auto watched = watch(100, 1000);
  EXPECT_EQ(watched->next(), std::nullopt);
  ASSERT_EQ(signal(0, 100, 1), 0);
  ASSERT_EQ(signal(1100, 100, 2), 0);
  ASSERT_EQ(signal(1000, 200, 3), 0);
  const auto event = next(*watched);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kSignal);
  EXPECT_EQ(event->offset, 1000u);
  EXPECT_EQ(event->length, 100u);
  EXPECT_EQ(event->value, 3u);
  EXPECT_EQ(watched->next(), std::nullopt);
  pollfd ready{watched->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

TEST_F(WatchTest, ASignalOfAnOverwriteIsOneRoundTripAndTheFlushIsInIt) {
  write(4096, 4096, 9);
  begin();
  ASSERT_EQ(signal(4096, 4096, 1), 0);
  EXPECT_EQ(round_trips(), 1u);
  EXPECT_EQ(mds_calls(), 0);
  EXPECT_EQ(events.take(), Log{"signal 4096+4096"});
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Log{}) << "nothing was left to flush";
}

TEST_F(WatchTest, WhatLiesBesideTheSignalIsLeftToFdatasync) {
  write(4096, 4096, 9);
  write(16384, 4096, 9);
  begin();
  ASSERT_EQ(signal(4096, 8192, 1), 0);
  EXPECT_EQ(events.take(), Log{"signal 4096+8192"});
  ASSERT_TRUE(file->fdatasync(cursor));
  EXPECT_EQ(events.take(), Log{"persist 16384+4096"});
}

TEST_F(WatchTest, GrowthIsTheServersBeforeAnybodyIsTold) {
  const auto watched = watch(0, kSize);
  write(kSize, 4096, 9);
  begin();
  ASSERT_EQ(signal(kSize - 8, 4104, 1), 0);
  EXPECT_EQ(channel.size, kSize + 4096);
  const auto log = events.take();
  ASSERT_GE(log.size(), 3u);
  EXPECT_EQ(log.back(), "signal 4194296+8 4194304+4096");
  const auto event = next(*watched);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->offset, kSize - 8);
  EXPECT_EQ(event->length, 8u);
}

TEST_F(WatchTest, WhatWasLostIsNotSignalled) {
  const auto watched = watch(0, kSize);
  write(4096, 4096, 9);
  brick.set_verifier(7);
  EXPECT_EQ(signal(4096, 4096, 1), EIO);
  ASSERT_EQ(signal(4096, 4096, 2), 0) << "told once";
  for (auto event = next(*watched); event && event->kind != Kind::kSignal; event = next(*watched)) {
  }
  write(8192, 4096, 9);
  brick.fail_flush(9);
  EXPECT_EQ(signal(8192, 4096, 3), EIO);
  while (const auto event = watched->next()) EXPECT_NE(event->kind, Kind::kSignal);
}

TEST_F(WatchTest, ASignalWhoseAnswerIsLostIsSignalledAgain) {
  const auto watched = watch(0, 4096);
  brick.unanswered_signals = 1;
  write(0, 64, 9);
  EXPECT_EQ(signal(0, 64, 5), 0);
  std::vector<Kind> told;
  while (told.empty() || told.back() != Kind::kGapLost || brick.watches() == 0) {
    const auto event = next(*watched);
    ASSERT_TRUE(event);
    told.push_back(event->kind);
  }
}

TEST_F(WatchTest, AConnectionThatDiesIsAGapAndTheWatchGoesOn) {
  const auto watched = watch(0, 4096);
  brick.cut_connection();
  expect_watched_again(*watched);
}

TEST_F(WatchTest, AGrantThatIsTakenBackIsAGapAndTheWatchGoesOn) {
  const auto watched = watch(0, 4096);
  brick.withdraw(0, 1 << 20);
  brick.tell_all(brick::EventKind::kEnd);
  expect_watched_again(*watched);
}

TEST_F(WatchTest, AnEventThatIsLeftOutIsAGap) {
  const auto watched = watch(0, 4096);
  brick.tell_all(brick::EventKind::kSignal, 1);
  EXPECT_EQ(next(*watched)->kind, Kind::kGapSlow);
  // The event itself, unless it was a part of the gap.
  for (int i = 0; i < 50 && !watched->next(); ++i) std::this_thread::sleep_for(Milliseconds(1));
  brick.tell_all(brick::EventKind::kGap);
  EXPECT_EQ(next(*watched)->kind, Kind::kGapSlow);
}

TEST_F(WatchTest, WhoTakesNothingGetsOneGapBehindWhatWasKept) {
  const auto watched = watch(0, 4096);
  const auto other = watch(64, 64);
  for (uint64_t i = 1; i <= Watch::kUntakenMax + 100; ++i) ASSERT_EQ(signal(0, 8, i), 0);
  ASSERT_EQ(signal(64, 8, 7), 0);
  ASSERT_EQ(next(*other)->value, 7u) << "nobody else waits for it";
  for (uint64_t i = 1; i <= Watch::kUntakenMax; ++i) ASSERT_EQ(next(*watched)->value, i);
  EXPECT_EQ(next(*watched)->kind, Kind::kGapSlow);
  EXPECT_EQ(watched->next(), std::nullopt);
}

TEST_F(WatchTest, AHoleIsWatchedOnceThereIsMemory) {
  build(options_now, kSize);
  channel.holes.insert(1 << 20);
  const auto watched = watch(0, 2 << 20);
  EXPECT_EQ(brick.watches(), 1u);
  EXPECT_EQ(watched->next(), std::nullopt);
  channel.holes.clear();
  ASSERT_EQ(signal((1 << 20) + 64, 64, 5), 0);
  bool told = false;
  for (int i = 0; i < 5 && !told; ++i) told = gap_comes(*watched);
  EXPECT_TRUE(told) << "the signal may have come before the watch";
  EXPECT_EQ(brick.watches(), 2u);
  ASSERT_EQ(signal((1 << 20) + 64, 64, 6), 0);
  EXPECT_EQ(next(*watched)->value, 6u);
}

TEST_F(WatchTest, ABrickThatIsNotThereForAWhileIsWatchedWhenItIs) {
  const auto watched = watch(0, 4096);
  brick.connections_max = 0;
  brick.cut_connection();
  EXPECT_TRUE(gap_comes(*watched));
  std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_EQ(watched->next(), std::nullopt);
  brick.connections_max = INT_MAX;
  for (int i = 0; i < 30 && brick.watches() == 0; ++i) std::this_thread::sleep_for(Milliseconds(100));
  EXPECT_TRUE(gap_comes(*watched));
}

TEST_F(WatchTest, WhatIsNotWatchedForGoodIsAGapAgainAndAgain) {
  const auto watched = watch(0, 4096);
  brick.watches_max = 0;
  brick.cut_connection();
  EXPECT_TRUE(gap_comes(*watched));
  for (uint64_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(signal(0, 8, i), 0);
    EXPECT_TRUE(gap_comes_within(*watched, Milliseconds(2500))) << "behind signal " << i;
  }
  std::this_thread::sleep_for(Milliseconds(2500));
  EXPECT_TRUE(watched->next());
  EXPECT_EQ(watched->next(), std::nullopt) << "one that nobody has taken is enough";
  brick.watches_max = SIZE_MAX;
  EXPECT_TRUE(gap_comes_within(*watched, Milliseconds(2500)));
  for (int i = 0; i < 300 && brick.watches() == 0; ++i) std::this_thread::sleep_for(Milliseconds(10));
  while (watched->next()) {
  }
  ASSERT_EQ(signal(0, 8, 77), 0);
  auto event = next(*watched);
  if (event && event->kind != Kind::kSignal) event = next(*watched);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->value, 77u);
}

TEST_F(WatchTest, ABrickThatRefusesIsNoHindranceForAnother) {
  FakeBrick other(*brick_transport, "other:0", events);
  channel.put_rest_on(other, 1 << 20);
  build(options_now, kSize);
  const auto watched = watch(0, 2 << 20);
  ASSERT_EQ(brick.watches(), 1u);
  ASSERT_EQ(other.watches(), 1u);
  brick.watches_max = 0;
  brick.cut_connection();
  other.cut_connection();
  bool told = false;
  for (uint64_t i = 1; i <= 20 && !told; ++i) {
    ASSERT_EQ(signal((1 << 20) + 64, 8, i), 0);
    for (auto event = next(*watched); event && !told; event = watched->next())
      told = event->kind == Kind::kSignal && event->value == i;
  }
  EXPECT_EQ(brick.watches(), 0u);
  EXPECT_TRUE(told);
  path->abort();
  path.reset();
  file.reset();
}

TEST_F(WatchTest, BehindTheEndTheServerIsSeldomAsked) {
  const auto watched = watch(0, 2 << 20);
  ASSERT_EQ(brick.watches(), 2u);
  ASSERT_TRUE(file->truncating(1 << 20));
  channel.size = 1 << 20;
  brick.withdraw(1 << 20, 3 << 20);
  file->truncated(1 << 20, true);
  brick.tell_all(brick::EventKind::kEnd);
  for (int i = 0; i < 100 && brick.watches() != 1; ++i) std::this_thread::sleep_for(Milliseconds(10));
  std::this_thread::sleep_for(Milliseconds(500));
  ASSERT_EQ(brick.watches(), 1u);
  while (watched->next()) {
  }
  const int before = channel.layoutgets;
  std::this_thread::sleep_for(Milliseconds(2500));
  EXPECT_LE(channel.layoutgets - before, 1);
  EXPECT_EQ(watched->next(), std::nullopt) << "there is nothing to signal";
  write(1 << 20, 1 << 20, 3);
  ASSERT_EQ(signal(1 << 20, 64, 5), 0);
  EXPECT_TRUE(gap_comes_within(*watched, Milliseconds(2500)));
  EXPECT_EQ(brick.watches(), 2u);
}

TEST_F(WatchTest, WhereTheServerGrantsNothingItIsAGapAndTheRestIsWatched) {
  const auto watched = watch(0, 2 << 20);
  ASSERT_EQ(brick.watches(), 2u);
  channel.during_layoutget = [this] {
    channel.refuse_layoutgets({nfs4::Status::kDelay, nfs4::Status::kDelay, nfs4::Status::kDelay});
  };
  const CallbackAnswer answer = recall(0, 1 << 20, channel.recall_stateid());
  ASSERT_EQ(answer.status, nfs4::Status::kOk);
  answer.then();
  brick.cut_connection();
  for (int i = 0; i < 300 && brick.watches() != 1; ++i) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_EQ(brick.watches(), 1u);
  bool told = false;
  for (uint64_t i = 1; i <= 20 && !told; ++i) {
    brick.tell_all(brick::EventKind::kSignal);
    for (auto event = next(*watched); event && !told; event = watched->next())
      told = event->kind == Kind::kSignal;
  }
  EXPECT_TRUE(told) << "what lies behind is watched";
  // Another signal may have been on the way.
  bool gap = false;
  for (int i = 0; i < 20 && !gap; ++i) {
    const auto event = next_within(*watched, Milliseconds(1500));
    gap = event && event->kind == Kind::kGapLost;
  }
  EXPECT_TRUE(gap) << "and the place is told to be lost, again and again";
}

class PulseTest : public WatchTest {
 protected:
  void SetUp() override {
    options_now.io_timeout = Milliseconds(400);
    options_now.connect_timeout = Milliseconds(200);
    ready();
  }
};

TEST_F(PulseTest, ABrickThatIsGoneWithoutAWordIsAGap) {
  const auto watched = watch(0, 2 << 20);
  const auto hung = brick.hang();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(gap_comes_within(*watched, Milliseconds(2000))) << i;
}

TEST_F(PulseTest, AConnectionHasOneForAll) {
  const auto watched = watch(0, 4 << 20);
  const auto another = watch(0, 4 << 20);
  ASSERT_EQ(brick.watches(), 8u);
  const int before = brick.persists;
  std::this_thread::sleep_for(Milliseconds(2000));
  EXPECT_GE(brick.persists - before, 3);
  EXPECT_LE(brick.persists - before, 10);
  EXPECT_EQ(watched->next(), std::nullopt);
}

TEST_F(WatchTest, ACallForEventsIsNoSilence) {
  const auto watched = watch(0, 4096);
  Device& device = *file->devices(std::nullopt).at(0);
  EXPECT_FALSE(device.silent(Milliseconds(0)));
  std::this_thread::sleep_for(Milliseconds(20));
  EXPECT_FALSE(device.silent(Milliseconds(10)));
  EXPECT_FALSE(device.silent(Milliseconds(10)));
}

TEST_F(WatchTest, ABrickOfBeforeIsNotAsked) {
  brick.understands = brick::kUnderstandsVerify;
  brick.cut_connection();
  const auto watched = file->watch({0, 4096});
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().number(), ENOTSUP);
  EXPECT_EQ(signal(0, 4096, 1), ENOTSUP);
}

TEST_F(WatchTest, WhatIsNotOfTheFileIsRefused) {
  for (const FileRange& range : {FileRange{0, 0}, {kSize, 1}, {kSize - 1, 2}, {1, UINT64_MAX}}) {
    const auto watched = file->watch(range);
    ASSERT_FALSE(watched);
    EXPECT_EQ(watched.error().number(), EINVAL);
    EXPECT_EQ(signal(range.offset, range.length, 1), EINVAL);
  }
}

TEST_F(WatchTest, WithTheWatchTheBrickForgetsIt) {
  auto watched = watch(0, 4096);
  EXPECT_EQ(brick.watches(), 1u);
  watched.reset();
  for (int i = 0; i < 100 && brick.watches() > 0; ++i) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_EQ(brick.watches(), 0u);
}

TEST_F(WatchTest, ManyWhileConnectionsDieAreNeitherLostNorEarly) {
  constexpr int kWatchers = 4;
  constexpr uint64_t kLast = 300;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWatchers; ++i) {
    const auto watched = watch(0, 4096);
    threads.emplace_back([this, watched] {
      const auto memory = *path->make_buffer(4096);
      const auto look = [&] {
        uint64_t value = 0;
        EXPECT_TRUE(file->read(64, memory->slice(0, sizeof value)));
        std::memcpy(&value, memory->slice(0, sizeof value).data(), sizeof value);
        return value;
      };
      for (uint64_t seen = 0; seen < kLast;) {
        const auto event = next(*watched);
        ASSERT_TRUE(event);
        const uint64_t now = look();
        if (event->kind != Kind::kSignal) {
          seen = now;
          continue;
        }
        EXPECT_LE(event->value, now) << "early";
        EXPECT_LE(event->value, seen + 1) << "lost without a gap";
        seen = std::max(seen, event->value);
      }
    });
  }
  std::memset(brick.memory() + 64, 0, 8);
  for (uint64_t value = 1; value <= kLast; ++value) {
    const BufferSlice source = buffer->slice(0, sizeof value);
    std::memcpy(source.data(), &value, sizeof value);
    ASSERT_TRUE(file->write(64, source));
    ASSERT_EQ(signal(64, sizeof value, value), 0);
    if (value % 50 == 10) brick.cut_connection();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pnfsrdma::initiator
