// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "shared/base/check.h"
#include "shared/nfs4/operation_table.h"
#include "shared/xdr/codec.h"

// For the .cc files that compile the codecs of the operation variants.
namespace pnfsrdma::nfs4 {

// The index in a variant of the operation with this number.
inline size_t index_of(std::span<const OperationRow> table, uint32_t number) {
  for (size_t index = 0; index < table.size(); ++index) {
    if (table[index].number == number) return index;
  }
  CHECK(!"not an operation");
  return 0;
}

template <typename... Types>
void encode_variant(xdr::Encoder& encoder, const std::variant<Types...>& value) {
  std::visit([&](const auto& body) { xdr::encode(encoder, body); }, value);
}

// Decodes the alternative at `index` by a table of one function each.
template <typename... Types>
bool decode_variant(xdr::Decoder& decoder, size_t index, std::variant<Types...>& value) {
  using Decode = bool (*)(xdr::Decoder&, std::variant<Types...>&);
  static constexpr Decode kDecoders[] = {[](xdr::Decoder& from, std::variant<Types...>& to) {
    return xdr::decode(from, to.template emplace<Types>());
  }...};
  return kDecoders[index](decoder, value);
}

}  // namespace pnfsrdma::nfs4
