// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_member.h"

#include <gtest/gtest.h>

#include "server/mds/meta/keys.h"
#include "tests/doubles/jumping_clock.h"
#include "tests/doubles/metadata/memory_key_server.h"
#include "tests/doubles/metadata/memory_store.h"

namespace pnfsrdma::mds {
namespace {

class SmallStore final : public MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  StoreRoom room() const override { return {.stopped = full}; }
  bool full = false;
  int copies_refused = 0;  // so many of the next ones

 protected:
  void make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) override {
    if (copies_refused <= 0) return MemoryStore::make_checkpoint(number, std::move(done));
    --copies_refused;
    done(fail(ENOSPC, "no room for a snapshot"));
  }
  Result<Sequence> write(const Batch& batch, CommitKind kind) override {
    if (full && !batch.makes_room()) return fail(EAGAIN, "full");
    return MemoryStore::write(batch, kind);
  }
};

// A server that shares the log: its store stays over its ends, as a disk does.
class Server {
 public:
  Server(EventLoop& loop, MemoryKeys& keys, const Clock& clock, std::string name, std::string place = {})
      : loop_(loop),
        keys_(keys),
        clock_(clock),
        name_(std::move(name)),
        place_(place.empty() ? name_ + "'s" : std::move(place)) {
    reopen();
  }

  Result<bool> lead(const std::function<bool()>& stopping = [] { return false; }) {
    member_ = std::make_unique<LogMember>(
        loop_, random_,
        LogMember::Options{.prefix = "/test",
                           .name = name_,
                           .place = place_,
                           .copies = copies,
                           .connect = keys_.connector(),
                           .clock = clock_,
                           .status = [this](const std::string& text) { status = text; }});
    auto led = member_->lead(*disk_, stopping);
    if (led && *led) {
      auto engine = std::move(disk_);
      memory_ = engine.get();
      store_ = member_->open(std::move(engine), [this](const Error& error) { failed = error; });
    }
    return led;
  }
  // Ends in order: what the disk has is there for the next start.
  void stop() {
    if (store_) {
      ASSERT_TRUE(store_->sync());
      keep();
    }
    store_.reset();
    member_.reset();
    reopen();
  }
  KeyValueStore& store() { return store_ ? *store_ : *disk_; }
  SmallStore& disk() { return *disk_; }
  const MemoryStore& memory() const { return *memory_; }
  void put(std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(key, value);
    ASSERT_TRUE(store().commit(batch, CommitKind::kNamespace));
    ASSERT_TRUE(store().sync());
  }
  LogMember::Costs costs() const { return member_->costs(); }
  std::string get(std::string_view key) { return store().get(key).value().value_or("-"); }

  LogMember& member() { return *member_; }

  std::optional<Error> failed;
  std::string status;
  std::string copies;  // where it gives some

 private:
  void keep() {
    content_ = {};
    ASSERT_TRUE(memory_->scan("", "", [&](std::string_view key, std::string_view value) {
      content_.put(key, value);
      return true;
    }));
  }
  void reopen() {
    if (disk_) return;
    disk_ = std::make_unique<SmallStore>(loop_);
    ASSERT_TRUE(disk_->commit(content_, CommitKind::kState));
    ASSERT_TRUE(disk_->sync());
  }

  EventLoop& loop_;
  MemoryKeys& keys_;
  const Clock& clock_;
  const std::string name_;
  const std::string place_;
  SystemRandom random_;
  Batch content_;
  std::unique_ptr<SmallStore> disk_;
  MemoryStore* memory_ = nullptr;
  std::unique_ptr<LogMember> member_;
  std::unique_ptr<KeyValueStore> store_;
};

