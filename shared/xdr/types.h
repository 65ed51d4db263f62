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

// The building blocks of wire types (RFC 4506). A wire type is a plain aggregate of these, of unsigned and
// signed 32 and 64 bit integers, bool, enums with a 32-bit base, std::optional (XDR's optional data) and
// other such aggregates, in the order of the RFC. Its bounds are part of the type.
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
  Opaque(Bytes bytes) : Bytes(std::move(bytes)) {}  // NOLINT(google-explicit-constructor)
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

// A counted array on the wire as a linked list: each item behind a true, a false at the end (`entry4
// *nextentry`).
template <typename T>
struct Chain : std::vector<T> {
  using std::vector<T>::vector;
  // Items in front of those above, on the wire already (encode_item() of codec.h): who makes large ones one by one
  // need not keep them. Decoding leaves it empty.
  Bytes encoded;
};

// opaque name<Max> of bulk data. Decoding gives a view into the record (no copy; it lives as long as the
// record); whoever sends gives either its own bytes or a view that stays valid until it is encoded.
template <size_t Max = kUnbounded>
class Payload {
 public:
  static constexpr size_t kMax = Max;
  Payload() = default;
  Payload(Bytes owned) : owned_(std::move(owned)) {}  // NOLINT(google-explicit-constructor)
  static Payload view_of(ByteSpan view) {
    Payload payload;
    payload.view_ = view;
    return payload;
  }

  ByteSpan span() const { return owned_.empty() ? view_ : ByteSpan(owned_); }
  size_t size() const { return span().size(); }
  bool empty() const { return span().empty(); }

 private:
  Bytes owned_;
  ByteSpan view_;
};

// void
struct Void {
  bool operator==(const Void&) const = default;
};

}  // namespace pnfsrdma::xdr
