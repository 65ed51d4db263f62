// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/private_data.h"

#include <algorithm>

#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::rpc_rdma {
namespace {

constexpr uint8_t kFormatVersion = 1;

// RFC 8797, 4.1: kilobytes less one.
constexpr uint32_t from_code(std::byte code) {
  return (std::to_integer<uint32_t>(code) + 1) * 1024;
}
constexpr std::byte to_code(uint32_t bytes) {
  return static_cast<std::byte>(bytes / 1024 - 1);
}

}  // namespace

Bytes our_private_data() {
  Bytes data(kPrivateDataSize);
  store_big_endian(data.data(), kPrivateDataMagic);
  data[4] = std::byte{kFormatVersion};
  data[5] = std::byte{0};  // no remote invalidation
  data[6] = data[7] = to_code(kInlineThreshold);
  return data;
}

Thresholds agree(ByteSpan data) {
  for (; data.size() >= kPrivateDataSize; data = data.subspan(1)) {
    if (load_big_endian<uint32_t>(data.data()) != kPrivateDataMagic) continue;
    if (std::to_integer<uint8_t>(data[4]) != kFormatVersion) break;
    return {.send = std::min(kInlineThreshold, from_code(data[7])),
            .receive = std::min(kInlineThreshold, from_code(data[6]))};
  }
  return {kInlineThresholdDefault, kInlineThresholdDefault};
}

}  // namespace pnfsrdma::rpc_rdma
