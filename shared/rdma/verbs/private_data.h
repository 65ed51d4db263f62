// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/bytes.h"

namespace pnfsrdma::rdma::verbs {

// Four bytes of ours stand in front of the private data, because the connection manager of InfiniBand and
// RoCE pads it with zeros and does not tell its length, and because FLUSH and ATOMIC WRITE are negotiated and
// never tried: "pR", flags (1: native flush, 2: atomic write), length of what follows. Flags a side does not
// know it ignores and does not answer with. A peer that does not begin with it (the Linux kernel) gets and
// gives plain private data.
inline constexpr size_t kPrefixSize = 4;
// What RDMA_PS_TCP leaves of a connection request (92 bytes less the address header of 36).
inline constexpr size_t kRequestPrivateDataMax = 56;
inline constexpr size_t kUserPrivateDataMax = kRequestPrivateDataMax - kPrefixSize;

struct PrivateData {
  bool prefixed = false;
  bool native_flush = false;
  bool atomic_write = false;
  Bytes user;
};

// `user` is at most kUserPrivateDataMax bytes.
Bytes encode_private_data(const PrivateData& data);
// Never fails: bytes that do not begin with a whole prefix are the user's.
PrivateData decode_private_data(ByteSpan bytes);

}  // namespace pnfsrdma::rdma::verbs
