// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/session_table.h"

#include <gtest/gtest.h>

#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

constexpr uint32_t kCached = 8192;

// A client with one session, whose budget is 4 MiB: 2 MiB are for reply caches, 252 slots.
class ReplyCaches : public testing::Test {
 protected:
  std::shared_ptr<Session> make(uint32_t slots) {
    nfs4::ChannelAttributes fore;
    fore.max_requests = sessions_.affordable_slots(slots, kCached);
    fore.max_response_size_cached = kCached;
    return fore.max_requests == 0 ? nullptr : sessions_.create(client_, fore, {});
  }
  // The client asks in its lowest slot and says that it uses slots up to `highest`.
  void sequence(Session& session, uint32_t highest) {
    ASSERT_TRUE(session.slots().begin(0, session.slots().at(0).seqid + 1, highest, 9).has_value());
    session.slots().finish(0, nullptr);
    session.give_back_slots();
  }

  ManualClock clock_;
  SeededRandom random_{1};
  rpc::MemoryBudget memory_{clock_, {.bytes = 4 << 20}};
  std::shared_ptr<Client> client_ = std::make_shared<Client>();
  SessionTable sessions_{random_, &memory_};
};

TEST_F(ReplyCaches, AreReservedInFullAndGivenBackAtTheEnd) {
  auto session = make(8);
  EXPECT_EQ(session->slots().highest(), 7u);
  EXPECT_GE(memory_.reserved(), 8u * kCached);
  sessions_.destroy(*session);
  EXPECT_GT(memory_.reserved(), 0u) << "a COMPOUND still runs in it";
  session.reset();
  EXPECT_EQ(memory_.reserved(), 0u);
}

TEST_F(ReplyCaches, FewerSlotsAreGivenWhenMemoryIsShortAndInTheEndNone) {
  uint32_t before = 64;
  size_t made = 0;
  while (const auto session = make(64)) {
    EXPECT_LE(session->slots().highest() + 1, before);
    before = session->slots().highest() + 1;
    ++made;
  }
  EXPECT_EQ(before, 1u);
  EXPECT_GT(made, 30u);
  EXPECT_LE(memory_.reserved(), size_t{2} << 20);
}

TEST_F(ReplyCaches, ShrinkOnlyWhenTheClientHasStoppedUsingTheSlots) {
  std::vector<std::shared_ptr<Session>> made;
  while (auto session = make(64)) made.push_back(std::move(session));
  Session& first = *made.front();
  const uint32_t highest = first.slots().highest();
  const size_t reserved = memory_.reserved();
  sessions_.balance();
  EXPECT_LT(first.slots().target_highest(), highest);
  EXPECT_EQ(first.slots().highest(), highest) << "until the client agrees";
  EXPECT_EQ(memory_.reserved(), reserved);
  sequence(first, highest);
  EXPECT_EQ(memory_.reserved(), reserved);
  sequence(first, first.slots().target_highest());
  EXPECT_LT(memory_.reserved(), reserved);
  EXPECT_NE(make(64), nullptr);
}

TEST_F(ReplyCaches, GrowAgainWhenThereIsPlenty) {
  std::vector<std::shared_ptr<Session>> made;
  while (auto session = make(64)) made.push_back(std::move(session));
  Session& first = *made.front();
  const uint32_t highest = first.slots().highest();
  sessions_.balance();
  sequence(first, first.slots().target_highest());
  while (made.size() > 1) {
    sessions_.destroy(*made.back());
    made.pop_back();
  }
  sessions_.balance();
  EXPECT_EQ(first.slots().target_highest(), highest);
  EXPECT_EQ(first.slots().highest(), highest);
  EXPECT_GE(memory_.reserved(), (highest + 1) * size_t{kCached});
}

}  // namespace
}  // namespace pnfsrdma::mds