class Member : public ::testing::Test {
 protected:
  // Follows until the log has nothing more, and stops.
  Result<bool> follow(Server& server, int looks = 3) {
    return server.lead([looks, left = looks]() mutable { return left-- < 0; });
  }
  // Of a store that has the log from its beginning.
  Batch position_in_the_log() {
    Batch batch;
    const std::string identity = server_.value(keys_.identity());
    put_position(batch, {identity.substr(0, identity.find(' ')), {}});
    return batch;
  }
  void ghost_leads() { server_.put(keys_.leader(), LeadClaim{"ghost", "0", "ghost's"}.text()); }
  bool leads(const std::string& name) { return LeadClaim::parse(server_.value(keys_.leader())).name == name; }
  // As somebody else writes it, behind what is there.
  void write_value(LogPosition position, std::string_view key, std::string_view text) {
    LogRecord record;
    record.batch.put(key, text);
    write_value(position, record);
  }
  void write_value(LogPosition position, const LogRecord& record) {
    ValueBuilder builder;
    EXPECT_TRUE(builder.add(encode_record(record)));
    std::string value = builder.take();
    if (position > 1) chain_value(value, hash_of(server_.value(keys_.value(position - 1))));
    server_.put(keys_.value(position), value);
  }
  // Once, in the first turn of the loop in which that server has the lead: before it has followed to the end.
  void when_taken(const std::string& name, std::function<void()> what) {
    loop_.at_next_turn(
        [this, name, what = std::move(what)] { leads(name) ? what() : when_taken(name, what); });
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  BootClock lead_clock_;
  MemoryKeys server_;
  const LogKeys keys_{"/test"};
};

TEST_F(Member, TheFirstBeginsALogAndTheNextGoesOnWithIt) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.put("y", "2");
  a.stop();
  EXPECT_FALSE(server_.rows().contains(keys_.leader()));  // given back
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_TRUE(b.lead().value());
  EXPECT_EQ(b.get("x") + b.get("y"), "12");
  b.put("x", "3");
  b.stop();
  ASSERT_TRUE(a.lead().value());
  EXPECT_EQ(a.get("x") + a.get("y"), "32");
}

TEST_F(Member, TakesOverFromOneThatIsSilentAndNotBefore) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.stop();
  ghost_leads();
  Server b(loop_, server_, lead_clock_, "b");
  const SteadyTime begun = lead_clock_.now();
  ASSERT_TRUE(b.lead().value());
  EXPECT_GE(lead_clock_.now() - begun, kLeadTime + kClockDrift);
  EXPECT_LT(lead_clock_.now() - begun, kLeadTime + kClockDrift + Milliseconds(1000));
  EXPECT_EQ(b.get("x"), "1");
  EXPECT_EQ(server_.value(keys_.takeovers()), "1");
}

TEST_F(Member, OnlyALeadThatWasNotGivenBackIsTakenOver) {
  Server a(loop_, server_, lead_clock_, "a");
  Server b(loop_, server_, lead_clock_, "b");
  for (Server* server : {&a, &b, &a}) {
    ASSERT_TRUE(server->lead().value());
    server->stop();
  }
  // An earlier start of its own.
  server_.put(keys_.leader(), LeadClaim{"a", "0", "a's"}.text());
  ASSERT_TRUE(a.lead().value());
  a.stop();
  EXPECT_EQ(server_.value(keys_.takeovers()), "");
}

TEST_F(Member, SaysWhatTheLogCosts) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  EXPECT_EQ(a.costs().commits.count(), 0u);
  a.put("x", "1");
  a.put("y", "2");
  for (int i = 0; i < 100 && a.costs().checkpoint < 2; ++i) loop_.run_once(Milliseconds(10));
  const LogMember::Costs costs = a.costs();
  EXPECT_EQ(costs.commits.count(), 2u);
  EXPECT_EQ(costs.bytes, server_.value(keys_.value(1)).size() + server_.value(keys_.value(2)).size());
  EXPECT_EQ(costs.checkpoint, 2u);
  EXPECT_LT(costs.checkpoint_age, Milliseconds(5000));
}

TEST_F(Member, AnUnknownOutcomeOfTakingTheLeadIsLookedUp) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_FALSE(follow(a, 1).value());  // begins the log
  for (const auto fault : {MemoryKeys::Fault::kLostAnswer, MemoryKeys::Fault::kLostRequest}) {
    server_.plan({fault, fault, fault});
    ASSERT_TRUE(a.lead().value());
    a.put("x", "1");
    a.stop();
  }
}

