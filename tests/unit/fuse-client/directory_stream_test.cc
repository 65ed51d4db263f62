// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_stream.h"

#include <gtest/gtest.h>

namespace pnfsrdma::fuse_client {
namespace {

nfs4::ReadDirectoryResult entries(std::vector<uint64_t> cookies, bool end) {
  nfs4::ReadDirectoryResult result;
  for (const uint64_t cookie : cookies) {
    nfs4::DirectoryEntry entry;
    entry.cookie = cookie;
    entry.name = std::to_string(cookie);
    result.entries.push_back(std::move(entry));
  }
  result.end = end;
  result.cookie_verifier.fill(std::byte{9});
  return result;
}

TEST(DirectoryStream, GivesEntriesInOrderAndKnowsTheEnd) {
  DirectoryStream stream;
  EXPECT_EQ(stream.after(0), nullptr);
  EXPECT_FALSE(stream.at_end(0));
  stream.take(0, entries({10, 11}, true));
  EXPECT_EQ(stream.after(0)->cookie, 10u);
  EXPECT_EQ(stream.after(10)->cookie, 11u);
  EXPECT_EQ(stream.after(11), nullptr);
  EXPECT_TRUE(stream.at_end(11));
}

TEST(DirectoryStream, RewoundIsToBeFetchedAnew) {
  DirectoryStream stream;
  stream.take(0, entries({10, 11}, true));
  EXPECT_EQ(stream.after(0)->cookie, 10u);
  stream.rewind();
  EXPECT_EQ(stream.after(0), nullptr);
  EXPECT_FALSE(stream.at_end(11));
}

TEST(DirectoryStream, GoesBackToWhatDidNotFit) {
  DirectoryStream stream;
  stream.take(0, entries({10, 11, 12}, false));
  EXPECT_EQ(stream.after(0)->cookie, 10u);
  EXPECT_EQ(stream.after(10)->cookie, 11u);
  EXPECT_EQ(stream.after(10)->cookie, 11u);
  EXPECT_EQ(stream.after(0)->cookie, 10u);
  EXPECT_FALSE(stream.at_end(12));
  EXPECT_EQ(stream.after(99), nullptr);
}

TEST(DirectoryStream, AnEmptyDirectoryEndsAtOnce) {
  DirectoryStream stream;
  stream.take(0, entries({}, true));
  EXPECT_EQ(stream.after(0), nullptr);
  EXPECT_TRUE(stream.at_end(0));
}

TEST(DirectoryStream, CookieZeroHasNoVerifier) {
  DirectoryStream stream;
  stream.take(0, entries({10}, false));
  EXPECT_EQ(stream.verifier(0), nfs4::Verifier{});
  EXPECT_NE(stream.verifier(10), nfs4::Verifier{});
  EXPECT_EQ(DirectoryStream::cookie_of(kDotDotOffset), 0u);
  EXPECT_EQ(DirectoryStream::cookie_of(10), 10u);
}

constexpr SteadyTime kAsked = SteadyTime(std::chrono::hours(1));

TEST(ListedNames, AreWholeWhenTheDirectoryDidNotChangeMeanwhile) {
  ListedNames names;
  names.take(0, kAsked, 5, entries({10, 11}, false));
  EXPECT_FALSE(names.take_whole());
  names.take(11, kAsked + std::chrono::seconds(1), 5, entries({12}, true));
  const auto whole = names.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->change, 5u);
  EXPECT_EQ(whole->asked_at, kAsked);
  EXPECT_EQ(whole->names, (std::unordered_set<std::string>{"10", "11", "12"}));
  EXPECT_FALSE(names.take_whole());
  names.take(0, kAsked, 6, entries({10}, true));  // rewound
  EXPECT_EQ(names.take_whole()->names, (std::unordered_set<std::string>{"10"}));
}

TEST(ListedNames, OfALargeDirectoryAreNotRemembered) {
  ListedNames names;
  std::vector<uint64_t> cookies;
  for (uint64_t cookie = 10; cookie < 10 + DirectoryNames::kPresentMax; ++cookie) cookies.push_back(cookie);
  names.take(0, kAsked, 5, entries(cookies, false));
  names.take(cookies.back(), kAsked, 5, entries({1'000'000}, true));
  const auto whole = names.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->names);
}

TEST(ListedNames, AreNotWholeWithAGap) {
  ListedNames names;
  names.take(11, kAsked, 5, entries({12}, true));  // from the middle on
  EXPECT_FALSE(names.take_whole());
  names.take(0, kAsked, 5, entries({10}, false));
  names.take(11, kAsked, 5, entries({12}, true));  // somebody moved in it
  EXPECT_FALSE(names.take_whole());
  names.take(0, kAsked, 5, entries({10}, false));
  names.take(10, kAsked, 6, entries({12}, true));  // it has changed
  EXPECT_FALSE(names.take_whole());
  names.take(0, kAsked, std::nullopt, entries({}, true));
  EXPECT_FALSE(names.take_whole());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
