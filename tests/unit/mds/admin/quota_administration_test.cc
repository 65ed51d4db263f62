// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/quota_administration.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/unit/mds/admin/admin_world.h"

namespace pnfsrdma::mds::testing {
namespace {

using console::QuotaKind;
using Place = console::Administration::QuotaPlace;

class QuotaAdministration : public ::testing::Test {
 protected:
  void TearDown() override {
    const auto report = check_namespace(world_.layouts.store);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }

  Namespace& names() { return *world_.layouts.names; }
  Administrator& administrator() { return world_.administrator; }
  void settle() { world_.layouts.settle(); }
  InodeId make(const std::string& name, uint32_t uid = 0, InodeId directory = kRootInode,
               FileType type = FileType::kRegular) {
    return names().create(directory, name, {.type = type, .uid = uid, .gid = uid}).value().inode->id;
  }

  // What is answered once the loop is quiet.
  template <typename T, typename Ask>
  Result<T> answer(Ask ask) {
    std::optional<Result<T>> got;
    ask([&got](Result<T> one) { got = std::move(one); });
    for (int i = 0; i < 1000 && !got; ++i) settle();
    return got ? *std::move(got) : Result<T>(fail(ETIME, "no answer"));
  }
  Result<console::Quota> limit(QuotaKind kind, uint64_t id, const console::QuotaLimits& limits) {
    return answer<console::Quota>([&](auto done) { administrator().limit_quota({kind, id}, limits, done); });
  }
  Result<console::Quota> add_tree(const std::string& path) {
    return answer<console::Quota>([&](auto done) { administrator().add_quota_tree(path, done); });
  }
  Result<console::Quota> one(QuotaKind kind, uint64_t id) {
    return answer<console::Quota>([&](auto done) { administrator().quota({kind, id}, done); });
  }
  console::QuotaPage page(std::optional<QuotaKind> kind = {}, std::optional<Place> after = {},
                          size_t most = 100) {
    return answer<console::QuotaPage>([&](auto done) { administrator().quotas(kind, after, most, done); })
        .value();
  }
  void wait_until_counted() {
    for (int i = 0; i < 1000 && !names().quotas().counted(); ++i) settle();
    ASSERT_TRUE(names().quotas().counted());
  }

