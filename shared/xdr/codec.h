// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "shared/base/check.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"
#include "shared/xdr/reflection.h"
#include "shared/xdr/types.h"
#include "shared/xdr/union.h"

// Encoding and decoding of every wire type from its declaration. A type with rules of its own has
// `void xdr_encode(Encoder&, const T&)` and `bool xdr_decode(Decoder&, T&)` in its namespace; an enum whose
// unknown values are to be refused has `constexpr bool xdr_known(T)` there.
namespace pnfsrdma::xdr {

template <typename T>
concept FixedOpaqueType = std::same_as<T, FixedOpaque<std::tuple_size<T>::value>>;
template <typename T>
concept OpaqueType = std::derived_from<T, Bytes> && requires { T::kMax; };
template <typename T>
concept StringType = std::derived_from<T, std::string> && requires { T::kMax; };
template <typename T>
concept ListType = !OpaqueType<T> && !StringType<T> && requires {
  T::kMax;
  typename T::value_type;
} && std::derived_from<T, std::vector<typename T::value_type>>;
template <typename T>
concept ChainType = !requires { T::kMax; } && requires { typename T::value_type; } &&
                    std::derived_from<T, Chain<typename T::value_type>>;
template <typename T>
concept PayloadType = requires { T::kMax; } && std::same_as<T, Payload<T::kMax>>;
template <typename T>
concept UnionType = requires { T::kIsUnion; };
template <typename T>
concept OptionalType = detail::kIsOptional<T>;
template <typename T>
concept CustomType = requires(Encoder& encoder, const T& value) { xdr_encode(encoder, value); };
template <typename T>
concept IntegerType = std::same_as<T, uint32_t> || std::same_as<T, int32_t> || std::same_as<T, uint64_t> ||
                      std::same_as<T, int64_t>;
template <typename T>
concept EnumType = std::is_enum_v<T> && sizeof(T) == 4;

template <typename T>
void encode(Encoder& encoder, const T& value);

// As a Chain has it.
template <typename T>
void encode_item(Encoder& encoder, const T& item) {
  encoder.put_u32(1);
  encode(encoder, item);
}

template <typename T>
void encode(Encoder& encoder, const T& value) {
  if constexpr (CustomType<T>) {
    xdr_encode(encoder, value);
  } else if constexpr (std::same_as<T, bool> || EnumType<T>) {
    encoder.put_u32(static_cast<uint32_t>(value));
  } else if constexpr (IntegerType<T> && sizeof(T) == 4) {
    encoder.put_u32(static_cast<uint32_t>(value));
  } else if constexpr (IntegerType<T>) {
    encoder.put_u64(static_cast<uint64_t>(value));
  } else if constexpr (FixedOpaqueType<T>) {
    encoder.put_fixed(value);
  } else if constexpr (OpaqueType<T>) {
    CHECK(value.size() <= T::kMax);
    encoder.put_opaque(value);
  } else if constexpr (StringType<T>) {
    CHECK(value.size() <= T::kMax);
    encoder.put_opaque(as_bytes(value));
  } else if constexpr (PayloadType<T>) {
    CHECK(value.size() <= T::kMax);
    encoder.put_opaque(value.span());
  } else if constexpr (OptionalType<T>) {
    encoder.put_u32(value.has_value());
    if (value) encode(encoder, *value);
  } else if constexpr (ListType<T>) {
    CHECK(value.size() <= T::kMax);
    encoder.put_u32(static_cast<uint32_t>(value.size()));
    for (const auto& item : value) encode(encoder, item);
  } else if constexpr (ChainType<T>) {
    encoder.put_fixed(value.encoded);
    for (const auto& item : value) encode_item(encoder, item);
    encoder.put_u32(0);
  } else if constexpr (UnionType<T>) {
    encode(encoder, value.discriminant());
    value.visit([&](const auto& body) { encode(encoder, body); });
  } else {
    static_assert(Reflected<T>, "not a wire type");
    with_fields(value, [&](const auto&... fields) { (encode(encoder, fields), ...); });
  }
}

template <typename T>
[[nodiscard]] bool decode(Decoder& decoder, T& value);

namespace detail {

[[nodiscard]] inline bool decode_bool(Decoder& decoder, bool& value) {
  uint32_t raw = 0;
  if (!decoder.get_u32(raw)) return false;
  if (raw > 1) return decoder.fail(DecodeError::kBool);
  value = raw == 1;
  return true;
}

template <EnumType T>
[[nodiscard]] bool decode_enum(Decoder& decoder, T& value) {
  uint32_t raw = 0;
  if (!decoder.get_u32(raw)) return false;
  value = static_cast<T>(raw);
  if constexpr (requires { xdr_known(value); }) {
    if (!xdr_known(value)) return decoder.fail(DecodeError::kEnumerator);
  }
  return true;
}

template <ListType T>
[[nodiscard]] bool decode_list(Decoder& decoder, T& value) {
  // Grown as items come in: a short record with a large count must not cost memory.
  constexpr size_t kReserveBytesMax = 65536;
  uint32_t count = 0;
  if (!decoder.get_count(count, T::kMax) || !decoder.enter()) return false;
  value.clear();
  value.reserve(std::min<size_t>(count, 1 + kReserveBytesMax / sizeof(typename T::value_type)));
  for (uint32_t i = 0; i < count; ++i) {
    if (!decode(decoder, value.emplace_back())) return false;
  }
  decoder.leave();
  return true;
}

template <ChainType T>
[[nodiscard]] bool decode_chain(Decoder& decoder, T& value) {
  value.clear();
  if (!decoder.enter()) return false;
  for (bool more = false;;) {
    if (!decode_bool(decoder, more)) return false;
    if (!more) break;
    if (!decode(decoder, value.emplace_back())) return false;
  }
  decoder.leave();
  return true;
}

template <UnionType T>
[[nodiscard]] bool decode_union(Decoder& decoder, T& value) {
  typename T::Discriminant discriminant{};
  if (!decode(decoder, discriminant)) return false;
  if (T::arm_of(discriminant) == T::kArms) return decoder.fail(DecodeError::kDiscriminant);
  value.select(discriminant);
  return value.visit([&](auto& body) { return decode(decoder, body); });
}

template <OptionalType T>
[[nodiscard]] bool decode_optional(Decoder& decoder, T& value) {
  bool present = false;
  value.reset();
  if (!decode_bool(decoder, present)) return false;
  if (!present) return true;
  if (!decoder.enter() || !decode(decoder, value.emplace())) return false;
  decoder.leave();
  return true;
}

template <IntegerType T>
[[nodiscard]] bool decode_integer(Decoder& decoder, T& value) {
  std::make_unsigned_t<T> raw = 0;
  if constexpr (sizeof(T) == 4) {
    if (!decoder.get_u32(raw)) return false;
  } else {
    if (!decoder.get_u64(raw)) return false;
  }
  value = static_cast<T>(raw);
  return true;
}

}  // namespace detail

template <typename T>
bool decode(Decoder& decoder, T& value) {
  if constexpr (CustomType<T>) {
    return xdr_decode(decoder, value);
  } else if constexpr (std::same_as<T, bool>) {
    return detail::decode_bool(decoder, value);
  } else if constexpr (EnumType<T>) {
    return detail::decode_enum(decoder, value);
  } else if constexpr (IntegerType<T>) {
    return detail::decode_integer(decoder, value);
  } else if constexpr (FixedOpaqueType<T>) {
    return decoder.get_fixed(value);
  } else if constexpr (OpaqueType<T>) {
    ByteSpan view;
    if (!decoder.get_opaque(view, T::kMax)) return false;
    value.assign(view.begin(), view.end());
    return true;
  } else if constexpr (StringType<T>) {
    ByteSpan view;
    if (!decoder.get_opaque(view, T::kMax)) return false;
    value.assign(as_text(view));
    return true;
  } else if constexpr (PayloadType<T>) {
    ByteSpan view;
    if (!decoder.get_opaque(view, T::kMax)) return false;
    value = T::view_of(view);
    return true;
  } else if constexpr (OptionalType<T>) {
    return detail::decode_optional(decoder, value);
  } else if constexpr (ListType<T>) {
    return detail::decode_list(decoder, value);
  } else if constexpr (ChainType<T>) {
    return detail::decode_chain(decoder, value);
  } else if constexpr (UnionType<T>) {
    return detail::decode_union(decoder, value);
  } else {
    static_assert(Reflected<T>, "not a wire type");
    return with_fields(value, [&](auto&... fields) { return (decode(decoder, fields) && ...); });
  }
}

template <typename T>
Bytes encode_to_bytes(const T& value) {
  Bytes bytes;
  Encoder encoder(bytes);
  {
    const Encoder::Staging staging(encoder);
    encode(encoder, value);
  }
  return bytes;
}

// Bytes `value` takes on the wire.
template <typename T>
size_t encoded_size(const T& value) {
  Encoder counter = Encoder::counter();
  encode(counter, value);
  return counter.position();
}

// The value at the start of `bytes`; what follows it is ignored. Payload views point into `bytes`.
template <typename T>
std::expected<T, DecodeError> decode_prefix(ByteSpan bytes) {
  Decoder decoder(bytes);
  std::expected<T, DecodeError> value;
  if (!decode(decoder, *value)) value = std::unexpected(decoder.error());
  return value;
}

// The value that is the whole of `bytes`: anything left over is an error.
template <typename T>
std::expected<T, DecodeError> decode_from(ByteSpan bytes) {
  Decoder decoder(bytes);
  std::expected<T, DecodeError> value;
  if (!decode(decoder, *value)) {
    value = std::unexpected(decoder.error());
  } else if (decoder.remaining() > 0) {
    value = std::unexpected(DecodeError::kTrailing);
  }
  return value;
}

}  // namespace pnfsrdma::xdr
