// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/watchers.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "server/brickd/limits.h"

namespace pnfsrdma::brick {
namespace {

// All of them at one place, where the header of a file is.
TEST(Watchers, ThereAreSoManyOfAllClientsTogetherAndEachEndFreesAPlace) {
  const Bytes memory(4096);
  Watchers watchers;
  std::vector<std::unique_ptr<EventInbox>> inboxes;
  for (size_t watched = 0; watched < kWatchesMax; ++watched) {
    if (watched % kWatchesPerConnection == 0) {
      inboxes.push_back(std::make_unique<EventInbox>());
      ASSERT_TRUE(inboxes.back()->open());
    }
    ASSERT_EQ(watchers.add(*inboxes.back(), {.watch = watched, .grant = watched % 7, .length = 8}, memory),
              WatchStatus::kOk);
  }
  EventInbox last;
  ASSERT_TRUE(last.open());
  EXPECT_EQ(watchers.add(last, {.watch = 1, .grant = 1, .length = 8}, memory), WatchStatus::kLimit);
  watchers.remove(*inboxes[0], 0);
  EXPECT_EQ(watchers.add(last, {.watch = 1, .grant = 1, .length = 8}, memory), WatchStatus::kOk);
  watchers.tell(memory, 42);
  EventsReply reply;
  watchers.take(last, reply);
  ASSERT_EQ(reply.events.size(), 1u);
  EXPECT_EQ(reply.events[0].value, 42u);
  watchers.grant_ended(*inboxes[0], 1);
  EXPECT_EQ(watchers.add(*inboxes[0], {.watch = 1, .grant = 1, .length = 8}, memory), WatchStatus::kOk);
  for (const auto& inbox : inboxes) watchers.connection_ended(*inbox);
  watchers.connection_ended(last);
  EXPECT_EQ(watchers.add(last, {.watch = 1, .grant = 1, .length = 8}, memory), WatchStatus::kOk);
  watchers.connection_ended(last);
}

// Its grant had been withdrawn already, so what it was told may be of other memory.
TEST(Watchers, OneThatIsUndoneHasBeenToldNothing) {
  const Bytes memory(4096);
  Watchers watchers;
  EventInbox inbox;
  ASSERT_TRUE(inbox.open());
  ASSERT_EQ(watchers.add(inbox, {.watch = 1, .grant = 1, .length = 8}, memory), WatchStatus::kOk);
  ASSERT_EQ(watchers.add(inbox, {.watch = 2, .grant = 2, .length = 8}, memory), WatchStatus::kOk);
  watchers.tell(memory, 42);
  watchers.undo(inbox, 2);
  watchers.tell(memory, 43);
  EventsReply reply;
  watchers.take(inbox, reply);
  ASSERT_EQ(reply.events.size(), 2u);
  for (const Event& event : reply.events) EXPECT_EQ(event.watch, 1u);
  watchers.tell(memory, 44);
  watchers.undo(inbox, 1);
  EXPECT_FALSE(inbox.any());
}

}  // namespace
}  // namespace pnfsrdma::brick
