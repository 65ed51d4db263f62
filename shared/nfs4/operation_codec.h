// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/operations.h"
#include "shared/xdr/decoder.h"
#include "shared/xdr/encoder.h"

// The bodies of operations, without their numbers. The codecs of all types are compiled once, behind these.
namespace pnfsrdma::nfs4 {

void encode_operation(xdr::Encoder& encoder, const ArgumentOperation& operation);
void encode_operation(xdr::Encoder& encoder, const ResultOperation& operation);
void encode_operation(xdr::Encoder& encoder, const CallbackArgumentOperation& operation);
void encode_operation(xdr::Encoder& encoder, const CallbackResultOperation& operation);

// `number` must be in the operation's table. False as from every decoder.
[[nodiscard]] bool decode_operation(xdr::Decoder& decoder, uint32_t number, ArgumentOperation& operation);
[[nodiscard]] bool decode_operation(xdr::Decoder& decoder, uint32_t number, ResultOperation& operation);
[[nodiscard]] bool decode_operation(xdr::Decoder& decoder, uint32_t number,
                                    CallbackArgumentOperation& operation);
[[nodiscard]] bool decode_operation(xdr::Decoder& decoder, uint32_t number,
                                    CallbackResultOperation& operation);

}  // namespace pnfsrdma::nfs4
