// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rpma/peer.h"

#include <poll.h>

#include <cerrno>

namespace pnfsrdma::bench {
namespace {

constexpr int kPollsPerLook = 4096;

bool has_event(rpma_conn* connection) {
  pollfd entry{-1, POLLIN, 0};
  return rpma_conn_get_event_fd(connection, &entry.fd) == 0 && ::poll(&entry, 1, 0) > 0;
}

}  // namespace

Result<> rpma_ok(int code, const char* call) {
  if (code == 0) return {};
  return fail(EIO, std::string(call) + ": " + rpma_err_2str(code));
}

Result<RpmaPeer> open_peer(const std::string& address, rpma_util_ibv_context_type type) {
  ibv_context* device = nullptr;
  TRY(rpma_ok(rpma_utils_get_ibv_context(address.c_str(), type, &device), "rpma_utils_get_ibv_context"));
  rpma_peer* peer = nullptr;
  TRY(rpma_ok(rpma_peer_new(device, &peer), "rpma_peer_new"));
  return RpmaPeer(peer);
}

Result<RpmaRegion> register_memory(const RpmaPeer& peer, MutableByteSpan memory, int usage) {
  rpma_mr_local* region = nullptr;
  TRY(rpma_ok(rpma_mr_reg(peer.get(), memory.data(), memory.size(), usage, &region), "rpma_mr_reg"));
  return RpmaRegion(region);
}

Result<ibv_wc> next_completion(rpma_conn* connection) {
  rpma_cq* completions = nullptr;
  TRY(rpma_ok(rpma_conn_get_cq(connection, &completions), "rpma_conn_get_cq"));
  for (int polls = 1;; ++polls) {
    ibv_wc completion{};
    const int code = rpma_cq_get_wc(completions, 1, &completion, nullptr);
    if (code == RPMA_E_NO_COMPLETION) {
      if (polls % kPollsPerLook == 0 && has_event(connection)) return fail(ECONNRESET, "the peer has gone");
      continue;
    }
    TRY(rpma_ok(code, "rpma_cq_get_wc"));
    if (completion.status != IBV_WC_SUCCESS) return fail(EIO, ibv_wc_status_str(completion.status));
    return completion;
  }
}

}  // namespace pnfsrdma::bench
