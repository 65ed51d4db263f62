// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/lead_keeper.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "shared/base/sync.h"
#include "tests/doubles/jumping_clock.h"
#include "tests/doubles/metadata/memory_key_server.h"

namespace pnfsrdma::mds {
namespace {

// A connection that writes down what is asked: 'r'enewals, 'm'embers, 'e'rasures with their size, compactions ('f').
class Recorded final : public KeyServer {
 public:
  struct Calls {
    std::string kinds;
    size_t erased_most = 0;
  };
  Recorded(std::unique_ptr<KeyServer> server, MemoryKeys& keys, Guarded<Calls>& calls)
      : server_(std::move(server)), keys_(keys), calls_(calls) {}

  Result<KeyOutcome> commit(const KeyTransaction& transaction) override {
    calls_.lock()->kinds += 'r';
    return server_->commit(transaction);
  }
  Result<std::vector<KeyRow>> range(std::string_view from, std::string_view end, size_t limit) override {
    calls_.lock()->kinds += 'm';
    return server_->range(from, end, limit);
  }
  Result<KeyRevision> erase(std::string_view from, std::string_view end) override {
    const size_t before = keys_.size();
    auto erased = server_->erase(from, end);
    auto calls = calls_.lock();
    calls->kinds += 'e';
    calls->erased_most = std::max(calls->erased_most, before - keys_.size());
    return erased;
  }
  Result<> forget(KeyRevision before) override {
    calls_.lock()->kinds += 'f';
    return server_->forget(before);
  }

 private:
  const std::unique_ptr<KeyServer> server_;
  MemoryKeys& keys_;
  Guarded<Calls>& calls_;
};

class Keeper : public ::testing::Test {
 protected:
  Keeper() {
    server_.put(keys_.leader(), "me");
    lead_ = server_.rows()[keys_.leader()].revision;
  }
  LeadKeeper::Options options() {
    return {.keys = keys_, .name = "me", .place = "here", .lead = lead_, .lost = [this](const Error& error) {
              *lost_.lock() = error;
            }};
  }
  void open(LeadKeeper::Options options) {
    term_.renewed(clock_.now());
    keeper_ = std::make_unique<LeadKeeper>(std::make_unique<Recorded>(server_.connector()(), server_, calls_),
                                           clock_, term_, std::move(options));
  }
  template <typename Condition>
  void wait_until(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) sleep_for(Milliseconds(10));
    ASSERT_TRUE(condition());
  }
  // Time passes three times as fast, which the renewals take.
  template <typename Condition>
  void wait_long_until(Condition condition) {
    wait_until([&] {
      clock_.advance(Milliseconds(20));
      return condition();
    });
  }
  LogPosition trimmed() { return parse_decimal(server_.value(keys_.trimmed())).value_or(0); }

  JumpingClock clock_;
  MemoryKeys server_;
  const LogKeys keys_{"/test"};
  KeyRevision lead_ = 0;
  LeadTerm term_{clock_};
  Guarded<Recorded::Calls> calls_;
  Guarded<std::optional<Error>> lost_;
  std::unique_ptr<LeadKeeper> keeper_;
};

TEST_F(Keeper, SaysHowFarTheLogIsAndGivesTheLeadBack) {
  LeadKeeper::Options with = options();
  with.end = 7;
  with.bytes = 6400;
  with.durable = 5;
  open(std::move(with));
  wait_until([&] { return server_.value(keys_.member("me")) == "5 here"; });
  EXPECT_EQ(server_.value(keys_.renewal()), "7 6400");
  keeper_->wrote(8, 100);
  keeper_.reset();
  EXPECT_FALSE(server_.has(keys_.leader()));
  EXPECT_EQ(server_.value(keys_.renewal()), "8 6500");  // for the next one
}

TEST_F(Keeper, TrimsInPartsWithARenewalBetweenAnyTwoCalls) {
  constexpr LogPosition kValues = 12'000;
  for (LogPosition position = 1; position <= kValues; ++position) server_.put(keys_.value(position), "");
  server_.put(keys_.member("other"), "11000 there");
  LeadKeeper::Options with = options();
  with.end = with.durable = kValues;
  open(std::move(with));
  wait_long_until([&] { return !server_.has(keys_.value(11'000)); });
  EXPECT_EQ(trimmed(), 11'000u);
  EXPECT_TRUE(server_.has(keys_.value(11'001)));
  keeper_.reset();
  const Recorded::Calls calls = *calls_.lock();
  EXPECT_LE(calls.erased_most, 5000u);
  for (size_t i = 1; i < calls.kinds.size(); ++i)
    EXPECT_TRUE(calls.kinds[i - 1] == 'r' || calls.kinds[i] == 'r') << calls.kinds;
}

// Of 600 MiB that others wrote, 512 MiB are kept for a server that is away.
TEST_F(Keeper, TheWindowCountsWhatEarlierLeadersWrote) {
  server_.put(keys_.member("away"), "0 there");
  LeadKeeper::Options with = options();
  with.end = with.durable = 6000;
  with.bytes = uint64_t{600} << 20;
  open(std::move(with));
  wait_long_until([&] { return trimmed() > 0; });
  EXPECT_GE(trimmed(), 6000u * 80 / 600);
  EXPECT_LE(trimmed(), 6000u * 100 / 600);
}

// Though the lead is renewed in time, again and again.
TEST_F(Keeper, ALoopThatStandsLosesTheLead) {
  open(options());
  keeper_->loop_turns();
  wait_long_until([&] { return lost_.lock()->has_value(); });
  EXPECT_EQ((*lost_.lock())->number(), ESTALE);
  EXPECT_EQ((*lost_.lock())->what(), "the control loop stands still");
  EXPECT_FALSE(term_.holds());
}

// Whatever holds it up, nobody else serves meanwhile.
TEST_F(Keeper, AnEndOfTheDaemonThatHangsLosesTheLead) {
  open(options());
  keeper_->loop_turns();
  keeper_->loop_ends();
  keeper_->loop_turns();  // a turn or two of what ends
  const SteadyTime begun = clock_.now();
  wait_long_until([&] { return clock_.now() - begun > kLeadTime + Milliseconds(2000); });
  EXPECT_FALSE(lost_.lock()->has_value());
  EXPECT_TRUE(term_.holds());
  wait_long_until([&] { return lost_.lock()->has_value(); });
  EXPECT_EQ((*lost_.lock())->number(), ESTALE);
  EXPECT_FALSE(term_.holds());
}

TEST_F(Keeper, WithoutARenewalInTimeTheLeadEnds) {
  open(options());
  wait_until([&] { return server_.has(keys_.renewal()); });
  server_.cut(true);
  clock_.advance(kLeadTime);
  EXPECT_FALSE(term_.holds());
  server_.cut(false);  // too late: some answers were given up
  wait_until([&] { return lost_.lock()->has_value(); });
  EXPECT_FALSE(term_.holds());
}

}  // namespace
}  // namespace pnfsrdma::mds
