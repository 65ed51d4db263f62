// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/clock.h"
#include "shared/nfs4/range_locks.h"

namespace pnfsrdma::mds {

// What the server takes on at most. Bytes count the RPC message without its record marks.
struct ServerLimits {
  Milliseconds lease{30'000};
  uint32_t io_bytes_max = 1 << 20;                     // maxread, maxwrite
  uint32_t request_bytes_max = (1 << 20) + 16 * 1024;  // ca_maxrequestsize
  uint32_t reply_bytes_max = (1 << 20) + 16 * 1024;    // ca_maxresponsesize
  uint32_t cached_reply_bytes_max = 8 * 1024;          // ca_maxresponsesize_cached, per slot
  uint32_t operations_max = 64;                        // ca_maxoperations
  uint32_t session_slots_max = 64;                     // ca_maxrequests
  uint32_t sessions_per_client_max = 16;
  uint32_t clients_max = 4096;              // confirmed
  uint32_t clients_per_address_max = 2048;  // of these; a NAT may have many behind it
  uint32_t unconfirmed_clients_max = 1024;  // further ones take the places of the oldest
  uint32_t opens_per_client_max = 1 << 20;
  uint32_t lock_owners_per_client_max = 1 << 16;  // counted once for each file
  uint32_t back_slots_max = 16;
  bool delegations = true;  // whether any is given
  // Of those that a client holds; then it is asked to return half of them (CB_RECALL_ANY).
  uint32_t delegations_per_client_max = 1 << 14;
  // mdsthreshold: a file no larger, or I/O no larger, is better read and written through the server. 0: no
  // hint.
  uint64_t small_file_bytes = 16 * 1024;
  uint64_t small_io_bytes = 0;
};

// Ranges of one lock owner in one file: what its record holds.
inline constexpr size_t kLockRangesMax = nfs4::kLockRangesMax;

// Smaller channel attributes are refused with TOOSMALL: SEQUENCE with one operation of use would not fit.
inline constexpr uint32_t kRequestBytesMin = 256;
inline constexpr uint32_t kReplyBytesMin = 256;
inline constexpr uint32_t kCallbackBytesMin = 512;

}  // namespace pnfsrdma::mds
