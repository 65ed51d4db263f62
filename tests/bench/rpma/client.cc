// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rpma/client.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <random>

#include "tests/bench/rpma/peer.h"

namespace pnfsrdma::bench {
namespace {

constexpr uint32_t kPiece = 4096;
constexpr uint32_t kRawBytes = 8;
constexpr uint32_t kChain = 16, kChainBytes = 64;
// As many work requests as a chain has, and some; librpma's own default is 10.
constexpr uint32_t kQueue = 32;
constexpr uint64_t kWarmUp = 50;
// Places in the client's own memory: the data, the READ's sink, the request, the answer.
constexpr size_t kRawAt = kPiece, kRequestAt = kRawAt + 64, kAnswerAt = kRequestAt + 64,
                 kOwnBytes = 2 * kPiece;

class RpmaClient {
 public:
  Result<> connect(const std::string& address) {
    TRY_ASSIGN(peer_, open_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE));
    TRY_ASSIGN(own_, register_memory(peer_, memory_,
                                     RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND |
                                         RPMA_MR_USAGE_RECV));
    rpma_conn_req* request = nullptr;
    rpma_conn_cfg* settings = nullptr;
    TRY(rpma_ok(rpma_conn_cfg_new(&settings), "rpma_conn_cfg_new"));
    const RpmaConnectionSettings owned(settings);
    TRY(rpma_ok(rpma_conn_cfg_set_sq_size(settings, kQueue), "rpma_conn_cfg_set_sq_size"));
    TRY(rpma_ok(rpma_conn_cfg_set_cq_size(settings, 2 * kQueue), "rpma_conn_cfg_set_cq_size"));
    TRY(rpma_ok(rpma_conn_req_new(peer_.get(), address.c_str(), kPort, settings, &request),
                "rpma_conn_req_new"));
    rpma_conn* connection = nullptr;
    TRY(rpma_ok(rpma_conn_req_connect(&request, nullptr, &connection), "rpma_conn_req_connect"));
    connection_.reset(connection);
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    TRY(rpma_ok(rpma_conn_next_event(connection, &event), "rpma_conn_next_event"));
    if (event != RPMA_CONN_ESTABLISHED) return fail(ECONNREFUSED, "the server does not take the connection");
    return learn_server();
  }

  Result<> apm(uint64_t offset) {
    TRY(write(offset));
    TRY(rpma_ok(rpma_read(connection_.get(), own_.get(), kRawAt, remote_.get(), offset, kRawBytes,
                          RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_read"));
    return wait_for(1);
  }
  Result<> flush(uint64_t offset) {
    TRY(write(offset));
    TRY(rpma_ok(rpma_flush(connection_.get(), remote_.get(), offset, kPiece, RPMA_FLUSH_TYPE_PERSISTENT,
                           RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_flush"));
    return wait_for(1);
  }
  Result<> read(uint64_t offset) {
    TRY(rpma_ok(rpma_read(connection_.get(), own_.get(), 0, remote_.get(), offset, kPiece,
                          RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_read"));
    return wait_for(1);
  }
  // In pages of their own from `offset` on, or from the beginning again.
  Result<> chain(uint64_t offset) {
    for (uint32_t i = 0; i < kChain; ++i) {
      const uint64_t at = (offset + i * uint64_t{kPiece}) % kMemory;
      TRY(rpma_ok(rpma_write(connection_.get(), remote_.get(), at, own_.get(), i * kChainBytes, kChainBytes,
                             RPMA_F_COMPLETION_ON_ERROR, nullptr),
                  "rpma_write"));
    }
    TRY(rpma_ok(rpma_flush(connection_.get(), remote_.get(), 0, kMemory, RPMA_FLUSH_TYPE_PERSISTENT,
                           RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_flush"));
    return wait_for(1);
  }
  Result<> gpspm(uint64_t offset) {
    const FlushRequest request{offset, kPiece};
    std::memcpy(memory_.data() + kRequestAt, &request, sizeof(request));
    TRY(write(offset));
    TRY(rpma_ok(rpma_recv(connection_.get(), own_.get(), kAnswerAt, sizeof(request), nullptr), "rpma_recv"));
    TRY(rpma_ok(rpma_send(connection_.get(), own_.get(), kRequestAt, sizeof(request),
                          RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_send"));
    return wait_for(2);  // the SEND's and the answer
  }

 private:
  Result<> learn_server() {
    rpma_conn_private_data data{};
    TRY(rpma_ok(rpma_conn_get_private_data(connection_.get(), &data), "rpma_conn_get_private_data"));
    const auto* bytes = static_cast<const uint8_t*>(data.ptr);
    if (data.len < 2 || data.len < 2u + bytes[0] + bytes[1])
      return fail(EPROTO, "the server says too little");
    rpma_mr_remote* remote = nullptr;
    TRY(rpma_ok(rpma_mr_remote_from_descriptor(bytes + 2, bytes[0], &remote),
                "rpma_mr_remote_from_descriptor"));
    remote_.reset(remote);
    rpma_peer_cfg* settings = nullptr;
    TRY(rpma_ok(rpma_peer_cfg_from_descriptor(bytes + 2 + bytes[0], bytes[1], &settings),
                "rpma_peer_cfg_from_descriptor"));
    const RpmaPeerSettings owned(settings);
    return rpma_ok(rpma_conn_apply_remote_peer_cfg(connection_.get(), settings),
                   "rpma_conn_apply_remote_peer_cfg");
  }
  Result<> write(uint64_t offset) {
    return rpma_ok(rpma_write(connection_.get(), remote_.get(), offset, own_.get(), 0, kPiece,
                              RPMA_F_COMPLETION_ON_ERROR, nullptr),
                   "rpma_write");
  }
  Result<> wait_for(int completions) {
    for (int i = 0; i < completions; ++i) TRY(next_completion(connection_.get()));
    return {};
  }

  Bytes memory_ = Bytes(kOwnBytes);
  RpmaPeer peer_;
  RpmaRegion own_;
  RpmaConnection connection_;
  RpmaRemote remote_;
};

}  // namespace

Result<std::vector<double>> measure_rpma(const std::string& address, const std::string& method,
                                         uint64_t operations) {
  RpmaClient client;
  TRY(client.connect(address));
  static const std::map<std::string, Result<> (RpmaClient::*)(uint64_t)> kMethods{
      {"apm", &RpmaClient::apm},
      {"gpspm", &RpmaClient::gpspm},
      {"flush", &RpmaClient::flush},
      {"read", &RpmaClient::read},
      {"chain", &RpmaClient::chain}};
  const auto found = kMethods.find(method);
  if (found == kMethods.end()) return fail(EINVAL, "no such method");
  std::mt19937 random;
  std::vector<double> microseconds;
  for (uint64_t number = 0; number < kWarmUp + operations; ++number) {
    const uint64_t offset = random() % (kMemory / kPiece) * uint64_t{kPiece};
    const auto start = std::chrono::steady_clock::now();
    TRY((client.*found->second)(offset));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (number >= kWarmUp) microseconds.push_back(took.count());
  }
  return microseconds;
}

}  // namespace pnfsrdma::bench