TEST_F(Member, WhoLosesTheLeadIsToldAndWritesNoMore) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  ghost_leads();
  for (int i = 0; i < 30 && !a.failed; ++i) loop_.run_once(Milliseconds(100));
  ASSERT_TRUE(a.failed);
  EXPECT_EQ(a.failed->number(), ESTALE);
  EXPECT_NE(a.failed->what().find("ghost"), std::string::npos);
  Batch batch;
  batch.put("x", "2");
  EXPECT_FALSE(a.store().commit(batch, CommitKind::kState) && a.store().sync());
  EXPECT_FALSE(a.store().written(0));
}

TEST_F(Member, FollowsWithoutServingUntilItIsStopped) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  Server b(loop_, server_, lead_clock_, "b");
  EXPECT_FALSE(follow(b).value());
  EXPECT_EQ(b.disk().get("x").value(), "1");
  EXPECT_TRUE(server_.rows().contains(keys_.member("b")));
}

TEST_F(Member, AServerThatServedBeforeNeedsACopy) {
  Server a(loop_, server_, lead_clock_, "a");
  a.put(meta_key("boot"), "a row");
  ASSERT_TRUE(a.lead().value());
  a.stop();
  Server empty(loop_, server_, lead_clock_, "empty");
  const auto refused = empty.lead();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EINVAL);
  EXPECT_EQ(read_position(empty.disk()).value(), std::nullopt);  // nothing was changed
  Server other(loop_, server_, lead_clock_, "other");
  other.put(meta_key("boot"), "another row");
  EXPECT_EQ(other.lead().error().number(), EINVAL);
}

TEST_F(Member, AStoreOfAnotherLogIsRefused) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.stop();
  server_.put(keys_.identity(), std::string(32, '0'));
  EXPECT_EQ(a.lead().error().number(), EINVAL);
  server_.erase(keys_.identity());
  EXPECT_EQ(a.lead().error().number(), ENOENT);
  ASSERT_TRUE(erase_position(a.disk()));
  EXPECT_TRUE(a.lead().value());  // a log of its own
}

TEST_F(Member, WhoMissesAPartOfTheLogNeverLeads) {
  Server a(loop_, server_, lead_clock_, "a");
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.put("x", "2");
  a.stop();
  server_.put(keys_.trimmed(), "1");
  server_.erase(keys_.value(1));
  EXPECT_EQ(b.lead().error().number(), ENODATA);
  server_.put(keys_.trimmed(), "2");
  server_.erase(keys_.value(2));  // no value at all is there any more
  EXPECT_EQ(b.lead().error().number(), ENODATA);
  EXPECT_FALSE(server_.rows().contains(keys_.leader()));
}

TEST_F(Member, WhoMayBeginWithACopyIsToldWhere) {
  const auto never = [] { return false; };
  Server a(loop_, server_, lead_clock_, "a");
  Server away(loop_, server_, lead_clock_, "away");
  Server empty(loop_, server_, lead_clock_, "empty");
  Server strange(loop_, server_, lead_clock_, "strange");
  strange.put(meta_key("boot"), "a row");
  a.copies = "https://a:1";
  a.put(meta_key("boot"), "a row");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  EXPECT_EQ(empty.lead().error().number(), EINVAL);
  EXPECT_TRUE(empty.member().needs_copy());
  EXPECT_TRUE(empty.member().store_is_empty());
  EXPECT_EQ(empty.member().find_copy(never).value(), "https://a:1");
  EXPECT_EQ(strange.lead().error().number(), EINVAL);
  EXPECT_FALSE(strange.member().needs_copy());  // it has something of its own
  ASSERT_TRUE(away.disk().commit(position_in_the_log(), CommitKind::kState));
  EXPECT_FALSE(follow(away).value());
  EXPECT_FALSE(away.member().needs_copy());
  for (int i = 2; i <= 4; ++i) a.put("x", std::to_string(i));
  server_.put(keys_.trimmed(), "4");
  for (const LogPosition gone : {1, 2, 3, 4}) server_.erase(keys_.value(gone));
  EXPECT_EQ(away.lead().error().number(), ENODATA);
  EXPECT_TRUE(away.member().needs_copy());
  EXPECT_FALSE(away.member().store_is_empty());
  EXPECT_EQ(away.member().find_copy(never).value(), "https://a:1");
}

