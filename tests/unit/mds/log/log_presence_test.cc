// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_presence.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/doubles/manual_clock.h"
#include "tests/doubles/metadata/memory_key_server.h"

namespace pnfsrdma::mds {
namespace {

class Presence : public ::testing::Test {
 protected:
  // For so long, as often as it is due; something else may happen each second.
  Result<> say(
      LogPresence& presence, Milliseconds time, LogPosition durable,
      const std::function<void()>& each_second = [] {}) {
    for (const SteadyTime end = clock_.now() + time; clock_.now() < end; clock_.advance(Milliseconds(100))) {
      if (clock_.now().time_since_epoch() % std::chrono::seconds(1) == Milliseconds(0)) each_second();
      if (presence.due(clock_.now())) TRY(presence.say(clock_.now(), durable));
    }
    return {};
  }
  std::string row() { return server_.value(kKey); }

  static constexpr const char* kKey = "/test/member/me";
  ManualClock clock_;
  MemoryKeys server_;
  const std::unique_ptr<KeyServer> connection_ = server_.connector()();
};

TEST_F(Presence, IsSaidAtOnceAndAgainEachSecond) {
  LogPresence presence(*connection_, kKey, "here");
  ASSERT_TRUE(say(presence, Milliseconds(100), 7));
  EXPECT_EQ(row(), "7 here");
  EXPECT_EQ(presence.said(), 7u);
  ASSERT_TRUE(say(presence, Milliseconds(5000), 7));
  EXPECT_EQ(server_.commits(), 6u);
}

TEST_F(Presence, GoesOnBehindAnEarlierStartAndALostAnswer) {
  server_.put(kKey, "3 here");
  server_.plan(
      {MemoryKeys::Fault::kLostAnswer, MemoryKeys::Fault::kLostAnswer, MemoryKeys::Fault::kLostRequest});
  LogPresence presence(*connection_, kKey, "here");
  ASSERT_TRUE(say(presence, Milliseconds(5000), 7));
  EXPECT_EQ(row(), "7 here");
}

TEST_F(Presence, AnotherPlaceThatIsSilentIsReplaced) {
  server_.put(kKey, "3 where this host was before it booted");
  LogPresence presence(*connection_, kKey, "here");
  ASSERT_TRUE(say(presence, Milliseconds(1000), 7));
  EXPECT_EQ(presence.said(), 0u);
  ASSERT_TRUE(say(presence, Milliseconds(2000), 7));
  EXPECT_EQ(row(), "7 here");
}

// What a process has asked for before it died.
TEST_F(Presence, AFewThatComeLateAreNobody) {
  LogPresence presence(*connection_, kKey, "here");
  int left = 9;
  ASSERT_TRUE(say(presence, Milliseconds(20'000), 7, [&] {
    if (left-- > 0) server_.put(kKey, "3 before");
  }));
  EXPECT_EQ(row(), "7 here");
}

TEST_F(Presence, AnotherServerOfItsNameIsFound) {
  LogPresence other(*connection_, kKey, "there");
  LogPresence presence(*connection_, kKey, "here");
  ASSERT_TRUE(say(other, Milliseconds(2000), 3));
  const auto refused =
      say(presence, Milliseconds(20'000), 7, [&] { ASSERT_TRUE(other.say(clock_.now(), 3)); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EINVAL);
  EXPECT_EQ(row(), "3 there");
}

}  // namespace
}  // namespace pnfsrdma::mds
