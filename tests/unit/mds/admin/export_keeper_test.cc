// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/export_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using console::ExportRules;

struct Keeper : ::testing::Test {
  using Narrowed = std::vector<uint16_t>;

  Keeper() { start(); }

  void start(std::vector<Export> configured = {Export{}}) {
    keeper.reset();
    exports.reset();
    names = *Namespace::open(*store, clock, ++boot);
    initial = *ExportKeeper::initial(*store, std::move(configured));
    exports = std::make_unique<Exports>(*names, initial.exports);
    exports->reserve_ids(initial.next_id);
    handles = *HandleKeys::open(*store, random, clock, *exports, false);
    keeper = std::make_unique<ExportKeeper>(
        *store, *exports, *handles,
        ExportKeeper::Effects{.narrowed = [this](uint16_t id) { narrowed.push_back(id); },
                              .handles_ended = [this] { ++ends_of_handles; }},
        [this](const auto& visit, const auto& done) {
          for (const auto& client : mounted) visit(client);
          if (hold_effect) return held.push_back(done);
          done();
        });
  }
  template <typename T>
  Result<T> wait(const std::function<void(ExportKeeper::Done<T>)>& ask) {
    std::optional<Result<T>> answer;
    ask([&](Result<T> given) { answer = std::move(given); });
    for (int i = 0; i < 100 && !answer; ++i) store.settle();
    EXPECT_TRUE(answer.has_value());
    return *answer;
  }
  Result<console::Export> add(const ExportRules& rules) {
    return wait<console::Export>([&](auto done) { keeper->add(rules, done); });
  }
  Result<console::Export> change(uint16_t id, const ExportRules& rules) {
    return wait<console::Export>([&](auto done) { keeper->change(id, rules, done); });
  }
  Result<console::ExportEffect> effect(const ExportRules& rules) {
    return wait<console::ExportEffect>([&](auto done) { keeper->effect(rules, done); });
  }
  Result<> remove(uint16_t id) {
    return wait<void>([&](auto done) { keeper->remove(id, done); });
  }

  SystemClock clock;
  StoreUnderTest store{Engine::kMemory};
  uint64_t boot = 0;
  std::unique_ptr<Namespace> names;
  ExportKeeper::Initial initial;
  SystemRandom random;
  std::unique_ptr<Exports> exports;
  std::unique_ptr<HandleKeys> handles;
  std::vector<ExportKeeper::MountedClient> mounted;
  bool hold_effect = false;  // not all clients have been looked at
  std::vector<std::function<void()>> held;
  std::unique_ptr<ExportKeeper> keeper;
  Narrowed narrowed;
  size_t ends_of_handles = 0;
};

// An export as the versions before 2 of the record had it.
struct FirstStoredExport {
  uint32_t id = 0;
  xdr::String<4096> path;
  bool read_only = false;
  uint32_t squash = 0;
  uint32_t anonuid = 0;
  uint32_t anongid = 0;
  xdr::List<xdr::String<64>, 256> clients;
};

TEST_F(Keeper, TheSnapshotsAreNoDirectoryToExport) {
  for (const char* path : {"/.snapshots", "/.snapshots/monday", "/a/.snapshots", "/a/.snapshots/b"}) {
    const auto refused = add({.path = path});
    ASSERT_FALSE(refused.has_value()) << path;
    EXPECT_EQ(refused.error().number(), EINVAL);
  }
  EXPECT_TRUE(add({.path = "/a.snapshots"}).has_value());
  EXPECT_TRUE(add({.path = "/.snapshots2"}).has_value());
}

TEST_F(Keeper, AnExportStoredByAnEarlierVersionIsSecure) {
  const auto key = [](std::string_view of) {
    return record_key(static_cast<uint8_t>(RecordKind::kExport), of);
  };
  const auto put = [&](uint32_t version) {
    Batch batch;
    put_value(batch, key("next"), StoredNumber{8});
    put_value(
        batch, key(std::string_view("\0\7", 2)),
        FirstStoredExport{.id = 7, .path = "/old", .read_only = true, .squash = 2, .clients = {{"::1"}}},
        version);
    ASSERT_TRUE((*store).commit(batch, CommitKind::kNamespace));
  };
  put(1);
  start();
  ASSERT_EQ(keeper->all().size(), 1u);
  const ExportRules old = keeper->all()[0].rules;
  EXPECT_EQ(old, (ExportRules{.path = "/old",
                              .read_only = true,
                              .root_squash = true,
                              .all_squash = true,
                              .anonuid = 0,
                              .anongid = 0,
                              .insecure = false,
                              .manage_gids = false,
                              .clients = {"::1"}}));
  ExportRules now = old;
  for (const bool insecure : {true, false}) {
    now.insecure = insecure;
    now.manage_gids = true;
    ASSERT_TRUE(change(7, now));
    start();
    EXPECT_EQ(keeper->all()[0].rules, now);
  }
  for (const uint32_t unknown : {2U, 3U}) {
    put(unknown);
    EXPECT_EQ(ExportKeeper::initial(*store, {}).error().number(), EUCLEAN) << unknown;
  }
}