// More than it reads at once, trimmed by what is said and not erased yet: nothing is missing.
TEST_F(Member, WhatIsTrimmedAndStillThereIsFollowed) {
  Server a(loop_, server_, lead_clock_, "a");
  a.copies = "https://a:1";
  ASSERT_TRUE(a.lead().value());
  for (int i = 1; i <= 40; ++i) a.put("x", std::to_string(i));
  server_.put(keys_.trimmed(), "30");
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_TRUE(b.disk().commit(position_in_the_log(), CommitKind::kState));
  int looks = 0;
  const auto refused = b.lead([&] {
    if (++looks == 5) server_.put(keys_.identity(), "another one");
    return false;
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ENOENT);
  EXPECT_NE(b.get("x"), "-");  // it has followed
  EXPECT_FALSE(b.member().needs_copy());
}

TEST_F(Member, WithoutALeaderThereIsNoCopyYet) {
  const auto never = [] { return false; };
  Server a(loop_, server_, lead_clock_, "a");
  a.put(meta_key("boot"), "a row");
  ASSERT_TRUE(a.lead().value());
  a.stop();
  Server empty(loop_, server_, lead_clock_, "empty");
  EXPECT_EQ(empty.lead().error().number(), EINVAL);
  EXPECT_TRUE(empty.member().needs_copy());
  EXPECT_EQ(empty.member().find_copy(never).value(), std::nullopt);
  server_.cut(true);
  EXPECT_EQ(empty.member().find_copy(never).value(), std::nullopt);
  server_.cut(false);
  ASSERT_TRUE(a.lead().value());
  EXPECT_EQ(empty.member().find_copy(never).error().number(), ENOENT);  // it gives none
  EXPECT_FALSE(server_.has(keys_.member("empty")));                     // so nothing is kept for this one
}

TEST_F(Member, TheLogBehindACopyIsKeptForWhoIsNew) {
  Server a(loop_, server_, lead_clock_, "a");
  a.copies = "https://a:1";
  a.put(meta_key("boot"), "a row");
  ASSERT_TRUE(a.lead().value());
  Server fresh(loop_, server_, lead_clock_, "fresh");
  EXPECT_EQ(fresh.lead().error().number(), EINVAL);
  server_.put(keys_.member("fresh"), "7 of an earlier boot");  // replaced, because it is silent
  EXPECT_EQ(fresh.member().find_copy([] { return false; }).value(), "https://a:1");
  EXPECT_EQ(server_.value(keys_.member("fresh")), "0 fresh's");
  // The others have all, and go on.
  for (int i = 0; i < 10; ++i) a.put("x", std::to_string(i));
  server_.put(keys_.member("other"), "10 there");
  for (int i = 0; i < 70; ++i) loop_.run_once(Milliseconds(100));
  EXPECT_EQ(server_.value(keys_.trimmed()), "");
  EXPECT_TRUE(server_.has(keys_.value(1)));
}

TEST_F(Member, WhoHasTheNameOfTheLeaderGetsNoCopy) {
  Server a(loop_, server_, lead_clock_, "a");
  a.copies = "https://a:1";
  a.put(meta_key("boot"), "a row");
  ASSERT_TRUE(a.lead().value());
  Server other(loop_, server_, lead_clock_, "a", "another place");
  EXPECT_EQ(other.lead().error().number(), EINVAL);
  ASSERT_TRUE(other.member().needs_copy());
  EXPECT_EQ(other.member().find_copy([] { return false; }).error().number(), EINVAL);
  EXPECT_NE(server_.value(keys_.member("a")).find("a's"), std::string::npos);
}

TEST_F(Member, ALogThatWentBackIsNotFollowed) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.put("x", "2");
  a.stop();
  const LogPosition last = read_position(a.disk()).value()->applied.position;
  ASSERT_TRUE(server_.rows().contains(keys_.value(last)));
  server_.erase(keys_.value(last));
  EXPECT_EQ(a.lead().error().number(), ENODATA);
  EXPECT_FALSE(server_.rows().contains(keys_.leader()));
}

TEST_F(Member, ALogThatWentBackAndGrewAgainIsNotFollowed) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  a.put("x", "2");
  a.stop();
  write_value(2, "x", "of another history");
  write_value(3, "y", "of another history");
  EXPECT_EQ(a.lead().error().number(), ENODATA);
  EXPECT_EQ(a.get("x") + a.get("y"), "2-");
}

