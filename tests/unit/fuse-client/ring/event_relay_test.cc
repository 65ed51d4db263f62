// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/ring/event_relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>
#include <vector>

namespace pnfsrdma::fuse_client {
namespace {

using initiator::Watch;
using initiator::WatchEvent;

// A program's end of a channel, and what the mount is told for it.
struct Watching {
  explicit Watching(EventRelay& relay, const OpenFile& file, uid_t user = 0) : watch(*Watch::make()) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
    socket = FileDescriptor(pair[0]);
    begun = relay.begin(file, user, watch, FileDescriptor(pair[1]));
  }
  void tell(uint64_t value) { watch->tell({.offset = 8, .length = 4, .value = value}); }
  // None: nothing comes within so long, or the mount has closed its end.
  std::optional<ring::Event> next(int milliseconds = 5000) const {
    pollfd ready{socket.get(), POLLIN, 0};
    ring::Event event;
    if (::poll(&ready, 1, milliseconds) != 1) return std::nullopt;
    if (::recv(socket.get(), &event, sizeof event, 0) != sizeof event) return std::nullopt;
    return event;
  }
  // The relay has let go of it.
  bool is_forgotten() const {
    for (int i = 0; i < 500 && watch.use_count() > 1; ++i) sleep_for(Milliseconds(10));
    return watch.use_count() == 1;
  }

  std::shared_ptr<Watch> watch;
  FileDescriptor socket;
  Result<> begun;
};

TEST(EventRelay, WhatAWatchIsToldComesOutOfItsSocket) {
  EventRelay relay;
  const OpenFile file;
  Watching one(relay, file), other(relay, file);
  ASSERT_TRUE(one.begun && other.begun);
  one.tell(1);
  one.watch->tell({.kind = WatchEvent::Kind::kGapLost});
  other.tell(2);
  const auto first = one.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, uint32_t(ring::EventKind::kSignal));
  EXPECT_EQ(first->offset, 8u);
  EXPECT_EQ(first->length, 4u);
  EXPECT_EQ(first->value, 1u);
  EXPECT_EQ(one.next()->kind, uint32_t(ring::EventKind::kGapLost));
  EXPECT_EQ(other.next()->value, 2u);
  EXPECT_FALSE(one.next(20));
}

TEST(EventRelay, AProgramThatTakesNothingGetsAGapAndStopsNobody) {
  EventRelay relay;
  const OpenFile file;
  Watching slow(relay, file), quick(relay, file);
  constexpr uint64_t kMany = 20'000;
  for (uint64_t value = 1; value <= kMany; ++value) slow.tell(value);
  quick.tell(7);
  EXPECT_EQ(quick.next()->value, 7u);
  uint64_t seen = 0;
  std::optional<ring::Event> event;
  while ((event = slow.next()) && event->kind == uint32_t(ring::EventKind::kSignal)) {
    EXPECT_EQ(event->value, seen + 1);
    seen = event->value;
  }
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, uint32_t(ring::EventKind::kGapSlow));
  EXPECT_LT(seen, kMany);
  EXPECT_GE(seen, Watch::kUntakenMax);
  slow.tell(kMany + 1);
  EXPECT_EQ(slow.next()->value, kMany + 1);
}

TEST(EventRelay, OfGapsThatAreNotReceivedOneIsEnough) {
  EventRelay relay;
  const OpenFile file;
  Watching one(relay, file);
  const auto gap = [&] {
    one.watch->tell({.kind = WatchEvent::Kind::kGapLost});
    for (int i = 0; i < 500; ++i) {
      pollfd untaken{one.watch->fd(), POLLIN, 0};
      if (::poll(&untaken, 1, 0) == 0) break;
      sleep_for(Milliseconds(2));
    }
  };
  for (int i = 0; i < 5; ++i) gap();
  EXPECT_EQ(one.next()->kind, uint32_t(ring::EventKind::kGapLost));
  EXPECT_FALSE(one.next(20));
  gap();
  one.tell(1);
  EXPECT_EQ(one.next()->kind, uint32_t(ring::EventKind::kGapLost)) << "that one is received";
  gap();
  EXPECT_EQ(one.next()->value, 1u);
  EXPECT_EQ(one.next()->kind, uint32_t(ring::EventKind::kGapLost)) << "a signal is between them";
}

TEST(EventRelay, AWatchEndsWithTheProgramsEndOfItAndWithItsFile) {
  EventRelay relay;
  const OpenFile file, another;
  Watching closed(relay, file), ended(relay, file), stays(relay, another);
  closed.socket.reset();
  EXPECT_TRUE(closed.is_forgotten());
  relay.end(file);
  EXPECT_EQ(ended.watch.use_count(), 1);
  EXPECT_FALSE(ended.next()) << "its end is seen";
  stays.tell(3);
  EXPECT_EQ(stays.next()->value, 3u);
  relay.stop();
  EXPECT_EQ(stays.watch.use_count(), 1);
  EXPECT_EQ(Watching(relay, file).begun.error().number(), ESHUTDOWN);
}

TEST(EventRelay, NoUserHasThemAll) {
  EventRelay relay;
  const OpenFile file;
  std::vector<std::unique_ptr<Watching>> all;
  const auto add = [&](uid_t user) {
    all.push_back(std::make_unique<Watching>(relay, file, user));
    return all.back()->begun.has_value();
  };
  for (size_t i = 0; i < EventRelay::kWatchesOfAUserMax; ++i) ASSERT_TRUE(add(1000));
  EXPECT_FALSE(add(1000));
  EXPECT_FALSE(relay.check_room(1000));
  EXPECT_TRUE(add(1001));
  for (size_t i = EventRelay::kWatchesOfAUserMax + 1; i < EventRelay::kWatchesMax; ++i) ASSERT_TRUE(add(0));
  EXPECT_FALSE(add(0));
  EXPECT_FALSE(add(1001));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
