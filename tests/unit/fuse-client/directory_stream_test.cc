// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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

void take(ListedNames& names, uint64_t cookie, SteadyTime asked_at, std::optional<uint64_t> change,
          const nfs4::ReadDirectoryResult& result) {
  names.take(cookie, asked_at, change, listed_entries(result, {}), result.end);
}

constexpr SteadyTime kAsked = SteadyTime(std::chrono::hours(1));

TEST(ListedNames, AreWholeWhenTheDirectoryDidNotChangeMeanwhile) {
  ListedNames names;
  take(names, 0, kAsked, 5, entries({10, 11}, false));
  EXPECT_FALSE(names.take_whole());
  take(names, 11, kAsked + std::chrono::seconds(1), 5, entries({12}, true));
  const auto whole = names.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->change, 5u);
  EXPECT_EQ(whole->asked_at, kAsked);
  EXPECT_EQ(whole->names, (std::unordered_set<std::string>{"10", "11", "12"}));
  EXPECT_FALSE(names.take_whole());
  take(names, 0, kAsked, 6, entries({10}, true));  // rewound
  EXPECT_EQ(names.take_whole()->names, (std::unordered_set<std::string>{"10"}));
}

TEST(ListedNames, OfALargeDirectoryAreNotRemembered) {
  ListedNames names;
  std::vector<uint64_t> cookies;
  for (uint64_t cookie = 10; cookie < 10 + DirectoryNames::kPresentMax; ++cookie) cookies.push_back(cookie);
  take(names, 0, kAsked, 5, entries(cookies, false));
  take(names, cookies.back(), kAsked, 5, entries({1'000'000}, true));
  const auto whole = names.take_whole();
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->names);
}

TEST(ListedNames, AreNotWholeWithAGap) {
  ListedNames names;
  take(names, 11, kAsked, 5, entries({12}, true));  // from the middle on
  EXPECT_FALSE(names.take_whole());
  take(names, 0, kAsked, 5, entries({10}, false));
  take(names, 11, kAsked, 5, entries({12}, true));  // somebody moved in it
  EXPECT_FALSE(names.take_whole());
  take(names, 0, kAsked, 5, entries({10}, false));
  take(names, 10, kAsked, 6, entries({12}, true));  // it has changed
  EXPECT_FALSE(names.take_whole());
  take(names, 0, kAsked, std::nullopt, entries({}, true));
  EXPECT_FALSE(names.take_whole());
}

TEST(ListedNames, EntriesAreKeptWhileThereIsRoomForThem) {
  ListedNames names(10 * sizeof(ListedEntry));
  nfs4::ReadDirectoryResult page = entries({10, 11}, false);
  page.entries[1].attributes.file_id = 7;
  page.entries[1].attributes.change = 1;
  page.entries[1].attributes.type = nfs4::FileType::kDirectory;
  names.take(0, kAsked, 5, listed_entries(page, {3, 4}), false);
  take(names, 11, kAsked, 5, entries({12}, true));
  const auto whole = names.take_whole();
  ASSERT_TRUE(whole && whole->entries);
  ASSERT_EQ(whole->entries->size(), 3u);
  const ListedEntry& second = (*whole->entries)[1];
  EXPECT_EQ(second.name, "11");
  EXPECT_EQ(second.cookie, 11u);
  EXPECT_EQ(second.node, 4u);
  EXPECT_EQ(second.file_id, 7u);
  EXPECT_EQ(second.type, uint32_t{S_IFDIR});
  std::vector<uint64_t> many;
  for (uint64_t cookie = 10; cookie < 21; ++cookie) many.push_back(cookie);
  take(names, 0, kAsked, 5, entries(many, true));
  const auto large = names.take_whole();
  ASSERT_TRUE(large && large->names);
  EXPECT_FALSE(large->entries);
}

std::shared_ptr<const WholeListing> listing_of(std::vector<uint64_t> cookies) {
  auto listing = std::make_shared<WholeListing>();
  listing->entries = listed_entries(entries(std::move(cookies), true), {});
  listing->verifier.fill(std::byte{8});
  return listing;
}

TEST(DirectoryStream, AKeptListingIsReadLikeOneOfTheServer) {
  DirectoryStream stream;
  stream.take_kept(listing_of({10, 11, 12}));
  EXPECT_EQ(stream.kept_after(0)->cookie, 10u);
  EXPECT_EQ(stream.kept_after(10)->cookie, 11u);
  EXPECT_EQ(stream.kept_after(10)->cookie, 11u);
  EXPECT_EQ(stream.kept_after(0)->cookie, 10u);
  EXPECT_EQ(stream.kept_after(12), nullptr);
  EXPECT_TRUE(stream.has_kept());
  EXPECT_EQ(stream.kept_after(99), nullptr);  // the server may know it
  EXPECT_FALSE(stream.has_kept());
  EXPECT_EQ(stream.verifier(99)[0], std::byte{8});
}

TEST(KeptListings, TheOneUsedLongestAgoGoes) {
  KeptListings listings(2'000);
  const auto first = listing_of({10, 11}), second = listing_of({20, 21}), third = listing_of({30, 31});
  listings.keep(1, first);
  const size_t each = listings.bytes();
  KeptListings two(2 * each);
  two.keep(1, first);
  two.keep(2, second);
  EXPECT_EQ(two.find(1), first);
  two.keep(3, third);
  EXPECT_EQ(two.find(2), nullptr);
  EXPECT_EQ(two.find(1), first);
  EXPECT_EQ(two.find(3), third);
  two.keep(1, third);  // in its place
  EXPECT_EQ(two.find(1), third);
  EXPECT_EQ(two.bytes(), 2 * each);
  two.forget(1);
  EXPECT_EQ(two.find(1), nullptr);
  EXPECT_EQ(two.bytes(), each);
  std::vector<uint64_t> many(100, 5);
  two.keep(3, listing_of(many));  // larger than all that is kept; and what it was is not so any more
  EXPECT_EQ(two.find(3), nullptr);
  EXPECT_EQ(two.bytes(), 0u);
  KeptListings(0).keep(1, first);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client
