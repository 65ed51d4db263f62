// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pnfsrdma::bench {

// Samples of one quantity, asked for by rank. Not thread-safe.
class Percentiles {
 public:
  void add(double value) {
    values_.push_back(value);
    sorted_ = false;
  }
  size_t count() const { return values_.size(); }
  // The nearest-rank percentile, `percent` from 0 to 100; 0 without samples.
  double at(double percent) {
    if (values_.empty()) return 0;
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    const auto rank = static_cast<size_t>(percent / 100 * static_cast<double>(values_.size()) + 0.999999);
    return values_[std::clamp<size_t>(rank, 1, values_.size()) - 1];
  }

 private:
  std::vector<double> values_;
  bool sorted_ = false;
};

}  // namespace pnfsrdma::bench
