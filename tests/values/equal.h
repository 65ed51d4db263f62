// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>

#include "shared/xdr/codec.h"

namespace pnfsrdma::xdr {

// Field by field, for wire types that have no operator== of their own.
template <typename T>
bool equal(const T& one, const T& other) {
  const auto each = [](const auto& a, const auto& b) { return equal(a, b); };
  if constexpr (OptionalType<T>) {
    return one.has_value() == other.has_value() && (!one || equal(*one, *other));
  } else if constexpr (PayloadType<T>) {
    return std::ranges::equal(one.span(), other.span());
  } else if constexpr (UnionType<T>) {
    return one.discriminant() == other.discriminant() && one.visit([&](const auto& body) {
      return other.visit([&](const auto& other_body) {
        if constexpr (std::same_as<decltype(body), decltype(other_body)>) {
          return equal(body, other_body);
        } else {
          return false;
        }
      });
    });
  } else if constexpr (ChainType<T> || (ListType<T> && !CustomType<T>)) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), each);
  } else if constexpr (requires { one == other; }) {
    return one == other;
  } else if constexpr (CustomType<T>) {
    return encode_to_bytes(one) == encode_to_bytes(other);
  } else {
    return with_fields(one, [&](const auto&... fields) {
      return with_fields(other, [&](const auto&... others) { return (equal(fields, others) && ...); });
    });
  }
}

}  // namespace pnfsrdma::xdr
