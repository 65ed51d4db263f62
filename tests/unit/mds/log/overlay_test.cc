// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/overlay.h"

#include <gtest/gtest.h>

#include <deque>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

using Content = std::map<std::string, std::string, std::less<>>;
using Rows = std::vector<std::pair<std::string, std::string>>;

void put_all(const Batch& batch, Content& content) {
  batch.for_each([&](std::string_view key, std::string_view value) { content[std::string(key)] = value; },
                 [&](std::string_view key) { content.erase(std::string(key)); });
}

Rows walk(const Overlay& overlay, const Content& base, std::string_view prefix, std::string_view from,
          size_t most = SIZE_MAX) {
  Rows rows;
  const KeyValueStore::Visitor visitor = [&](std::string_view key, std::string_view value) {
    rows.emplace_back(key, value);
    return rows.size() < most;
  };
  MergedWalk merged(overlay, prefix, from, visitor);
  for (auto at = base.lower_bound(std::max(prefix, from)); at != base.end() && at->first.starts_with(prefix);
       ++at) {
    if (!merged.base_row(at->first, at->second)) return rows;
  }
  merged.rest({});
  return rows;
}

Rows rows_of(const Content& content, std::string_view prefix, std::string_view from, size_t most = SIZE_MAX) {
  Rows rows;
  for (auto at = content.lower_bound(std::max(prefix, from));
       at != content.end() && at->first.starts_with(prefix) && rows.size() < most; ++at)
    rows.emplace_back(*at);
  return rows;
}

Brought bring(const Content& base, const Wanted& wanted, size_t most) {
  Brought brought;
  if (!wanted.prefix) {
    if (const auto found = base.find(wanted.key); found != base.end()) brought.rows.emplace_back(*found);
    return brought;
  }
  brought.rows = rows_of(base, *wanted.prefix, wanted.key);
  if (brought.rows.size() <= most) return brought;
  brought.next = brought.rows[most].first;
  brought.rows.resize(most);
  return brought;
}

// Batches go in, and enter the base in order some time later; reads of both together are those of one map.
TEST(Overlay, OverTheBaseItReadsAsIfAllWereThere) {
  SeededRandom random(1);
  const auto below = [&](uint64_t most) { return random.next_u64() % most; };
  const auto some_key = [&] {
    return std::string(1, static_cast<char>('a' + below(3))) + std::to_string(below(30));
  };
  Overlay overlay;
  Content base;
  Content whole;
  std::deque<std::pair<Batch, Sequence>> waiting;
  Sequence last = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (below(2) == 0) {
      Batch batch;
      for (uint64_t i = 0; i <= below(4); ++i)
        below(3) == 0 ? batch.erase(some_key()) : batch.put(some_key(), std::to_string(below(1000)));
      overlay.add(batch, ++last);
      put_all(batch, whole);
      waiting.emplace_back(batch, last);
    } else if (!waiting.empty()) {
      put_all(waiting.front().first, base);
      overlay.drop(waiting.front().first, waiting.front().second);
      waiting.pop_front();
    }
    const std::string prefix = below(4) == 0 ? "" : std::string(1, static_cast<char>('a' + below(3)));
    const std::string from = below(2) == 0 ? "" : some_key();
    if (!from.empty() && !from.starts_with(prefix) && from > prefix) continue;
    const size_t most = below(2) == 0 ? SIZE_MAX : 1 + below(5);
    ASSERT_EQ(walk(overlay, base, prefix, from, most), rows_of(whole, prefix, from, most)) << step;

    // A page that a reader brings, out of a base that has moved on or not.
    const Wanted wanted{.key = std::max(prefix, from), .prefix = prefix};
    const OverlayPart part(overlay, wanted);
    if (below(2) == 0 && !waiting.empty()) {
      put_all(waiting.front().first, base);
      overlay.drop(waiting.front().first, waiting.front().second);
      waiting.pop_front();
    }
    const Brought page = part.over(bring(base, wanted, 3));
    Rows expected = rows_of(whole, prefix, wanted.key);
    if (!page.next.empty()) std::erase_if(expected, [&](const auto& row) { return row.first >= page.next; });
    ASSERT_EQ(page.rows, expected) << step;
    const Wanted one{.key = some_key(), .prefix = {}};
    const Brought row = OverlayPart(overlay, one).over(bring(base, one, 1));
    ASSERT_EQ(row.rows.size(), whole.count(one.key)) << step;
    if (!row.rows.empty()) {
      ASSERT_EQ(row.rows.front().second, whole[one.key]);
    }
  }
  while (!waiting.empty()) {
    overlay.drop(waiting.front().first, waiting.front().second);
    waiting.pop_front();
  }
  EXPECT_TRUE(overlay.rows().empty());
}

TEST(Overlay, AVisitorMayChangeTheRowItSees) {
  Overlay overlay;
  Batch batch;
  batch.put("a", std::string(100, 'x'));
  overlay.add(batch, 1);
  const KeyValueStore::Visitor visitor = [&](std::string_view key, std::string_view value) {
    Batch again;
    again.erase(key);
    again.put("b", "new");
    overlay.add(again, 2);
    EXPECT_EQ(value, std::string(100, 'x'));
    return key != "a";
  };
  MergedWalk merged(overlay, "", "", visitor);
  EXPECT_FALSE(merged.rest({}));
}

TEST(OverlayPart, LongOnesAreCutAndSaySo) {
  Overlay overlay;
  Batch batch;
  for (int i = 0; i < 600; ++i) batch.put("k" + std::to_string(10'000 + i), "v");
  overlay.add(batch, 1);
  const Brought page = OverlayPart(overlay, {.key = "k", .prefix = "k"}).over({});
  ASSERT_EQ(page.rows.size(), 512u);
  EXPECT_EQ(page.next, "k10512");
}

}  // namespace
}  // namespace pnfsrdma::mds
