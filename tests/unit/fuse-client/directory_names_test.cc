// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_names.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace pnfsrdma::fuse_client {
namespace {

nfs4::ChangeInfo moved(uint64_t before, uint64_t after) {
  return {.atomic = true, .before = before, .after = after};
}

class DirectoryNamesTest : public testing::Test {
 protected:
  DirectoryNames names;
};

TEST_F(DirectoryNamesTest, WhatIsNotThereIsKnownAtOneValueOfTheChangeAttribute) {
  EXPECT_FALSE(names.lacks("a", 0));
  names.absent("a", 5);
  names.absent("b", 5);
  EXPECT_TRUE(names.lacks("a", 5));
  EXPECT_TRUE(names.lacks("b", 5));
  EXPECT_FALSE(names.lacks("c", 5));
  EXPECT_FALSE(names.lacks("a", 6));
  names.absent("c", 6);
  EXPECT_FALSE(names.lacks("a", 6));
  names.absent("a", 5);  // overtaken
  EXPECT_FALSE(names.lacks("a", 6));
  EXPECT_TRUE(names.lacks("c", 6));
}

TEST_F(DirectoryNamesTest, OwnChangesKeepWhatIsKnown) {
  names.absent("a", 5);
  names.absent("b", 5);
  names.added("a", moved(5, 6));
  EXPECT_FALSE(names.lacks("a", 6));
  EXPECT_TRUE(names.lacks("b", 6));
  EXPECT_FALSE(names.lacks("b", 5));
  names.removed("a", moved(6, 7));
  EXPECT_TRUE(names.lacks("a", 7));
  names.renamed("c", "b", moved(7, 9));
  EXPECT_FALSE(names.lacks("b", 9));
  EXPECT_TRUE(names.lacks("c", 9));
}

TEST_F(DirectoryNamesTest, TheListOfSnapshotsMayComeAtAnyTime) {
  names.absent(".snapshots", 5);
  EXPECT_FALSE(names.lacks(".snapshots", 5));
  names.complete({"a"}, 6);
  EXPECT_TRUE(names.lacks("b", 6));
  EXPECT_FALSE(names.lacks(".snapshots", 6));
}

TEST_F(DirectoryNamesTest, ExchangedNamesStayAndHaveOtherFiles) {
  names.complete({"a", "b", "c"}, 5);
  for (const char* name : {"a", "b", "c"}) names.found(name, 5);
  names.exchanged({"a", "b"}, moved(5, 9));
  EXPECT_FALSE(names.has_found("a", 9));
  EXPECT_FALSE(names.has_found("b", 9));
  EXPECT_TRUE(names.has_found("c", 9));
  EXPECT_FALSE(names.lacks("a", 9));
  EXPECT_TRUE(names.lacks("d", 9)) << "it is still known completely";
  names.exchanged({"a"}, moved(11, 12));
  EXPECT_FALSE(names.has_found("c", 12));
}

TEST_F(DirectoryNamesTest, ChangesOfOthersEndIt) {
  names.absent("a", 5);
  names.added("b", moved(6, 7));  // somebody else's was between
  EXPECT_FALSE(names.lacks("a", 7));
  names.absent("a", 7);
  names.added("c", {.atomic = false, .before = 7, .after = 8});
  EXPECT_FALSE(names.lacks("a", 8));
  names.complete({"x"}, 9);
  names.removed("x", moved(10, 11));
  EXPECT_FALSE(names.lacks("a", 11));
  names.complete({"x"}, 12);
  names.forget();
  EXPECT_FALSE(names.lacks("a", 12));
}

TEST_F(DirectoryNamesTest, ACompleteDirectoryLacksAllElse) {
  names.complete({"x"}, 3);
  EXPECT_FALSE(names.lacks("x", 3));
  EXPECT_TRUE(names.lacks("y", 3));
  names.added("y", moved(3, 4));
  EXPECT_FALSE(names.lacks("y", 4));
  names.removed("x", moved(4, 5));
  EXPECT_TRUE(names.lacks("x", 5));
  EXPECT_TRUE(names.lacks("z", 5));
}

TEST_F(DirectoryNamesTest, WhatWasFoundIsOfTheSameFileUntilTheNameIsMovedOrTheDirectoryChanged) {
  names.found("a", 5);
  EXPECT_TRUE(names.has_found("a", 5));
  EXPECT_FALSE(names.has_found("a", 6));
  EXPECT_FALSE(names.has_found("b", 5));
  names.added("b", moved(5, 6));
  EXPECT_TRUE(names.has_found("a", 6));
  EXPECT_FALSE(names.has_found("b", 6)) << "its file is not known yet";
  names.found("b", 6);
  names.renamed("b", "a", moved(6, 7));
  EXPECT_FALSE(names.has_found("a", 7)) << "another file";
  EXPECT_FALSE(names.has_found("b", 7));
  names.found("a", 7);
  names.complete({"a"}, 7);
  EXPECT_TRUE(names.has_found("a", 7));
  names.removed("a", moved(7, 8));
  EXPECT_FALSE(names.has_found("a", 8));
  names.found("a", 8);
  names.found("c", 9);  // somebody else's change
  EXPECT_FALSE(names.has_found("a", 9));
  EXPECT_TRUE(names.has_found("c", 9));
}

// Two names of one file: rename(2) does nothing.
TEST_F(DirectoryNamesTest, ARenameThatChangesNothingLeavesBothNames) {
  names.complete({"x", "y"}, 3);
  names.renamed("x", "y", moved(3, 3));
  EXPECT_FALSE(names.lacks("x", 3));
  EXPECT_FALSE(names.lacks("y", 3));
}

TEST_F(DirectoryNamesTest, HasBounds) {
  for (size_t i = 0; i < 2 * DirectoryNames::kAbsentMax; ++i) names.absent(std::to_string(i), 1);
  size_t known = 0;
  for (size_t i = 0; i < 2 * DirectoryNames::kAbsentMax; ++i)
    known += names.lacks(std::to_string(i), 1) ? 1 : 0;
  EXPECT_EQ(known, DirectoryNames::kAbsentMax);
  names.complete({}, 2);
  for (uint64_t i = 0; i <= DirectoryNames::kPresentMax; ++i) {
    EXPECT_TRUE(names.lacks("other", 2 + i));
    names.added(std::to_string(i), moved(2 + i, 3 + i));
  }
  EXPECT_FALSE(names.lacks("other", 3 + DirectoryNames::kPresentMax));
}

// A directory that two clients change, whose answers reach the one of them in any order: what it takes for absent
// at a value of the change attribute was absent then.
TEST_F(DirectoryNamesTest, NeverLacksWhatWasThere) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    names = {};
    std::set<std::string> present;
    std::map<uint64_t, std::set<std::string>> history{{1, present}};
    uint64_t change = 1;
    std::vector<std::function<void()>> answers;
    for (int step = 0; step < 120; ++step) {
      const std::string name(1, static_cast<char>('a' + random() % 5));
      const std::string other(1, static_cast<char>('a' + random() % 5));
      const bool is_ours = random() % 4 != 0;
      const uint64_t before = change;
      switch (random() % 5) {
        case 0:
          if (present.insert(name).second) ++change;
          if (is_ours)
            answers.emplace_back([=, this, after = change] { names.added(name, moved(before, after)); });
          break;
        case 1:
          if (present.erase(name) == 0) break;
          ++change;
          if (is_ours)
            answers.emplace_back([=, this, after = change] { names.removed(name, moved(before, after)); });
          break;
        case 2:
          if (!present.contains(name) || name == other) break;
          present.erase(name);
          present.insert(other);
          ++change;
          if (is_ours)
            answers.emplace_back(
                [=, this, after = change] { names.renamed(name, other, moved(before, after)); });
          break;
        case 3:
          if (!present.contains(name)) answers.emplace_back([=, this] { names.absent(name, before); });
          break;
        default:
          answers.emplace_back(
              [=, this, all = std::unordered_set<std::string>(present.begin(), present.end())] {
                names.complete(all, before);
              });
      }
      history[change] = present;
      while (!answers.empty() && random() % 3 != 0) {
        const size_t which = random() % 4 == 0 ? random() % answers.size() : 0;
        answers[which]();
        answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(which));
        for (const auto& [at, then] : history) {
          for (const std::string& one : then)
            ASSERT_FALSE(names.lacks(one, at)) << seed << " " << one << " " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
