// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

// Fields of plain aggregates without a macro per type: how many there are (by trying initialisers) and a call
// for each.
namespace pnfsrdma::xdr {

namespace detail {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Converts to every field type. Not to std::optional: that takes a Probe by its own converting constructor,
// and both ways together would be ambiguous.
struct Probe {
  template <typename T>
    requires(!kIsOptional<T>)
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <size_t>
using ProbeAt = Probe;

template <typename T, size_t... I>
constexpr bool initialises(std::index_sequence<I...>) {
  return requires { T{ProbeAt<I>()...}; };
}
template <typename T, size_t N = 0>
constexpr size_t count_fields() {
  if constexpr (initialises<T>(std::make_index_sequence<N + 1>())) {
    return count_fields<T, N + 1>();
  } else {
    return N;
  }
}

}  // namespace detail

inline constexpr size_t kFieldsMax = 24;

template <typename T>
concept Reflected = std::is_aggregate_v<T> && std::is_class_v<T>;

template <Reflected T>
inline constexpr size_t kFieldCount = detail::count_fields<T>();

// Calls `function(field, field, …)` with all fields of the aggregate, in order, and returns what it returns.
template <typename T, typename Function>
constexpr decltype(auto) with_fields(T& value, Function&& function) {
  constexpr size_t kCount = kFieldCount<std::remove_const_t<T>>;
  static_assert(kCount <= kFieldsMax, "add a line to with_fields()");
  if constexpr (kCount == 0) {
    return function();
  } else if constexpr (kCount == 1) {
    auto& [a] = value;
    return function(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = value;
    return function(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = value;
    return function(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = value;
    return function(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = value;
    return function(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = value;
    return function(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return function(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return function(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return function(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return function(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (kCount == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (kCount == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (kCount == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (kCount == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (kCount == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (kCount == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (kCount == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (kCount == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (kCount == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (kCount == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (kCount == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (kCount == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = value;
    return function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  }
}

}  // namespace pnfsrdma::xdr
