// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "shared/base/check.h"

namespace pnfsrdma::rdma {

// A queue of fixed capacity that reuses its elements: nothing is allocated after construction. Not
// thread-safe.
template <typename T>
class Ring {
 public:
  explicit Ring(size_t capacity) : slots_(capacity) {}

  size_t size() const { return count_; }
  size_t capacity() const { return slots_.size(); }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == slots_.size(); }

  // The new last element, holding whatever the slot held before: the caller fills all of it.
  T& push() {
    CHECK(!full());
    return slots_[wrap(first_ + count_++)];
  }
  T& front() { return (*this)[0]; }
  T& back() { return (*this)[count_ - 1]; }
  T& operator[](size_t index) {
    CHECK(index < count_);
    return slots_[wrap(first_ + index)];
  }
  void pop() {
    CHECK(!empty());
    first_ = wrap(first_ + 1);
    --count_;
  }

 private:
  size_t wrap(size_t index) const { return index >= slots_.size() ? index - slots_.size() : index; }

  std::vector<T> slots_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace pnfsrdma::rdma
