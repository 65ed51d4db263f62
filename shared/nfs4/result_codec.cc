// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/operation_codec.h"
#include "shared/nfs4/operation_variant.h"

namespace pnfsrdma::nfs4 {
namespace {

template <typename... Responses>
void set_status(size_t index, Status status, std::variant<Responses...>& result) {
  using Set = void (*)(Status, std::variant<Responses...>&);
  static constexpr Set kSetters[] = {
      [](Status to, std::variant<Responses...>& in) { in.template emplace<Responses>(to); }...};
  kSetters[index](status, result);
}

}  // namespace

void encode_operation(xdr::Encoder& encoder, const ResultOperation& operation) {
  encode_variant(encoder, operation);
}

bool decode_operation(xdr::Decoder& decoder, uint32_t number, ResultOperation& operation) {
  return decode_variant(decoder, index_of(kOperationTable, number), operation);
}

ResultOperation status_result(Operation operation, Status status) {
  ResultOperation result;
  set_status(index_of(kOperationTable, static_cast<uint32_t>(operation)), status, result);
  return result;
}

CallbackResultOperation status_result(CallbackOperation operation, Status status) {
  CallbackResultOperation result;
  set_status(index_of(kCallbackTable, static_cast<uint32_t>(operation)), status, result);
  return result;
}

}  // namespace pnfsrdma::nfs4