TEST_F(Member, WhoFollowsSeesThatTheLogWentBack) {
  for (const bool grows : {false, true}) {
    Server a(loop_, server_, lead_clock_, grows ? "grows" : "a");
    ASSERT_TRUE(a.lead().value());
    a.put("x", "1");
    a.put("x", "2");
    a.stop();
    const LogPosition last = read_position(a.disk()).value()->applied.position;
    ghost_leads();
    int looks = 0;
    const auto refused = a.lead([&] {
      if (++looks == 3) {
        server_.erase(keys_.value(last));
        if (grows) write_value(last, "x", "of another history");
      }
      return looks > 20;
    });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number(), ENODATA);
    EXPECT_EQ(a.get("x"), "2");
    for (const auto& [key, row] : server_.rows()) server_.erase(key);
  }
}

TEST_F(Member, WithoutRoomTheLeadIsGivenBack) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  when_taken("b", [&] {
    write_value(1, "x", "1");
    b.disk().full = true;
  });
  int looks = 0;
  ASSERT_TRUE(b.lead([&] {
                 if (b.disk().full && !server_.rows().contains(keys_.leader()) && ++looks == 20) {
                   EXPECT_EQ(b.status, "standby: the metadata disk is full");
                   b.disk().full = false;
                 }
                 return false;
               }).value());
  EXPECT_GE(looks, 20);  // it did not take it again meanwhile
  EXPECT_EQ(b.get("x"), "1");
}

TEST_F(Member, WithoutRoomTheLeadIsNotTaken) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  b.disk().full = true;
  EXPECT_FALSE(follow(b, 10).value());
  EXPECT_FALSE(server_.rows().contains(keys_.leader()));
}

TEST_F(Member, WithoutRoomForASnapshotAStandbyWaits) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  write_value(1, {LogRecordKind::kCheckpoint, {}, 4});
  ghost_leads();
  b.disk().copies_refused = 2;
  std::string said;
  ASSERT_TRUE(b.lead([&] {
                 if (b.disk().copies_refused == 0 && said.empty()) said = b.status;
                 return false;
               }).value());
  EXPECT_EQ(said, "standby: the metadata disk is full");
  EXPECT_EQ(b.memory().checkpoints().count(4), 1u);
}

TEST_F(Member, WithoutRoomForASnapshotTheLeadIsGivenBack) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  when_taken("b", [&] {
    write_value(1, {LogRecordKind::kCheckpoint, {}, 4});
    b.disk().copies_refused = 2;
  });
  bool given_back = false;
  ASSERT_TRUE(b.lead([&] {
                 given_back =
                     given_back || (b.disk().copies_refused == 1 && !server_.rows().contains(keys_.leader()));
                 return false;
               }).value());
  EXPECT_TRUE(given_back);
  EXPECT_EQ(b.memory().checkpoints().count(4), 1u);
}

TEST_F(Member, WithoutRoomForASnapshotAnEndIsInOrder) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  write_value(1, {LogRecordKind::kCheckpoint, {}, 4});
  b.disk().copies_refused = 1000;
  EXPECT_FALSE(follow(b, 5).value());
  EXPECT_EQ(read_position(b.disk()).value()->applied.position, 0u);
}

TEST_F(Member, AnEndWhileItFollowsToTheEndIsInOrder) {
  Server b(loop_, server_, lead_clock_, "b");
  ASSERT_FALSE(follow(b, 1).value());
  bool ends = false;
  when_taken("b", [&] {
    write_value(1, "x", "1");
    b.disk().stall(1'000'000);
    loop_.after(Milliseconds(50), [&] { ends = true; });
  });
  EXPECT_FALSE(b.lead([&] { return ends; }).value());
  b.stop();
  EXPECT_FALSE(server_.rows().contains(keys_.leader()));
}

