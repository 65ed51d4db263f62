// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/operation_codec.h"
#include "shared/nfs4/operation_variant.h"

namespace pnfsrdma::nfs4 {

void encode_operation(xdr::Encoder& encoder, const CallbackArgumentOperation& operation) {
  encode_variant(encoder, operation);
}

void encode_operation(xdr::Encoder& encoder, const CallbackResultOperation& operation) {
  encode_variant(encoder, operation);
}

bool decode_operation(xdr::Decoder& decoder, uint32_t number, CallbackArgumentOperation& operation) {
  return decode_variant(decoder, index_of(kCallbackTable, number), operation);
}

bool decode_operation(xdr::Decoder& decoder, uint32_t number, CallbackResultOperation& operation) {
  return decode_variant(decoder, index_of(kCallbackTable, number), operation);
}

}  // namespace pnfsrdma::nfs4
