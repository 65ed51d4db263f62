// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/user_groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/ops/fake_name_service.h"

namespace pnfsrdma::mds::user_groups_test {
namespace {

constexpr uint32_t kUser = 1000;
constexpr uint32_t kOther = 2000;
const GroupList kGroups = {100, 4040};
const GroupList kFewer = {100};

struct Groups : ::testing::Test {
  using Got = std::shared_ptr<std::optional<UserGroups::Answer>>;

  Got find(uint32_t uid) {
    auto got = std::make_shared<std::optional<UserGroups::Answer>>();
    groups->find(uid, [got](UserGroups::Answer answer) { *got = std::move(answer); });
    return got;
  }
  void turn() { loop.run_once(Milliseconds(1)); }
  // What is answered, as soon as it is; nothing: nobody knows.
  std::optional<GroupList> answer(const Got& got) {
    while (!*got) turn();
    return **got ? std::optional(***got) : std::nullopt;
  }
  std::optional<GroupList> ask(uint32_t uid) { return answer(find(uid)); }
  void pass(Milliseconds time) {
    clock.advance(time);
    turn();
  }

  ManualClock clock;
  EventLoop loop{clock};
  FakeNameService names;
  std::unique_ptr<UserGroups> groups = std::make_unique<UserGroups>(loop, names);
};

TEST_F(Groups, AreAskedForOnceInTheirLifetime) {
  names.set(kUser, kGroups);
  EXPECT_EQ(ask(kUser), kGroups);
  names.set(kUser, kFewer);
  pass(UserGroups::kLifetime - Milliseconds(1));
  EXPECT_EQ(ask(kUser), kGroups);
  EXPECT_EQ(names.asked(kUser), 1);
  pass(Milliseconds(1));
  EXPECT_EQ(ask(kUser), kFewer);
  EXPECT_EQ(names.asked(kUser), 2);
}

TEST_F(Groups, OfAUserNobodyKnowsAreNoneAndThatIsRemembered) {
  EXPECT_EQ(ask(kUser), GroupList{});
  EXPECT_EQ(ask(kUser), GroupList{});
  EXPECT_EQ(names.asked(kUser), 1);
}

TEST_F(Groups, CallersOfOneUserShareAQuestion) {
  names.set(kUser, kGroups);
  names.hold(kUser);
  const Got first = find(kUser);
  const Got second = find(kUser);
  names.release(kUser);
  EXPECT_EQ(answer(first), kGroups);
  EXPECT_EQ(answer(second), kGroups);
  EXPECT_EQ(names.asked(kUser), 1);
}

TEST_F(Groups, ASlowAnswerIsNotWaitedForAndCountsWhenItComes) {
  names.set(kUser, kGroups);
  names.hold(kUser);
  const Got first = find(kUser);
  pass(UserGroups::kPatience - Milliseconds(1));
  EXPECT_FALSE(first->has_value());
  pass(Milliseconds(1));
  EXPECT_EQ(answer(first), std::nullopt);
  EXPECT_TRUE(groups->failure().has_value());
  pass(UserGroups::kRetry);
  const Got second = find(kUser);
  ASSERT_TRUE(second->has_value()) << "nobody waits for it a second time";
  EXPECT_EQ(answer(second), std::nullopt);
  names.release(kUser);
  while (groups->failure()) turn();
  EXPECT_EQ(ask(kUser), kGroups);
  EXPECT_EQ(names.asked(kUser), 1);
}

TEST_F(Groups, OneSlowAnswerDoesNotKeepOthersWaiting) {
  names.set(kOther, kFewer);
  names.hold(kUser);
  const Got slow = find(kUser);
  names.wait_until_asked(kUser, 1);
  EXPECT_EQ(ask(kOther), kFewer);
  EXPECT_FALSE(slow->has_value());
  names.release(kUser);
  EXPECT_EQ(answer(slow), GroupList{});
}

TEST_F(Groups, AnOldAnswerCountsForAnHourMoreWhileTheNameServiceFails) {
  names.set(kUser, kGroups);
  ASSERT_EQ(ask(kUser), kGroups);
  names.set_failing(true);
  pass(UserGroups::kLifetime);
  EXPECT_EQ(ask(kUser), kGroups);
  EXPECT_EQ(names.asked(kUser), 2);
  EXPECT_EQ(ask(kUser), kGroups);
  EXPECT_EQ(names.asked(kUser), 2) << "not asked for every call";
  pass(UserGroups::kOldAnswers - Milliseconds(1));
  EXPECT_EQ(ask(kUser), kGroups);
  pass(Milliseconds(1));
  EXPECT_EQ(ask(kUser), std::nullopt);
  names.set_failing(false);
  pass(UserGroups::kRetry);
  EXPECT_EQ(ask(kUser), kGroups);
  EXPECT_FALSE(groups->failure().has_value());
}

TEST_F(Groups, AnOldAnswerCountsWhileANewOneIsLate) {
  names.set(kUser, kGroups);
  ASSERT_EQ(ask(kUser), kGroups);
  pass(UserGroups::kLifetime);
  names.set(kUser, kFewer);
  names.hold(kUser);
  const Got got = find(kUser);
  EXPECT_FALSE(got->has_value()) << "what is too old is asked first";
  pass(UserGroups::kPatience);
  EXPECT_EQ(answer(got), kGroups);
  names.release(kUser);
  while (groups->failure()) turn();
  EXPECT_EQ(ask(kUser), kFewer);
}

TEST_F(Groups, AreAskedForAnewOnceForgotten) {
  names.set(kUser, kGroups);
  ASSERT_EQ(ask(kUser), kGroups);
  names.set(kUser, kFewer);
  groups->forget();
  EXPECT_EQ(ask(kUser), kFewer);
  names.set_failing(true);
  groups->forget();
  EXPECT_EQ(ask(kUser), std::nullopt) << "not what was forgotten";
}

TEST_F(Groups, ThatAreBeingAskedForWhenForgottenAreAskedForAgain) {
  names.set(kUser, kGroups);
  names.hold(kUser);
  const Got got = find(kUser);
  names.wait_until_asked(kUser, 1);
  names.set(kUser, kFewer);
  groups->forget();
  names.release(kUser);
  EXPECT_EQ(answer(got), kFewer);
  EXPECT_EQ(names.asked(kUser), 2);
}

TEST_F(Groups, QuestionsAreBounded) {
  std::vector<Got> asked;
  for (uint32_t uid = 1; uid <= UserGroups::kQuestionsMax; ++uid) {
    names.hold(uid);
    asked.push_back(find(uid));
  }
  const Got more = find(kOther);
  ASSERT_TRUE(more->has_value());
  EXPECT_EQ(answer(more), std::nullopt);
  for (uint32_t uid = 1; uid <= UserGroups::kQuestionsMax; ++uid) names.release(uid);
  for (const Got& got : asked) EXPECT_EQ(answer(got), GroupList{});
}

TEST_F(Groups, EndWhileAQuestionIsAsked) {
  names.hold(kUser);
  const Got got = find(kUser);
  names.wait_until_asked(kUser, 1);
  names.release(kUser);
  groups.reset();
  pass(UserGroups::kPatience);
  EXPECT_FALSE(got->has_value());
}

TEST(HostNames, KnowThisUserAndNotTheLastOne) {
  HostNameService host;
  const auto mine = host.groups_of(getuid());
  ASSERT_TRUE(mine.has_value());
  EXPECT_NE(std::ranges::find(*mine, getgid()), mine->end());
  const auto nobodys = host.groups_of(UINT32_MAX - 7);
  ASSERT_TRUE(nobodys.has_value());
  EXPECT_TRUE(nobodys->empty());
}

}  // namespace
}  // namespace pnfsrdma::mds::user_groups_test