  AdminWorld world_;
};

TEST_F(QuotaAdministration, TheFirstLimitSwitchesThemOn) {
  for (int i = 0; i < 300; ++i) make("file" + std::to_string(i), 7);
  EXPECT_EQ(page().settings.state, console::QuotaState::kOff);
  const auto set = limit(QuotaKind::kUser, 7, {.space = {.soft = 1, .hard = 2}, .inodes = {}});
  ASSERT_TRUE(set) << set.error().to_string();
  EXPECT_EQ(set->limits.space.hard, 2U);
  wait_until_counted();
  const auto user = one(QuotaKind::kUser, 7);
  EXPECT_EQ(user->inodes.used, 300U);
  EXPECT_TRUE(user->complete);
  EXPECT_EQ(page().settings.state, console::QuotaState::kOn);
  EXPECT_EQ(page().settings.counted_share, 1);
}

TEST_F(QuotaAdministration, EverybodysLimitsAreThoseOfWhoHasNone) {
  make("a", 7);
  make("b", 8);
  const console::QuotaLimits two{.space = {}, .inodes = {.soft = 0, .hard = 2}};
  const auto changed = answer<console::QuotaSettings>(
      [&](auto done) { administrator().change_quotas({.user_default = two}, done); });
  ASSERT_TRUE(changed) << changed.error().to_string();
  EXPECT_EQ(changed->user_default, two);
  EXPECT_NE(changed->state, console::QuotaState::kOff) << "the first limit";
  wait_until_counted();
  EXPECT_EQ(one(QuotaKind::kUser, 7)->limits_from, console::QuotaSource::kDefault);
  EXPECT_EQ(one(QuotaKind::kUser, 7)->limits, two);
  EXPECT_EQ(one(QuotaKind::kUser, 0)->limits_from, console::QuotaSource::kNone) << "root";
  ASSERT_TRUE(limit(QuotaKind::kUser, 8, {}));
  EXPECT_EQ(one(QuotaKind::kUser, 8)->limits_from, console::QuotaSource::kOwn);
  EXPECT_EQ(one(QuotaKind::kUser, 8)->limits, console::QuotaLimits{});
  const auto own = answer<console::Quota>(
      [&](auto done) { administrator().limit_quota({QuotaKind::kUser, 8}, std::nullopt, done); });
  EXPECT_EQ(own->limits_from, console::QuotaSource::kDefault);
  const auto wrong = answer<console::QuotaSettings>([&](auto done) {
    administrator().change_quotas(
        {.space_grace_seconds = 5, .group_default = console::QuotaLimits{.space = {3, 2}, .inodes = {}}},
        done);
  });
  EXPECT_EQ(wrong.error().number(), EINVAL);
  EXPECT_NE(page().settings.space_grace_seconds, 5U) << "nothing has changed";
}

TEST_F(QuotaAdministration, ARecountMendsWhatIsWrong) {
  EXPECT_EQ(administrator().recount_quotas("root").error().number(), EBUSY) << "they are off";
  for (size_t i = 0; i < 3 * QuotaRecounter::kInodesPerTurn; ++i)
    make("file" + std::to_string(i), static_cast<uint32_t>(i));
  ASSERT_TRUE(limit(QuotaKind::kUser, 7, {.space = {}, .inodes = {.soft = 0, .hard = 50}}));
  wait_until_counted();
  const auto wrong = [&](uint64_t user) {
    const Quotas::Wrong one{.id = {mds::QuotaKind::kUser, user}, .on_record = {}, .counted = {.inodes = 99}};
    ASSERT_TRUE(names().quotas().mend({one}, {}));
  };
  wrong(7);
  wrong(4000);
  const auto ended = [&](uint64_t id) {
    const auto jobs = administrator().jobs();
    const auto job = std::ranges::find(jobs, id, &console::Job::id);
    return job->state == console::JobState::kRunning ? std::optional<console::Job>() : *job;
  };
  const auto job = administrator().recount_quotas("root");
  ASSERT_TRUE(job);
  EXPECT_EQ(administrator().recount_quotas("root").error().number(), EBUSY);
  for (int i = 0; i < 1000 && !ended(job->id); ++i) settle();
  EXPECT_EQ(ended(job->id)->message, "2 counts were wrong: mended");
  EXPECT_EQ(one(QuotaKind::kUser, 7)->inodes.used, 1U);
  EXPECT_EQ(one(QuotaKind::kUser, 4000)->inodes.used, 0U);
  // One that is cancelled changes nothing, and another one can begin.
  wrong(7);
  const auto second = administrator().recount_quotas("root");
  ASSERT_TRUE(administrator().cancel_job(second->id));
  for (int i = 0; i < 1000 && !ended(second->id); ++i) settle();
  EXPECT_EQ(ended(second->id)->state, console::JobState::kCancelled);
  EXPECT_EQ(one(QuotaKind::kUser, 7)->inodes.used, 99U);
  const auto third = administrator().recount_quotas("root");
  for (int i = 0; i < 1000 && !ended(third->id); ++i) settle();
  EXPECT_EQ(ended(third->id)->message, "1 counts were wrong: mended");
  // One that meets a row that cannot be read ends, too, and says which.
  Batch damage;
  damage.put(quota_key(kQuotaTag, {mds::QuotaKind::kUser, 5000}), "garbage");
  ASSERT_TRUE(world_.layouts.store.commit(damage, CommitKind::kNamespace));
  const auto fourth = administrator().recount_quotas("root");
  for (int i = 0; i < 1000 && !ended(fourth->id); ++i) settle();
  ASSERT_TRUE(ended(fourth->id));
  EXPECT_EQ(ended(fourth->id)->state, console::JobState::kFailed);
  EXPECT_NE(ended(fourth->id)->message.find("user 5000"), std::string::npos) << ended(fourth->id)->message;
  Batch repair;
  repair.erase(quota_key(kQuotaTag, {mds::QuotaKind::kUser, 5000}));
  ASSERT_TRUE(world_.layouts.store.commit(repair, CommitKind::kNamespace));
  const auto fifth = administrator().recount_quotas("root");
  ASSERT_TRUE(fifth) << "another one can begin";
  for (int i = 0; i < 1000 && !ended(fifth->id); ++i) settle();
  EXPECT_EQ(ended(fifth->id)->state, console::JobState::kDone);
}

TEST_F(QuotaAdministration, WhoIsExemptIsSoFromWhatComesLater) {
  ASSERT_TRUE(limit(QuotaKind::kUser, 8, {}));
  EXPECT_EQ(one(QuotaKind::kUser, 8)->limits_from, console::QuotaSource::kOwn);
  const console::QuotaLimits two{.space = {}, .inodes = {.soft = 0, .hard = 2}};
  ASSERT_TRUE(answer<console::QuotaSettings>(
      [&](auto done) { administrator().change_quotas({.user_default = two}, done); }));
  EXPECT_EQ(one(QuotaKind::kUser, 8)->limits, console::QuotaLimits{});
  ASSERT_TRUE(limit(QuotaKind::kUser, 0, {}));
  EXPECT_EQ(one(QuotaKind::kUser, 0)->limits_from, console::QuotaSource::kNone);
}

TEST_F(QuotaAdministration, CountingIsSeenOnItsWay) {
  for (size_t i = 0; i < 4 * QuotaCounter::kInodesPerTurn; ++i) make("file" + std::to_string(i));
  std::optional<console::QuotaSettings> got;
  administrator().change_quotas({.on = true},
                                [&](Result<console::QuotaSettings> settings) { got = *settings; });
  const auto seen = page();
  EXPECT_TRUE(seen.settings.state == console::QuotaState::kCounting || names().quotas().counted());
  wait_until_counted();
  EXPECT_TRUE(got);
}

TEST_F(QuotaAdministration, WhatMakesNoSenseIsRefusedAndSwitchesNothingOn) {
  EXPECT_EQ(limit(QuotaKind::kUser, 7, {.space = {.soft = 3, .hard = 2}, .inodes = {}}).error().number(),
            EINVAL);
  EXPECT_EQ(limit(QuotaKind::kTree, 7, {}).error().number(), ENOENT);
  EXPECT_EQ(one(QuotaKind::kTree, 7).error().number(), ENOENT);
  const auto changed = answer<console::QuotaSettings>([&](auto done) {
    administrator().change_quotas({.space_grace_seconds = Quotas::kGraceMax + 1}, done);
  });
  EXPECT_EQ(changed.error().number(), EINVAL);
  make("file");
  EXPECT_EQ(add_tree("/file").error().number(), EINVAL);
  EXPECT_EQ(limit(QuotaKind::kUser, uint64_t{1} << 32, {}).error().number(), EINVAL);
  EXPECT_TRUE(limit(QuotaKind::kUser, 0, {})) << "none for who has none";
  EXPECT_FALSE(names().quotas().on());
}

TEST_F(QuotaAdministration, ThePagesHaveEverybodyOnceInOrder) {
  make("a", 7);
  make("b", 9);
  ASSERT_TRUE(limit(QuotaKind::kUser, 8, {.space = {}, .inodes = {.soft = 1, .hard = 1}}));
  ASSERT_TRUE(limit(QuotaKind::kGroup, 5, {.space = {.hard = 1}, .inodes = {}}));
  wait_until_counted();
  std::string found;
  std::optional<Place> after;
  for (;;) {
    const console::QuotaPage part = page({}, after, 2);
    for (const console::Quota& quota : part.all) {
      found += (quota.kind == QuotaKind::kUser ? " u" : " g") + std::to_string(quota.id);
      after = Place{quota.kind, quota.id};
    }
    if (part.all.size() < 2) break;
  }
  EXPECT_EQ(found, " u0 u7 u8 u9 g0 g5 g7 g9");
  EXPECT_EQ(page(QuotaKind::kGroup).all.size(), 4U);
  EXPECT_EQ(page(QuotaKind::kUser, Place{QuotaKind::kUser, 8}).all.size(), 1U);
}

TEST_F(QuotaAdministration, ATreeIsMarkedInTheBackgroundHoweverDeep) {
  InodeId at = make("top", 0, kRootInode, FileType::kDirectory);
  const InodeId top = at;
  uint64_t inodes = 1;
  for (int depth = 0; depth < 5; ++depth) {
    for (size_t i = 0; i < QuotaTreeWalk::kEntriesPerTurn + 10; ++i, ++inodes) make(std::to_string(i), 7, at);
    at = make("below", 0, at, FileType::kDirectory);
    ++inodes;
  }
  const auto made = add_tree("/top");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->path, "/top");
  for (int i = 0; i < 1000 && !one(QuotaKind::kTree, made->id)->complete; ++i) settle();
  EXPECT_EQ(one(QuotaKind::kTree, made->id)->inodes.used, inodes);
  EXPECT_TRUE(names().quotas().trees().of_root(top)->complete);
}

TEST_F(QuotaAdministration, ADirectoryThatGrowsAsFastAsItIsMarkedHoldsNobodyUp) {
  const InodeId top = make("top", 0, kRootInode, FileType::kDirectory);
  for (size_t i = 0; i < 3 * QuotaTreeWalk::kEntriesPerTurn; ++i) make(std::to_string(i), 7, top);
  std::optional<uint64_t> made;
  administrator().add_quota_tree("/top", [&](Result<console::Quota> quota) { made = quota->id; });
  const auto complete = [&] { return made && names().quotas().trees().find({*made})->complete; };
  for (int turn = 0; turn < 400 && !complete(); ++turn) {
    for (size_t i = 0; i < QuotaTreeWalk::kEntriesPerTurn; ++i)
      make(std::to_string(turn) + "." + std::to_string(i), 7, top);
    world_.layouts.loop.run_once(Milliseconds(0));
  }
  EXPECT_TRUE(complete());
}

TEST_F(QuotaAdministration, ATreeThatIsRenamedIsShownWhereItIs) {
  make("top", 0, kRootInode, FileType::kDirectory);
  const auto made = add_tree("/top");
  ASSERT_TRUE(made);
  names().rename(kRootInode, "top", kRootInode, "other").value();
  make("top", 0, kRootInode, FileType::kDirectory);
  EXPECT_EQ(one(QuotaKind::kTree, made->id)->path, "/other");
}

TEST_F(QuotaAdministration, SaysWhyThereIsNoTree) {
  make("top", 0, kRootInode, FileType::kDirectory);
  make("file");
  EXPECT_EQ(add_tree("/nothing").error().number(), ENOENT);
  EXPECT_EQ(add_tree("top").error().number(), EINVAL);
  EXPECT_EQ(add_tree("/file").error().number(), EINVAL);
  ASSERT_TRUE(add_tree("/top"));
  EXPECT_EQ(add_tree("/top").error().number(), EEXIST);
  EXPECT_EQ(add_tree("/").error().number(), EBUSY);
  EXPECT_EQ(names().quotas().trees().all().size(), 1U);
}

TEST_F(QuotaAdministration, ATreeIsRemovedAndItsLimitsWithIt) {
  make("top", 0, kRootInode, FileType::kDirectory);
  const auto made = add_tree("/top");
  ASSERT_TRUE(limit(QuotaKind::kTree, made->id, {.space = {.hard = 5}, .inodes = {}}));
  std::optional<Result<>> removed;
  administrator().remove_quota_tree(made->id, [&](Result<> outcome) { removed = outcome; });
  settle();
  ASSERT_TRUE(removed && *removed);
  EXPECT_TRUE(names().quotas().limits().empty());
  EXPECT_TRUE(page(QuotaKind::kTree).all.empty());
}

TEST_F(QuotaAdministration, GracePeriodsChangeOneByOne) {
  const auto changed = answer<console::QuotaSettings>(
      [&](auto done) { administrator().change_quotas({.inode_grace_seconds = 60}, done); });
  EXPECT_EQ(changed->inode_grace_seconds, 60U);
  EXPECT_EQ(changed->space_grace_seconds, QuotaGrace().space);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing
