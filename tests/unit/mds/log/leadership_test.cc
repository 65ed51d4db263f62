// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/leadership.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/manual_clock.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

LeadWatch::Seen seen(KeyRevision leader, KeyRevision renewal, std::string place = "there") {
  return {leader, renewal, {"other", "start", std::move(place)}};
}

TEST(LeadTerm, EndsSoLongAfterTheRenewalWasSent) {
  ManualClock clock;
  LeadTerm term(clock);
  EXPECT_FALSE(term.holds());
  const SteadyTime sent = clock.now();
  clock.advance(Milliseconds(700));  // the answer took its time
  term.renewed(sent);
  clock.advance(kLeadTime - Milliseconds(701));
  EXPECT_TRUE(term.holds());
  clock.advance(Milliseconds(1));
  EXPECT_FALSE(term.holds());
}

TEST(LeadWatch, TakesWhatNobodyHas) {
  ManualClock clock;
  LeadWatch watch("here");
  EXPECT_FALSE(watch.may_take(clock.now()));  // nothing was seen yet
  watch.saw({}, clock.now());
  EXPECT_TRUE(watch.may_take(clock.now()));
}

TEST(LeadWatch, WaitsForTheLastRenewalItSaw) {
  ManualClock clock;
  LeadWatch watch("here");
  watch.saw(seen(5, 6), clock.now());
  clock.advance(kLeadTime);
  EXPECT_FALSE(watch.may_take(clock.now()));
  watch.saw(seen(5, 7), clock.now());
  clock.advance(kLeadTime + kClockDrift - Milliseconds(1));
  watch.saw(seen(5, 7), clock.now());
  EXPECT_FALSE(watch.may_take(clock.now()));
  clock.advance(Milliseconds(1));
  EXPECT_TRUE(watch.may_take(clock.now()));
  watch.saw(seen(9, 9), clock.now());  // somebody else was first
  EXPECT_FALSE(watch.may_take(clock.now()));
}

TEST(LeadWatch, AnEarlierProcessOfTheSamePlaceHasEnded) {
  ManualClock clock;
  LeadWatch watch("here");
  watch.saw(seen(5, 6, "here"), clock.now());
  EXPECT_TRUE(watch.may_take(clock.now()));
}

TEST(LeadClaim, ComesBackAsItWas) {
  const LeadClaim claim{"name", "0123", "boot-1-2"};
  EXPECT_EQ(LeadClaim::parse(claim.text()), claim);
  EXPECT_EQ(LeadClaim::parse("name"), (LeadClaim{"name", "", ""}));
  EXPECT_EQ(LeadClaim::parse(""), LeadClaim{});
}

// A clock of a host: it runs a little too fast or too slow, and shows another time.
class SkewedClock final : public Clock {
 public:
  SkewedClock(const ManualClock& true_clock, double rate, Milliseconds ahead)
      : true_(true_clock), rate_(rate), ahead_(ahead) {}
  SteadyTime now() const override {
    const double passed = static_cast<double>(true_.now().time_since_epoch().count()) * rate_;
    return SteadyTime(SteadyTime::duration(static_cast<SteadyTime::rep>(passed))) + ahead_;
  }
  WallTime wall_now() const override { return {}; }

 private:
  const ManualClock& true_;
  const double rate_;
  const Milliseconds ahead_;
};

