// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/xdr/codec.h"

namespace pnfsrdma::xdr {

// A wire type as text for logs and failed tests: {1, "name", 0a0b, [2, 3], -, 4: {…}}. Fields have no names
// in it; bytes are hexadecimal, absent optionals a dash, union arms behind their discriminant. Enums with an
// ADL to_string() use it.
template <typename T>
void print(std::string& text, const T& value);

namespace detail {

template <typename Items>
void print_items(std::string& text, const Items& items) {
  text += '[';
  const char* between = "";
  for (const auto& item : items) {
    text += between;
    print(text, item);
    between = ", ";
  }
  text += ']';
}

// Text from a peer: anything that is not printable ASCII is escaped.
inline void print_quoted(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : value) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      text += c;
    } else {
      text += "\\x" + to_hex(ByteSpan(reinterpret_cast<const std::byte*>(&c), 1));
    }
  }
  text += '"';
}

}  // namespace detail

template <typename T>
void print(std::string& text, const T& value) {
  if constexpr (requires { xdr_print(text, value); }) {
    xdr_print(text, value);
  } else if constexpr (std::same_as<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (EnumType<T> && requires { text += to_string(value); }) {
    text += to_string(value);
  } else if constexpr (EnumType<T>) {
    text += std::to_string(static_cast<uint32_t>(value));
  } else if constexpr (IntegerType<T>) {
    text += std::to_string(value);
  } else if constexpr (StringType<T>) {
    detail::print_quoted(text, value);
  } else if constexpr (PayloadType<T>) {
    text += std::to_string(value.size()) + " bytes";
  } else if constexpr (FixedOpaqueType<T> || OpaqueType<T>) {
    text += to_hex(value);
  } else if constexpr (OptionalType<T>) {
    if (value) {
      print(text, *value);
    } else {
      text += '-';
    }
  } else if constexpr (ListType<T> || ChainType<T>) {
    detail::print_items(text, value);
  } else if constexpr (UnionType<T>) {
    print(text, value.discriminant());
    text += ": ";
    value.visit([&](const auto& body) { print(text, body); });
  } else if constexpr (CustomType<T>) {
    text += "xdr " + to_hex(encode_to_bytes(value));
  } else {
    text += '{';
    const char* between = "";
    with_fields(
        value, [&](const auto&... fields) { ((text += between, print(text, fields), between = ", "), ...); });
    text += '}';
  }
}

template <typename T>
std::string to_text(const T& value) {
  std::string text;
  print(text, value);
  return text;
}

}  // namespace pnfsrdma::xdr
