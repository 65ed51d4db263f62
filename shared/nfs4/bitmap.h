// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared/nfs4/limits.h"
#include "shared/xdr/types.h"

namespace pnfsrdma::nfs4 {

// bitmap4: bit n is in word n / 32. Words beyond the last one count as zero, so bitmaps of different lengths
// can be equal.
struct Bitmap : xdr::List<uint32_t, kBitmapWordsMax> {
  using List::List;

  // Bitmap::of(Attribute::kType, Attribute::kSize)
  template <typename... Bits>
  static Bitmap of(Bits... bits) {
    Bitmap bitmap;
    (bitmap.set(bits), ...);
    return bitmap;
  }

  template <typename Bit>
  bool test(Bit bit) const {
    const auto number = static_cast<uint32_t>(bit);
    return number / 32 < size() && ((*this)[number / 32] >> (number % 32) & 1) != 0;
  }
  // `bit` must be below 32 * kBitmapWordsMax.
  template <typename Bit>
  void set(Bit bit) {
    const auto number = static_cast<uint32_t>(bit);
    if (number / 32 >= size()) resize(number / 32 + 1);
    (*this)[number / 32] |= uint32_t{1} << (number % 32);
  }
  template <typename Bit>
  void reset(Bit bit) {
    const auto number = static_cast<uint32_t>(bit);
    if (number / 32 < size()) (*this)[number / 32] &= ~(uint32_t{1} << (number % 32));
    while (!empty() && back() == 0) pop_back();
  }
  bool none() const {
    return std::all_of(begin(), end(), [](uint32_t word) { return word == 0; });
  }
  uint32_t word(size_t index) const { return index < size() ? (*this)[index] : 0; }

  // Every bit of `other` is set here too.
  bool contains(const Bitmap& other) const { return (other & *this) == other; }
  Bitmap operator&(const Bitmap& other) const {
    return combine(other, [](uint32_t a, uint32_t b) { return a & b; });
  }
  Bitmap operator|(const Bitmap& other) const {
    return combine(other, [](uint32_t a, uint32_t b) { return a | b; });
  }
  // The bits set here and not in `other`.
  Bitmap without(const Bitmap& other) const {
    return combine(other, [](uint32_t a, uint32_t b) { return a & ~b; });
  }
  bool operator==(const Bitmap& other) const {
    for (size_t i = 0; i < std::max(size(), other.size()); ++i) {
      if (word(i) != other.word(i)) return false;
    }
    return true;
  }

 private:
  template <typename Operation>
  Bitmap combine(const Bitmap& other, Operation operation) const {
    Bitmap result;
    for (size_t i = 0; i < std::max(size(), other.size()); ++i) {
      result.push_back(operation(word(i), other.word(i)));
    }
    while (!result.empty() && result.back() == 0) result.pop_back();
    return result;
  }
};

}  // namespace pnfsrdma::nfs4