// Servers that renew, stop, look and take, at random times and over a slow network: no two ever hold the lead.
TEST(Leadership, NoTwoServersHoldTheLeadWhateverTheNetworkDelays) {
  constexpr int kServers = 3;
  constexpr double kRate = 0.02;  // of both together below kClockDrift / kLeadTime
  int taken_over = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SeededRandom random(seed);
    const auto below = [&](uint64_t most) { return random.next_u64() % most; };
    ManualClock clock;
    LeadWatch::Seen keys;
    KeyRevision revision = 1;
    struct Message {
      int from = 0;
      int generation = 0;
      bool takes = false;
      SteadyTime arrives;  // true time
      SteadyTime sent;     // the sender's time
      LeadWatch::Seen known;
    };
    struct Answer {
      int to = 0;
      int generation = 0;
      SteadyTime arrives;
      std::optional<SteadyTime> renewed;  // the sender's time of sending
      KeyRevision lead = 0;
      LeadWatch::Seen seen;
    };
    std::vector<Message> messages;
    std::vector<Answer> answers;
    struct Server {
      SkewedClock clock;
      LeadTerm term;
      LeadWatch watch;
      int generation = 0;
      KeyRevision lead = 0;
      SteadyTime stopped_until{};
      Server(const ManualClock& true_clock, double rate, Milliseconds ahead, std::string place)
          : clock(true_clock, rate, ahead), term(clock), watch(std::move(place)) {}
    };
    std::vector<std::unique_ptr<Server>> servers;
    for (int i = 0; i < kServers; ++i) {
      const double rate = 1 + kRate * (static_cast<double>(below(1001)) / 1000 - 0.5);
      servers.push_back(
          std::make_unique<Server>(clock, rate, Milliseconds(below(100'000)), "place" + std::to_string(i)));
    }
    for (int step = 0; step < 1500; ++step) {
      clock.advance(Milliseconds(20 + below(60)));
      const SteadyTime now = clock.now();
      const auto delay = [&] { return now + Milliseconds(below(10) == 0 ? below(4000) : below(30)); };
      for (size_t i = 0; i < messages.size();) {
        if (messages[i].arrives > now) {
          ++i;
          continue;
        }
        const Message message = messages[i];
        messages.erase(messages.begin() + static_cast<long>(i));
        Answer answer{.to = message.from,
                      .generation = message.generation,
                      .arrives = delay(),
                      .renewed = {},
                      .lead = 0,
                      .seen = {}};
        if (message.takes) {
          if (keys.leader != message.known.leader || keys.renewal != message.known.renewal) continue;
          taken_over += keys.leader != 0;
          keys = {++revision, revision, {"s", "s", "place" + std::to_string(message.from)}};
          answer.renewed = message.sent;
          answer.lead = keys.leader;
        } else if (message.known.leader != 0) {  // a renewal
          if (keys.leader != message.known.leader) continue;
          keys.renewal = ++revision;
          answer.renewed = message.sent;
          answer.lead = keys.leader;
        }
        answer.seen = keys;
        answers.push_back(answer);
      }
      for (int i = 0; i < kServers; ++i) {
        Server& server = *servers[static_cast<size_t>(i)];
        if (below(400) == 0) server.stopped_until = now + Milliseconds(below(12'000));
        if (now < server.stopped_until) continue;
        for (size_t a = 0; a < answers.size();) {
          if (answers[a].to != i || answers[a].arrives > now) {
            ++a;
            continue;
          }
          const Answer answer = answers[a];
          answers.erase(answers.begin() + static_cast<long>(a));
          if (answer.generation != server.generation) continue;
          if (answer.lead == 0) {
            server.watch.saw(answer.seen, server.clock.now());
          } else if (server.lead == 0 || server.lead == answer.lead) {
            server.lead = answer.lead;
            if (answer.renewed) server.term.renewed(*answer.renewed);
          }
        }
        if (server.lead != 0 && !server.term.holds()) {  // the process ends, another one begins
          const std::string place = "place" + std::to_string(i) + "-" + std::to_string(step);
          servers[static_cast<size_t>(i)] =
              std::make_unique<Server>(clock, 1.0, Milliseconds(below(100'000)), place);
          servers[static_cast<size_t>(i)]->generation = step + 1;
          continue;
        }
        const bool takes = server.lead == 0 && server.watch.may_take(server.clock.now());
        const bool asks = step % 4 == i;
        if (takes || asks) {
          LeadWatch::Seen known = server.watch.seen();
          if (!takes) known = {server.lead, 0, {}};
          messages.push_back({.from = i,
                              .generation = server.generation,
                              .takes = takes,
                              .arrives = delay(),
                              .sent = server.clock.now(),
                              .known = known});
        }
      }
      int leading = 0;
      for (const auto& server : servers) leading += server->term.holds();
      ASSERT_LE(leading, 1) << "seed " << seed << " step " << step;
    }
  }
  EXPECT_GT(taken_over, 100);
}

}  // namespace
}  // namespace pnfsrdma::mds
