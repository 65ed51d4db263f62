// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quotas.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/values.h"
#include "tests/unit/mds/meta/quota_world.h"

namespace pnfsrdma::mds {
namespace {

class QuotasOfNames : public QuotaWorld {};

TEST_P(QuotasOfNames, NothingIsCountedAndTheFormatStaysUntilTheyAreOn) {
  make(kRootInode, "file", 7, 8);
  EXPECT_FALSE(quotas().on());
  EXPECT_TRUE(usage(user(7)).empty());
  EXPECT_TRUE(quotas().page({}, 10).value().empty());
  EXPECT_EQ(stored_format().value_or(kFormatBasic), kFormatBasic);
}

TEST_P(QuotasOfNames, WhatWasThereIsCountedInSlices) {
  for (int i = 0; i < 20; ++i) make(kRootInode, "file" + std::to_string(i), 7, 8);
  ASSERT_TRUE(quotas().begin());
  EXPECT_EQ(stored_format(), kFormatVersion);
  while (!quotas().counted()) count_slice(3);
  EXPECT_EQ(usage(user(7)).inodes.used, 20U);
  EXPECT_EQ(usage(group(8)).inodes.used, 20U);
  EXPECT_EQ(usage(user(0)).inodes.used, 1U) << "the root directory";
}

TEST_P(QuotasOfNames, WhatChangesBetweenTwoSlicesIsCountedOnce) {
  for (int i = 0; i < 10; ++i) make(kRootInode, "file" + std::to_string(i), 7, 8);
  ASSERT_TRUE(quotas().begin());
  count_slice(5);  // the root and four files
  names_->remove(kRootInode, "file0").value();
  names_->remove(kRootInode, "file9").value();
  make(kRootInode, "new", 7, 8);
  names_->update(id_of("file1"), {.uid = 9}).value();
  names_->update(id_of("file8"), {.uid = 9}).value();
  EXPECT_EQ(usage(user(9)).inodes.used, 1U);
  restart();
  count_all();
  EXPECT_EQ(usage(user(7)).inodes.used, 7U);
  EXPECT_EQ(usage(user(9)).inodes.used, 2U);
}

TEST_P(QuotasOfNames, MemoryCountsForOwnerAndGroupAndGoesWithTheFile) {
  begin();
  const InodeId file = make(kRootInode, "file", 7, 8);
  give(file, 3 * kGrainSize);
  EXPECT_EQ(usage(user(7)).space.used, 3 * kGrainSize);
  names_->update(file, {.uid = 9, .gid = 10}).value();
  EXPECT_TRUE(usage(user(7)).empty());
  EXPECT_TRUE(usage(group(8)).empty());
  EXPECT_EQ(usage(user(9)).space.used, 3 * kGrainSize);
  EXPECT_EQ(usage(group(10)).space.used, 3 * kGrainSize);
  names_->remove(kRootInode, "file").value();
  EXPECT_EQ(usage(user(9)).space.used, 3 * kGrainSize) << "an orphan has it still";
  take(file);
  names_->destroy(file).value();
  EXPECT_TRUE(usage(user(9)).empty());
  EXPECT_EQ(quotas().page({}, 10).value().size(), 2U) << "a record of those that have something only: root";
}

TEST_P(QuotasOfNames, NobodyGetsMoreThanTheHardLimit) {
  begin();
  limit(user(7), {.space = {.hard = 2 * kGrainSize}, .inodes = {.hard = 2}});
  const InodeId file = make(kRootInode, "one", 7, 8);
  make(kRootInode, "two", 7, 8);
  EXPECT_EQ(status(create("three", 7, 8)), Status::kDQuot);
  EXPECT_EQ(status(names_->lookup(kRootInode, "three")), Status::kNoEnt);
  EXPECT_EQ(usage(user(7)).inodes.used, 2U);
  make(kRootInode, "others", 6, 8);
  EXPECT_EQ(give_status(file, 2 * kGrainSize), Status::kOk);
  EXPECT_EQ(give_status(file, kGrainSize), Status::kDQuot);
  EXPECT_EQ(status(names_->update(id_of("others"), {.uid = 7})), Status::kDQuot) << "nor by a gift";
  EXPECT_EQ(status(names_->remove(kRootInode, "two")), Status::kOk);
  EXPECT_EQ(status(create("three", 7, 8)), Status::kOk);
}

TEST_P(QuotasOfNames, WhoHasMoreThanALimitThatCameLaterCanShrink) {
  begin();
  const InodeId file = make(kRootInode, "file", 7, 8);
  give(file, 4 * kGrainSize);
  limit(user(7), {.space = {.hard = kGrainSize}, .inodes = {.hard = 1}});
  EXPECT_EQ(give_status(file, kGrainSize), Status::kDQuot);
  EXPECT_EQ(status(names_->update(file, {.mode = 0600})), Status::kOk);
  take(file);
  EXPECT_EQ(usage(user(7)).space.used, 0U);
  EXPECT_EQ(give_status(file, kGrainSize), Status::kOk);
}

TEST_P(QuotasOfNames, AboveTheSoftLimitUseGrowsForTheGracePeriodOnly) {
  begin();
  limit(user(7), {.space = {}, .inodes = {.soft = 1, .hard = 4}});
  ASSERT_TRUE(quotas().change({.grace = QuotaGrace{.space = 100, .inodes = 100}}, clock_.wall_now()));
  EXPECT_EQ(status(create("one", 7, 8)), Status::kOk);
  EXPECT_EQ(usage(user(7)).inodes.over_since, 0U);
  EXPECT_EQ(status(create("two", 7, 8)), Status::kOk);
  EXPECT_NE(usage(user(7)).inodes.over_since, 0U);
  clock_.advance(Milliseconds(99'000));
  EXPECT_EQ(status(create("three", 7, 8)), Status::kOk);
  restart();
  clock_.advance(Milliseconds(1'000));
  EXPECT_EQ(status(create("four", 7, 8)), Status::kDQuot);
  names_->remove(kRootInode, "three").value();
  names_->remove(kRootInode, "two").value();
  EXPECT_EQ(usage(user(7)).inodes.over_since, 0U);
  EXPECT_EQ(status(create("four", 7, 8)), Status::kOk) << "a new grace period";
}

TEST_P(QuotasOfNames, WhoHasJustRemovedAFileIsToldToComeAgain) {
  begin();
  limit(user(7), {.space = {}, .inodes = {.hard = 1}});
  names_->set_in_use([](InodeId) { return true; });
  const InodeId file = make(kRootInode, "file", 7, 8);
  EXPECT_EQ(status(create("another", 7, 8)), Status::kDQuot);
  names_->remove(kRootInode, "file").value();
  EXPECT_EQ(status(create("another", 7, 8)), Status::kDelay);
  WallTime before = clock_.wall_now();
  before.seconds -= 3600;
  EXPECT_FALSE(quotas().departs(user(7), before)) << "the clock was set back";
  clock_.advance(Milliseconds(3000));
  EXPECT_EQ(status(create("another", 7, 8)), Status::kDQuot) << "somebody has it open";
  names_->destroy(file).value();
  EXPECT_EQ(status(create("another", 7, 8)), Status::kOk);
  EXPECT_EQ(status(create("one more", 7, 8)), Status::kDQuot);
}

TEST_P(QuotasOfNames, AFileWithoutANameThatBecomesAnothersIsNotWaitedForAsHis) {
  begin();
  limit(user(7), {.space = {}, .inodes = {.hard = 1}});
  names_->set_in_use([](InodeId) { return true; });
  const InodeId file = make(kRootInode, "file", 7, 8);
  names_->remove(kRootInode, "file").value();
  EXPECT_TRUE(quotas().departs(user(7), clock_.wall_now()));
  names_->update(file, {.uid = 9}).value();
  EXPECT_FALSE(quotas().departs(user(7), clock_.wall_now()));
  EXPECT_TRUE(quotas().departs(user(9), clock_.wall_now()));
  EXPECT_TRUE(quotas().departs(group(8), clock_.wall_now()));
  names_->destroy(file).value();
  for (const QuotaId& id : {user(7), user(9), group(8)})
    EXPECT_FALSE(quotas().departs(id, clock_.wall_now()));
}

TEST_P(QuotasOfNames, ALimitHoldsOnceAllIsCountedOnly) {
  for (int i = 0; i < 10; ++i) make(kRootInode, "file" + std::to_string(i), 7, 8);
  ASSERT_TRUE(quotas().begin());
  limit(user(7), {.space = {}, .inodes = {.hard = 5}});
  count_slice(4);
  EXPECT_EQ(status(create("more", 7, 8)), Status::kOk);
  EXPECT_EQ(quotas().space_left(*names_->get(id_of("more")).value(), clock_.wall_now())->bytes, UINT64_MAX);
  count_all();
  EXPECT_EQ(status(create("still more", 7, 8)), Status::kDQuot);
}

TEST_P(QuotasOfNames, LimitsSurviveARestartUntilTheyAreRemoved) {
  begin();
  const QuotaLimits some{.space = {.soft = 1, .hard = 2}, .inodes = {.soft = 3, .hard = 4}};
  limit(group(8), some);
  ASSERT_TRUE(quotas().change({.grace = QuotaGrace{.space = 5, .inodes = 6}}, clock_.wall_now()));
  restart();
  EXPECT_TRUE(quotas().counted());
  EXPECT_EQ(quotas().limits_of(group(8)), some);
  EXPECT_EQ(quotas().grace(), (QuotaGrace{.space = 5, .inodes = 6}));
  ASSERT_TRUE(quotas().remove_limits(group(8), clock_.wall_now()));
  restart();
  EXPECT_TRUE(quotas().limits().empty());
}

TEST_P(QuotasOfNames, WhoIsExemptIsSoFromWhatComesLater) {
  begin();
  limit(user(7), {});
  limit(user(0), {});
  EXPECT_EQ(quotas().limits().size(), 1U) << "root is in any case";
  restart();
  const QuotaLimits one{.space = {}, .inodes = {.hard = 1}};
  ASSERT_TRUE(quotas().change({.user_default = one, .group_default = {}}, clock_.wall_now()));
  for (const char* name : {"one", "two"}) EXPECT_EQ(status(create(name, 7, 5)), Status::kOk);
  EXPECT_EQ(status(create("three", 8, 5)), Status::kOk);
  EXPECT_EQ(status(create("four", 8, 5)), Status::kDQuot);
}

TEST_P(QuotasOfNames, SettingsChangeTogetherOrNotAtAll) {
  const QuotaLimits one{.space = {}, .inodes = {.hard = 1}};
  const QuotaLimits two{.space = {}, .inodes = {.hard = 2}};
  const Quotas::Changes all{.on = true, .grace = QuotaGrace{5, 6}, .user_default = one, .group_default = two};
  Quotas::Changes wrong = all;
  wrong.grace->space = Quotas::kGraceMax + 1;
  EXPECT_EQ(quotas().change(wrong, clock_.wall_now()).error().number(), EINVAL);
  EXPECT_FALSE(quotas().on());
  const Sequence before = store_->last_namespace_sequence();
  ASSERT_TRUE(quotas().change(all, clock_.wall_now()));
  EXPECT_EQ(store_->last_namespace_sequence(), before + 1) << "one batch";
  restart();
  EXPECT_TRUE(quotas().on());
  EXPECT_EQ(quotas().grace(), (QuotaGrace{5, 6}));
  EXPECT_EQ(quotas().default_of(QuotaKind::kUser), one);
  EXPECT_EQ(quotas().default_of(QuotaKind::kGroup), two);
  count_all();
}

TEST_P(QuotasOfNames, SpaceLeftIsTheLeastOfAllThatHaveLimits) {
  begin();
  const InodeId file = make(kRootInode, "file", 7, 8);
  give(file, kGrainSize);
  const auto left = [&] { return quotas().space_left(*names_->get(file).value(), clock_.wall_now())->bytes; };
  EXPECT_EQ(left(), UINT64_MAX);
  limit(user(7), {.space = {.soft = kGrainSize, .hard = 10 * kGrainSize}, .inodes = {}});
  limit(group(8), {.space = {.hard = 6 * kGrainSize}, .inodes = {}});
  EXPECT_EQ(left(), 5 * kGrainSize);
  EXPECT_EQ(quotas().space_left(*names_->get(file).value(), clock_.wall_now())->of, group(8));
  ASSERT_TRUE(quotas().change({.grace = QuotaGrace{.space = 0, .inodes = 0}}, clock_.wall_now()));
  EXPECT_EQ(left(), 0U) << "no grace: the soft limit is a hard one";
}

TEST_P(QuotasOfNames, WhoeverHasLeastLeftIsWhatAUserSees) {
  begin();
  const InodeId file = make(kRootInode, "file", 7, 8);
  give(file, 3 * kGrainSize);
  const auto standing = [&](std::initializer_list<QuotaId> all) {
    Quotas::Owners owners;
    for (const QuotaId& id : all) owners.add(id);
    return quotas().standing(owners, clock_.wall_now()).value();
  };
  EXPECT_EQ(standing({user(7), group(8)}).used, 3 * kGrainSize);
  EXPECT_EQ(standing({user(7), group(8)}).hard_left, UINT64_MAX);
  make(kRootInode, "other", 9, 8);
  give(id_of("other"), kGrainSize);
  limit(group(8), {.space = {.soft = 5 * kGrainSize}, .inodes = {}});
  EXPECT_EQ(standing({user(7), group(8)}).soft_left, kGrainSize);
  EXPECT_EQ(standing({user(7), group(8)}).used, 4 * kGrainSize) << "the group's";
  limit(user(7), {.space = {.soft = kGrainSize, .hard = 10 * kGrainSize}, .inodes = {}});
  EXPECT_EQ(standing({user(7), group(8)}).used, 3 * kGrainSize);
  EXPECT_EQ(standing({user(7), group(8)}).hard_left, 7 * kGrainSize);
  EXPECT_EQ(standing({user(7), group(8)}).soft_left, 0U);
  EXPECT_EQ(standing({group(8)}).hard_left, UINT64_MAX);
  EXPECT_EQ(standing({}).used, 0U);
  clock_.advance(Milliseconds(1000 * 8 * 24 * 3600));
  EXPECT_EQ(standing({user(7)}).hard_left, 0U) << "the grace period is over";
}

TEST_P(QuotasOfNames, DefaultLimitsAreOfWhoeverHasNoneOfHisOwn) {
  begin();
  const QuotaLimits two{.space = {}, .inodes = {.hard = 2}};
  ASSERT_TRUE(quotas().change({.user_default = two}, clock_.wall_now()));
  limit(user(8), {.space = {}, .inodes = {.hard = 1}});
  limit(user(9), {});
  EXPECT_EQ(quotas().limits().size(), 2U) << "that he has none is an exception";
  restart();
  for (const auto& [owner, most] : {std::pair{7U, 2}, {8U, 1}, {9U, 3}, {0U, 3}}) {
    for (int i = 0; i < 3; ++i) {
      const auto made = create(std::to_string(owner) + "-" + std::to_string(i), owner, 5);
      EXPECT_EQ(status(made), i < most ? Status::kOk : Status::kDQuot) << owner << " " << i;
    }
  }
  EXPECT_EQ(quotas().limits_of(user(7)), two);
  EXPECT_TRUE(quotas().has_default_limits(user(7)));
  EXPECT_FALSE(quotas().has_default_limits(user(8)));
  EXPECT_TRUE(quotas().limits_of(group(7)).none());
  ASSERT_TRUE(quotas().remove_limits(user(8), clock_.wall_now()));
  EXPECT_EQ(status(create("second", 8, 5)), Status::kOk);
  EXPECT_EQ(status(create("third", 8, 5)), Status::kDQuot);
  ASSERT_TRUE(quotas().change({.user_default = QuotaLimits{}}, clock_.wall_now()));
  EXPECT_EQ(status(create("third", 8, 5)), Status::kOk);
  restart();
  EXPECT_TRUE(quotas().default_of(QuotaKind::kUser).none());
}

TEST_P(QuotasOfNames, ADefaultSoftLimitMayBeExceededFromTheNextGrowthOn) {
  begin();
  ASSERT_TRUE(quotas().change({.grace = QuotaGrace{.space = 100, .inodes = 100}}, clock_.wall_now()));
  const auto soft = [&](uint64_t inodes) {
    const QuotaLimits limits{.space = {}, .inodes = {.soft = inodes}};
    ASSERT_TRUE(quotas().change({.group_default = limits}, clock_.wall_now()));
  };
  for (const char* name : {"one", "two"}) make(kRootInode, name, 7, 8);
  soft(1);
  EXPECT_EQ(usage(group(8)).inodes.over_since, 0U) << "nobody is looked at";
  clock_.advance(Milliseconds(1000'000));
  EXPECT_EQ(status(create("three", 7, 8)), Status::kOk);
  clock_.advance(Milliseconds(100'000));
  EXPECT_EQ(status(create("four", 7, 8)), Status::kDQuot);
  soft(0);
  EXPECT_EQ(usage(group(8)).inodes.over_since, 0U);
  clock_.advance(Milliseconds(100'000));
  soft(1);
  EXPECT_EQ(status(create("four", 7, 8)), Status::kOk) << "it is another limit";
  clock_.advance(Milliseconds(100'000));
  EXPECT_EQ(status(create("five", 7, 8)), Status::kDQuot);
  soft(5);
  EXPECT_EQ(status(create("five", 7, 8)), Status::kOk);
  EXPECT_EQ(status(create("six", 7, 8)), Status::kOk) << "above it, but not for long";
  clock_.advance(Milliseconds(100'000));
  EXPECT_EQ(status(create("seven", 7, 8)), Status::kDQuot);
  soft(9);
  soft(5);
  EXPECT_EQ(status(create("seven", 7, 8)), Status::kOk) << "he was not above the one in between";
  clock_.advance(Milliseconds(100'000));
  EXPECT_EQ(status(create("eight", 7, 8)), Status::kDQuot);
  soft(4);
  EXPECT_EQ(status(create("eight", 7, 8)), Status::kDQuot) << "less gives nobody more time";
}

TEST_P(QuotasOfNames, CountedAgainBesideChangesWhatIsWrongIsMended) {
  const auto recount = [&](size_t most) {
    const auto slice = quotas().next_recount_slice(most);
    ASSERT_TRUE(slice);
    quotas().recount(*slice);
  };
  EXPECT_EQ(quotas().begin_recount().error().number(), EBUSY) << "they are off";
  for (int i = 0; i < 10; ++i) make(kRootInode, "file" + std::to_string(i), 7, 8);
  begin();
  give(id_of("file3"), 4 * kGrainSize);
  Batch batch;
  put_quota(batch, user(7), {.space = {.used = 4096}, .inodes = {.used = 1}});
  put_quota(batch, group(8), {});
  put_quota(batch, group(77), {.space = {}, .inodes = {.used = 1}});
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  restart();
  ASSERT_TRUE(quotas().begin_recount());
  EXPECT_EQ(quotas().begin_recount().error().number(), EBUSY);
  recount(5);
  names_->remove(kRootInode, "file0").value();
  names_->remove(kRootInode, "file9").value();
  make(kRootInode, "new", 7, 8);
  names_->update(id_of("file1"), {.uid = 9}).value();
  names_->update(id_of("file8"), {.uid = 9}).value();
  give(id_of("file2"), kGrainSize);
  give(id_of("file7"), kGrainSize);
  while (!quotas().recounted()) recount(2);
  make(kRootInode, "last", 7, 8);
  std::vector<Quotas::Wrong> wrong;
  for (std::optional<QuotaId> from = QuotaId{}; from;) {
    const auto compared = quotas().compare(*from, 2).value();
    wrong.insert(wrong.end(), compared.wrong.begin(), compared.wrong.end());
    ASSERT_TRUE(quotas().mend(compared.wrong, clock_.wall_now()));
    from = compared.next;
  }
  quotas().end_recount();
  EXPECT_EQ(wrong.size(), 3U);
  EXPECT_EQ(usage(user(7)).inodes.used, 8U);
  EXPECT_EQ(usage(user(7)).space.used, 6 * kGrainSize);
  EXPECT_EQ(usage(user(9)).inodes.used, 2U);
  EXPECT_TRUE(usage(group(77)).empty());
  restart();  // and the checker agrees
}

TEST_P(QuotasOfNames, AGracePeriodIsKeptBeforeTheyAreOn) {
  ASSERT_TRUE(quotas().change({.grace = QuotaGrace{.space = 5, .inodes = 6}}, clock_.wall_now()));
  restart();
  EXPECT_EQ(quotas().grace().inodes, 6U);
}

TEST_P(QuotasOfNames, ARecordThatCannotBeReadHindersNoRemoval) {
  begin();
  make(kRootInode, "file", 7, 8);
  Batch batch;
  batch.put(quota_key(kQuotaTag, user(7)), "garbage");
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  restart();
  EXPECT_EQ(status(create("more", 7, 8)), Status::kIo);
  EXPECT_EQ(quotas().page({}, 10).error().to_string().find("user 7: "), 0U);
  EXPECT_EQ(status(names_->remove(kRootInode, "file")), Status::kOk);
}

TEST_P(QuotasOfNames, ARecordThatCannotBeReadDoesNotKeepAllFromBeingCounted) {
  make(kRootInode, "file", 7, 8);
  ASSERT_TRUE(quotas().begin());
  Batch batch;
  batch.put(quota_key(kQuotaTag, user(7)), "garbage");
  ASSERT_TRUE(store_->commit(batch, CommitKind::kState));
  count_all();
  EXPECT_EQ(usage(user(7)).inodes.used, 1U);
}

TEST_P(QuotasOfNames, WhoHasNoLimitTakesNoLimitsPlace) {
  begin();
  const QuotaLimits some{.space = {.hard = kGrainSize}, .inodes = {}};
  EXPECT_TRUE(quotas().there_may_be_more(some));
  for (uint64_t one = 1; one <= Quotas::kLimitsMax; ++one) limit(user(one), {});
  EXPECT_FALSE(quotas().there_may_be_more({}));
  EXPECT_EQ(quotas().set_limits(group(1), {}, clock_.wall_now()).error().number(), EMFILE);
  limit(group(1), some);
  EXPECT_EQ(quotas().set_limits(group(1), {}, clock_.wall_now()).error().number(), EMFILE)
      << "it has one now";
  limit(user(1), some);
  limit(group(2), {});
  ASSERT_TRUE(quotas().remove_limits(group(2), clock_.wall_now()));
  EXPECT_TRUE(quotas().there_may_be_more({}));
  restart();
  EXPECT_TRUE(quotas().there_may_be_more({}));
  limit(group(2), {});
  EXPECT_FALSE(quotas().there_may_be_more({}));
}

TEST_P(QuotasOfNames, AnInodeThatCannotBeReadCountsForNobody) {
  const InodeId damaged = make(kRootInode, "damaged", 7, 8);
  make(kRootInode, "file", 7, 8);
  Batch batch;
  batch.put(number_key(kInodeTag, damaged), "garbage");
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  begin();
  EXPECT_EQ(usage(user(7)).inodes.used, 1U);
  broken_on_purpose();
}

TEST_P(QuotasOfNames, AGracePeriodIsTenYearsAtMost) {
  EXPECT_EQ(quotas()
                .change({.grace = QuotaGrace{.space = Quotas::kGraceMax + 1, .inodes = 0}}, clock_.wall_now())
                .error()
                .number(),
            EINVAL);
  EXPECT_EQ(quotas().grace(), QuotaGrace{});
}

TEST_P(QuotasOfNames, AWrongCountIsFoundByTheCheckerAndHindersNoRemoval) {
  begin();
  make(kRootInode, "file", 7, 8);
  Batch batch;
  put_quota(batch, user(7), {.space = {.used = 4096}, .inodes = {.used = 1}});
  put_quota(batch, group(8), {});
  put_quota(batch, group(77), {.space = {}, .inodes = {.used = 1}});
  ASSERT_TRUE(store_->commit(batch, CommitKind::kNamespace));
  EXPECT_EQ(check_namespace(*store_).value().problems.size(), 3U);
  restart();
  EXPECT_EQ(status(names_->remove(kRootInode, "file")), Status::kOk);
  broken_on_purpose();
}

PNFSRDMA_OVER_BOTH_ENGINES(QuotasOfNames);

}  // namespace
}  // namespace pnfsrdma::mds
