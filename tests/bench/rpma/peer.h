// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librpma.h>

#include <cstdint>
#include <memory>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace pnfsrdma::bench {

// What librpma's objects are owned by. Each of its delete functions takes the address of the pointer.
template <auto delete_function>
struct RpmaDelete {
  template <typename T>
  void operator()(T* object) const {
    static_cast<void>(delete_function(&object));
  }
};
using RpmaPeer = std::unique_ptr<rpma_peer, RpmaDelete<rpma_peer_delete>>;
using RpmaRegion = std::unique_ptr<rpma_mr_local, RpmaDelete<rpma_mr_dereg>>;
using RpmaRemote = std::unique_ptr<rpma_mr_remote, RpmaDelete<rpma_mr_remote_delete>>;
using RpmaConnection = std::unique_ptr<rpma_conn, RpmaDelete<rpma_conn_delete>>;
using RpmaPeerSettings = std::unique_ptr<rpma_peer_cfg, RpmaDelete<rpma_peer_cfg_delete>>;
using RpmaConnectionSettings = std::unique_ptr<rpma_conn_cfg, RpmaDelete<rpma_conn_cfg_delete>>;
using RpmaEndpoint = std::unique_ptr<rpma_ep, RpmaDelete<rpma_ep_shutdown>>;

// librpma's own words for its error, as an EIO.
Result<> rpma_ok(int code, const char* call);

Result<RpmaPeer> open_peer(const std::string& address, rpma_util_ibv_context_type type);
Result<RpmaRegion> register_memory(const RpmaPeer& peer, MutableByteSpan memory, int usage);

// A flush request of the general purpose method (GPSPM), and its answer: the same bytes come back.
struct FlushRequest {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// The next completion, polled for without a pause as fio's librpma engines do by default. EIO when the work
// failed, ECONNRESET when the peer has gone.
Result<ibv_wc> next_completion(rpma_conn* connection);

inline constexpr uint32_t kMemory = uint32_t{2}
                                    << 20;  // the server's, behind the end of the pool's other users
inline constexpr const char* kPort = "7204";

}  // namespace pnfsrdma::bench
