// SPDX-License-Identifier: Apache-2.0
#include "cli/output/nearest_word.h"

#include <algorithm>
#include <cstdint>

namespace pnfsrdma::cli {
namespace {

// Damerau and Levenshtein: letters put in, left out, exchanged for others, or for their neighbours.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view typed, const std::vector<std::string>& known) {
  constexpr size_t kTypedMax = 64;
  if (typed.empty() || typed.size() > kTypedMax) return std::nullopt;
  std::optional<std::string> nearest;
  size_t least = SIZE_MAX;
  for (const std::string& word : known) {
    const bool begins = typed.size() >= 2 && word.starts_with(typed);
    const size_t far = begins ? 1 : distance(typed, word);
    if (far > std::max<size_t>(1, word.size() / 3)) continue;
    if (far == least) nearest.reset();
    if (far < least) nearest = word;
    least = std::min(least, far);
  }
  return nearest;
}

}  // namespace pnfsrdma::cli