TEST_F(Keeper, WhatAnExportInsideAnotherCostsIsKnownBeforeItIsMade) {
  mounted = {{"db7-0123ab", "192.0.2.7"}, {"web3-4567cd", "198.51.100.3"}};
  const auto effect = this->effect({.path = "/inner", .clients = {"192.0.2.0/24"}});
  ASSERT_TRUE(effect.has_value());
  EXPECT_EQ(effect->inside, "/");
  EXPECT_EQ(effect->clients, 2u);
  EXPECT_EQ(effect->losing, std::vector<std::string>{"web3-4567cd"});
  EXPECT_NE(effect->text.find("1 of them may not mount /inner, and will no longer find it: web3-4567cd."),
            std::string::npos)
      << effect->text;
  EXPECT_EQ(keeper->all().size(), 1u) << "nothing was made";
  EXPECT_EQ(add({.path = "/inner", .clients = {"192.0.2.0/24"}})->warning, effect->text);
  EXPECT_EQ(this->effect({.path = "inner"}).error().number(), EINVAL);
}

TEST_F(Keeper, AnExportThatLiesInNoneCostsNothing) {
  start({});
  mounted = {{"db7-0123ab", "192.0.2.7"}};
  const auto effect = this->effect({.path = "/data"});
  ASSERT_TRUE(effect.has_value());
  EXPECT_EQ(effect->inside, "");
  EXPECT_EQ(effect->clients, 0u);
  EXPECT_EQ(effect->text, "");
}

// Looking at all clients takes turns of the loop.
TEST_F(Keeper, OfTwoThatAreAddedWhileTheClientsAreLookedAtEachIsMadeOnce) {
  mounted = {{"db7-0123ab", "192.0.2.7"}};
  hold_effect = true;
  std::vector<Result<console::Export>> answers;
  const auto note = [&](Result<console::Export> answer) { answers.push_back(std::move(answer)); };
  keeper->add({.path = "/inner"}, note);
  keeper->add({.path = "/inner"}, note);
  keeper->add({.path = "/inner/most"}, note);
  EXPECT_EQ(keeper->all().size(), 1u) << "nothing before its effect is known";
  hold_effect = false;
  for (const auto& done : std::exchange(held, {})) done();
  for (int i = 0; i < 100 && answers.size() < 3; ++i) store.settle();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(keeper->all().size(), 3u);
  const auto refused = std::ranges::find(answers, false, &Result<console::Export>::has_value);
  ASSERT_NE(refused, answers.end());
  EXPECT_EQ(refused->error().number(), EEXIST);
  const auto most = std::ranges::find_if(
      answers, [](const auto& answer) { return answer && answer->rules.path == "/inner/most"; });
  ASSERT_NE(most, answers.end());
  EXPECT_NE((*most)->warning.find("Clients of /inner must reopen"), std::string::npos) << (*most)->warning;
}

// Handles of the outer export may lead into the new one.
TEST_F(Keeper, AnExportInsideAnotherEndsTheHandlesOfThatOneAndSaysSo) {
  const ObjectHandle handle{.export_id = 1, .inode = 7, .generation = 3};
  const auto before = handles->encode(handle);
  const auto inner = add({.path = "/inner"});
  ASSERT_TRUE(inner.has_value());
  EXPECT_NE(inner->warning.find("Clients of / must reopen their files"), std::string::npos);
  EXPECT_EQ(narrowed, Narrowed{1});
  EXPECT_EQ(ends_of_handles, 1U);
  ASSERT_TRUE(handles->decode(before).has_value());
  EXPECT_TRUE(handles->decode(before)->superseded);
  const auto after = handles->encode(handle);
  EXPECT_FALSE(handles->decode(after)->superseded);
  const auto of_inner = handles->encode({.export_id = inner->id, .inode = 7, .generation = 3});
  start({});
  EXPECT_TRUE(handles->decode(before)->superseded);
  EXPECT_EQ(handles->encode(handle), after) << "the keys are kept";
  EXPECT_EQ(handles->decode(of_inner)->handle.export_id, inner->id);
  ASSERT_TRUE(remove(inner->id));
  EXPECT_EQ(ends_of_handles, 2U);
  EXPECT_EQ(handles->decode(of_inner).error(), nfs4::Status::kStale);
  EXPECT_TRUE(add({.path = "/other"})->warning.size() > 0);
}

