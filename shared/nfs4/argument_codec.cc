// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/operation_codec.h"
#include "shared/nfs4/operation_variant.h"

namespace pnfsrdma::nfs4 {

void encode_operation(xdr::Encoder& encoder, const ArgumentOperation& operation) {
  encode_variant(encoder, operation);
}

bool decode_operation(xdr::Decoder& decoder, uint32_t number, ArgumentOperation& operation) {
  return decode_variant(decoder, index_of(kOperationTable, number), operation);
}

}  // namespace pnfsrdma::nfs4
