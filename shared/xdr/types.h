// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "shared/base/bytes.h"

// The building blocks of wire types (RFC 4506). A wire type is a plain aggregate of these, of unsigned and signed 32 and
// 64 bit integers, bool, enums with a 32-bit base, std::optional (XDR's optional data) and other such aggregates, in the
// order of the RFC. Its bounds are part of the type.
namespace pnfsrdma::xdr {

inline constexpr size_t kUnbounded = std::numeric_limits<uint32_t>::max();

// opaque name[N]
template <size_t N>
using FixedOpaque = std::array<std::byte, N>;

// opaque name<Max>: variable length bytes.
template <size_t Max = kUnbounded>
struct Opaque : Bytes {
  static constexpr size_t kMax = Max;
  using Bytes::Bytes;
  Opaque() = default;
  Opaque(Bytes bytes) : Bytes(std::move(bytes)) {}            // NOLINT(google-explicit-constructor)
  explicit Opaque(ByteSpan bytes) : Bytes(bytes.begin(), bytes.end()) {}
};

// string name<Max>, and utf8string of NFSv4: bytes that are text.
template <size_t Max = kUnbounded>
struct String : std::string {
  static constexpr size_t kMax = Max;
  using std::string::string;
  String() = default;
  String(std::string text) : std::string(std::move(text)) {}  // NOLINT(google-explicit-constructor)
};

// T name<Max>: a counted array.
template <typename T, size_t Max = kUnbounded>
struct List : std::vector<T> {
  static constexpr size_t kMax = Max;
  using std::vector<T>::vector;
  List() = default;
  List(std::vector<T> items) : std::vector<T>(std::move(items)) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace pnfsrdma::xdr
