// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pnfsrdma {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

// Big-endian integers as network headers and ordered keys carry them. The caller has checked the bounds.
template <typename T>
  requires std::is_unsigned_v<T>
T load_big_endian(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>((value << 8) | std::to_integer<T>(from[i]));
  return value;
}
template <typename T>
  requires std::is_unsigned_v<T>
void store_big_endian(std::byte* to, T value) {
  for (size_t i = sizeof(T); i-- > 0; value = static_cast<T>(value >> (sizeof(T) > 1 ? 8 : 0))) {
    to[i] = static_cast<std::byte>(value & 0xff);
  }
}

inline ByteSpan as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "0a1b2c"
std::string to_hex(ByteSpan bytes);

}  // namespace pnfsrdma