TEST_F(Keeper, TheFileIsInForceUntilTheFirstChangeAndTheStoreFromThen) {
  EXPECT_FALSE(keeper->all()[0].stored);
  ASSERT_TRUE(names->create(kRootInode, "data", {.type = FileType::kDirectory}));
  const auto made = add({.path = "/data", .all_squash = true, .anonuid = 7, .clients = {"10.0.0.0/8"}});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->id, 2);
  EXPECT_TRUE(made->directory_exists);
  start({Export{.path = "/other"}});
  const auto all = keeper->all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rules.path, "/");
  EXPECT_TRUE(all[0].stored);
  EXPECT_EQ(all[1].rules, made->rules);
  EXPECT_EQ(exports->find(2)->squash, Squash::kAll);
}

TEST_F(Keeper, AnIdIsNeverGivenAgain) {
  ASSERT_TRUE(add({.path = "/a"}));
  ASSERT_TRUE(remove(2));
  EXPECT_EQ(exports->find(2), nullptr);
  EXPECT_NE(exports->find_accepted(2), nullptr);
  start();
  EXPECT_EQ(add({.path = "/a"})->id, 3);
}

TEST_F(Keeper, RemovingTheRootLeavesThePseudoFileSystem) {
  ASSERT_TRUE(add({.path = "/a"}));
  ASSERT_TRUE(remove(1));
  EXPECT_EQ(*exports->root("127.0.0.1"), Exports::kPseudoId);
  EXPECT_EQ(remove(Exports::kPseudoId).error().number(), ENOENT);
  ASSERT_TRUE(add({.path = "/"}));
  EXPECT_EQ(*exports->root("127.0.0.1"), 3);
}

TEST_F(Keeper, WhoMayDoLessIsTold) {
  ASSERT_TRUE(change(1, {.path = "/", .root_squash = true}));
  EXPECT_TRUE(narrowed.empty());
  ASSERT_TRUE(change(1, {.path = "/", .root_squash = false}));
  EXPECT_TRUE(narrowed.empty());
  ASSERT_TRUE(change(1, {.path = "/", .read_only = true, .root_squash = false}));
  ASSERT_TRUE(change(1, {.path = "/", .read_only = true, .root_squash = false, .clients = {"10.0.0.0/8"}}));
  EXPECT_EQ(narrowed.size(), 2u);
  EXPECT_TRUE(exports->find(1)->read_only);
  ASSERT_TRUE(change(1, {.path = "/", .insecure = true}));
  narrowed.clear();
  ASSERT_TRUE(change(1, {.path = "/", .insecure = true}));
  EXPECT_TRUE(narrowed.empty());
  ASSERT_TRUE(change(1, {.path = "/"}));
  EXPECT_EQ(narrowed, Narrowed{1});
  narrowed.clear();
  ASSERT_TRUE(change(1, {.path = "/", .manage_gids = true}));
  EXPECT_EQ(narrowed.size(), 1u) << "who is in fewer groups here than his client said";
  ASSERT_TRUE(change(1, {.path = "/"}));
  EXPECT_EQ(narrowed.size(), 2u) << "who is in more groups here than his calls name";
}

TEST_F(Keeper, RefusesWhatMakesNoSenseAndChangesNothing) {
  EXPECT_EQ(add({.path = "/"}).error().number(), EEXIST);
  EXPECT_EQ(add({.path = "a"}).error().number(), EINVAL);
  EXPECT_EQ(add({.path = std::string("/a\0b", 4)}).error().number(), EINVAL);
  EXPECT_EQ(add({.path = "/a", .clients = {"nowhere"}}).error().number(), EINVAL);
  EXPECT_EQ(change(1, {.path = "/b"}).error().number(), EINVAL);
  EXPECT_EQ(change(9, {.path = "/b"}).error().number(), ENOENT);
  EXPECT_EQ(remove(9).error().number(), ENOENT);
  EXPECT_FALSE(keeper->all()[0].stored);
  EXPECT_TRUE(narrowed.empty());
  EXPECT_FALSE(ExportKeeper::initial(*store, {})->stored);
}

TEST_F(Keeper, AStoreThatTakesNothingChangesNothing) {
  static_cast<MemoryStore&>(*store).stall(1);
  EXPECT_EQ(add({.path = "/a"}).error().number(), EAGAIN);
  EXPECT_EQ(keeper->all().size(), 1u);
  EXPECT_TRUE(add({.path = "/a"}));
}

}  // namespace
}  // namespace pnfsrdma::mds
