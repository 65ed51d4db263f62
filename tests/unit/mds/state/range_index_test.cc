// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/range_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

using Index = RangeIndex<int>;
using Found = std::vector<std::pair<uint64_t, int>>;

Found overlapping(const Index& index, uint64_t first, uint64_t last) {
  Found found;
  index.visit(first, last, [&](int holder, uint64_t begin, uint64_t) {
    found.emplace_back(begin, holder);
    return true;
  });
  return found;
}

TEST(RangeIndex, BothEndsBelongToARange) {
  Index index;
  index.insert(10, 19, 1);
  index.insert(20, UINT64_MAX, 2);
  EXPECT_TRUE(overlapping(index, 0, 9).empty());
  EXPECT_EQ(overlapping(index, 0, 10), (Found{{10, 1}}));
  EXPECT_EQ(overlapping(index, 19, 20), (Found{{10, 1}, {20, 2}}));
  EXPECT_EQ(overlapping(index, UINT64_MAX, UINT64_MAX), (Found{{20, 2}}));
}

TEST(RangeIndex, AVisitorThatHasSeenEnoughSeesNoMore) {
  Index index;
  for (int i = 0; i < 1000; ++i) index.insert(0, 100, i);
  int seen = 0;
  index.visit(0, 100, [&](int, uint64_t, uint64_t) { return ++seen < 3; });
  EXPECT_EQ(seen, 3);
}

TEST(RangeIndex, FindsWhatAPlainListFinds) {
  SeededRandom random{7};
  for (int round = 0; round < 20; ++round) {
    Index index;
    std::map<std::pair<uint64_t, int>, uint64_t> model;  // beginning and holder; end
    for (int step = 0; step < 1000; ++step) {
      const uint64_t first = random.next_u64() % 500;
      const uint64_t last = first + random.next_u64() % (round % 2 == 0 ? 10 : 400);
      const int holder = static_cast<int>(random.next_u64() % 5);
      if (model.erase({first, holder}) > 0) {
        index.erase(first, holder);
      } else if (random.next_u64() % 3 > 0) {
        model[{first, holder}] = last;
        index.insert(first, last, holder);
      }
      Found expected;
      for (const auto& [key, end] : model) {
        if (key.first <= last && end >= first) expected.push_back(key);
      }
      ASSERT_EQ(overlapping(index, first, last), expected);
      ASSERT_EQ(index.empty(), model.empty());
    }
  }
}

}  // namespace
}  // namespace pnfsrdma::mds
