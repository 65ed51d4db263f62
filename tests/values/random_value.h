// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "shared/base/random.h"
#include "shared/xdr/codec.h"

// Random values of any wire type, for properties like decode(encode(v)) == v and for fuzz seeds. Small: lists
// have up to three items. A type with its own codec needs `void xdr_random(Random&, T&)` beside it.
namespace pnfsrdma::xdr {

template <typename T>
void randomize(Random& random, T& value);

namespace detail {

inline Bytes random_bytes(Random& random, size_t max) {
  Bytes bytes(random.next_u32() % (std::min<size_t>(max, 20) + 1));
  random.fill(bytes);
  return bytes;
}

// Any value that is known: counts up from a random start.
template <EnumType T>
T random_enumerator(Random& random) {
  constexpr uint32_t kBeyondAll = 12000;
  const uint32_t range = random.next_u32() % 2 ? 16 : kBeyondAll;
  uint32_t raw = random.next_u32() % range;
  if constexpr (requires { xdr_known(T{}); }) {
    while (!xdr_known(static_cast<T>(raw))) raw = (raw + 1) % kBeyondAll;
  }
  return static_cast<T>(raw);
}

template <UnionType T, size_t Index = 0>
void randomize_arm(Random& random, size_t wanted, T& value) {
  using Discriminant = typename T::Discriminant;
  if constexpr (Index < T::kArms) {
    using Chosen = typename T::template ArmAt<Index>;
    if (wanted != Index) return randomize_arm<T, Index + 1>(random, wanted, value);
    Discriminant discriminant{};
    if constexpr (Chosen::kValues > 0) {
      discriminant = Chosen::template value<Discriminant>(random.next_u32() % Chosen::kValues);
    } else {
      do randomize(random, discriminant);
      while (T::arm_of(discriminant) != Index);
    }
    value.select(discriminant);
    value.visit([&](auto& body) { randomize(random, body); });
  }
}

}  // namespace detail

template <typename T>
void randomize(Random& random, T& value) {
  if constexpr (requires { xdr_random(random, value); }) {
    xdr_random(random, value);
  } else if constexpr (std::same_as<T, bool>) {
    value = random.next_u32() % 2 == 1;
  } else if constexpr (EnumType<T>) {
    value = detail::random_enumerator<T>(random);
  } else if constexpr (IntegerType<T>) {
    // Small ones often: lengths, counts.
    value = static_cast<T>(random.next_u64() >> (random.next_u32() % 2 ? 0 : sizeof(T) * 8 - 5));
  } else if constexpr (FixedOpaqueType<T>) {
    random.fill(value);
  } else if constexpr (OpaqueType<T> || PayloadType<T>) {
    value = T(detail::random_bytes(random, T::kMax));
  } else if constexpr (StringType<T>) {
    const Bytes bytes = detail::random_bytes(random, T::kMax);
    value.assign(as_text(bytes));
  } else if constexpr (OptionalType<T>) {
    value.reset();
    if (random.next_u32() % 2) randomize(random, value.emplace());
  } else if constexpr (ListType<T>) {
    value.resize(random.next_u32() % (std::min<size_t>(T::kMax, 3) + 1));
    for (auto& item : value) randomize(random, item);
  } else if constexpr (ChainType<T>) {
    value.resize(random.next_u32() % 4);
    for (auto& item : value) randomize(random, item);
  } else if constexpr (UnionType<T>) {
    detail::randomize_arm(random, random.next_u32() % T::kArms, value);
  } else {
    static_assert(Reflected<T>, "not a wire type");
    with_fields(value, [&](auto&... fields) { (randomize(random, fields), ...); });
  }
}

template <typename T>
T random_value(Random& random) {
  T value{};
  randomize(random, value);
  return value;
}

}  // namespace pnfsrdma::xdr