// Another server was first, with metadata that this one does not have.
TEST_F(Member, WhoWasNotFirstBelongsToNoLog) {
  Server a(loop_, server_, lead_clock_, "a");
  a.put(meta_key("boot"), "a row");
  server_.plan({MemoryKeys::Fault::kLostRequest});
  int looks = 0;
  const auto refused = a.lead([&] {
    if (++looks == 2) server_.put(keys_.identity(), std::string(32, '0'));
    return false;
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EINVAL);
  EXPECT_FALSE(read_position(a.disk()).value()->joined);
  server_.erase(keys_.identity());
  EXPECT_TRUE(a.lead().value());
  a.stop();
  EXPECT_TRUE(read_position(a.disk()).value()->joined);
}

TEST_F(Member, WhatItDoesIsSaid) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  EXPECT_EQ(a.status, "leads the metadata's log");
  a.put("x", "1");
  for (int i = 0; i < 15; ++i) loop_.run_once(Milliseconds(100));
  Server b(loop_, server_, lead_clock_, "b");
  EXPECT_FALSE(follow(b, 5).value());
  EXPECT_EQ(b.status, "standby: follows a, has the log up to 1, 0 behind");
}

// What it left there nobody has renewed since: another server may take it at that moment.
TEST_F(Member, AnEarlierTakeIsNotTakenForALaterOne) {
  JumpingClock clock;
  Server b(loop_, server_, clock, "b");
  ASSERT_FALSE(follow(b, 1).value());
  KeyRevision first = 0;
  when_taken("b", [&] {
    sleep_for(Milliseconds(200));  // renewed once
    first = server_.rows()[keys_.leader()].revision;
    write_value(1, "x", "1");
    b.disk().full = true;
    clock.advance(kLeadTime + Milliseconds(1000));  // the lead is over, and can be given back no more
  });
  int looks = 0;
  ASSERT_TRUE(b.lead([&] {
                 if (b.disk().full && ++looks == 20) {
                   b.disk().full = false;
                   const auto lost = MemoryKeys::Fault::kLostRequest;
                   server_.plan({lost, lost, lost});
                 }
                 return false;
               }).value());
  EXPECT_GT(server_.rows()[keys_.leader()].revision, first);
}

TEST_F(Member, ARequestForTheLeadThatArrivesLateChangesNothing) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_FALSE(follow(a, 1).value());
  server_.plan({MemoryKeys::Fault::kDoneLater, MemoryKeys::Fault::kDoneLater});
  ASSERT_TRUE(a.lead().value());
  a.put("x", "1");
  const std::string claim = server_.value(keys_.leader());
  server_.deliver_late();
  EXPECT_EQ(server_.value(keys_.leader()), claim);
  a.put("x", "2");
  EXPECT_FALSE(a.failed);
}

TEST_F(Member, TheNameOfTheLeaderIsRefused) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  Server other(loop_, server_, lead_clock_, "a", "another place");
  EXPECT_EQ(other.lead().error().number(), EINVAL);
}

TEST_F(Member, WhoIsBehindWhatIsThereKeepsTheRest) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  for (int i = 0; i < 3; ++i) a.put("x", std::to_string(i));
  a.stop();
  server_.put(keys_.trimmed(), "3");
  server_.put(keys_.member("slow"), "2");
  ASSERT_TRUE(a.lead().value());
  for (int i = 0; i < 10; ++i) a.put("x", std::to_string(i));
  for (int i = 0; i < 70; ++i) loop_.run_once(Milliseconds(100));
  EXPECT_EQ(server_.value(keys_.trimmed()), "3");
}

TEST_F(Member, TheLogIsTrimmedBehindTheSlowest) {
  Server a(loop_, server_, lead_clock_, "a");
  ASSERT_TRUE(a.lead().value());
  for (int i = 0; i < 10; ++i) a.put("x", std::to_string(i));
  server_.put(keys_.member("slow"), "4");
  for (int i = 0; i < 120 && !server_.rows().contains(keys_.trimmed()); ++i)
    loop_.run_once(Milliseconds(100));
  EXPECT_EQ(server_.value(keys_.trimmed()), "4");
  for (int i = 0; i < 10 && server_.rows().contains(keys_.value(4)); ++i) loop_.run_once(Milliseconds(100));
  EXPECT_FALSE(server_.rows().contains(keys_.value(4)));
  EXPECT_TRUE(server_.rows().contains(keys_.value(5)));
}

}  // namespace
}  // namespace pnfsrdma::mds
