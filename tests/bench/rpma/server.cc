// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rpma/server.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "shared/pmem/mapping.h"
#include "tests/bench/rpma/peer.h"

namespace pnfsrdma::bench {
namespace {

constexpr int kUsage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
                       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

// What the client must know: the descriptor of the memory, then that of this peer's abilities.
Result<Bytes> describe(const RpmaRegion& region) {
  rpma_peer_cfg* raw = nullptr;
  TRY(rpma_ok(rpma_peer_cfg_new(&raw), "rpma_peer_cfg_new"));
  const RpmaPeerSettings settings(raw);
  TRY(rpma_ok(rpma_peer_cfg_set_direct_write_to_pmem(raw, true), "rpma_peer_cfg_set_direct_write_to_pmem"));
  size_t memory_size = 0, settings_size = 0;
  TRY(rpma_ok(rpma_mr_get_descriptor_size(region.get(), &memory_size), "rpma_mr_get_descriptor_size"));
  TRY(rpma_ok(rpma_peer_cfg_get_descriptor_size(raw, &settings_size), "rpma_peer_cfg_get_descriptor_size"));
  Bytes bytes(2 + memory_size + settings_size);
  bytes[0] = static_cast<std::byte>(memory_size);
  bytes[1] = static_cast<std::byte>(settings_size);
  TRY(rpma_ok(rpma_mr_get_descriptor(region.get(), bytes.data() + 2), "rpma_mr_get_descriptor"));
  TRY(rpma_ok(rpma_peer_cfg_get_descriptor(raw, bytes.data() + 2 + memory_size),
              "rpma_peer_cfg_get_descriptor"));
  return bytes;
}

Result<> answer_flushes(rpma_conn* connection, const RpmaRegion& messages, MutableByteSpan message,
                        pmem::Persistence& persistence, MutableByteSpan memory) {
  for (;;) {
    auto completion = next_completion(connection);
    if (!completion) {
      if (completion.error().number() == ECONNRESET) return {};
      return std::unexpected(completion.error());
    }
    if (completion->opcode != IBV_WC_RECV) continue;
    FlushRequest request;
    std::memcpy(&request, message.data(), sizeof(request));
    if (request.offset > memory.size() || request.length > memory.size() - request.offset) {
      return fail(EPROTO, "a flush out of bounds");
    }
    TRY(persistence.persist(memory.subspan(request.offset, request.length)));
    TRY(rpma_ok(rpma_recv(connection, messages.get(), 0, sizeof(FlushRequest), nullptr), "rpma_recv"));
    TRY(rpma_ok(rpma_send(connection, messages.get(), sizeof(FlushRequest), sizeof(FlushRequest),
                          RPMA_F_COMPLETION_ALWAYS, nullptr),
                "rpma_send"));
  }
}

}  // namespace

Result<> serve_rpma(const std::string& address, const std::string& dax) {
  TRY_ASSIGN(const auto mapping, pmem::Mapping::open(dax));
  const MutableByteSpan memory = mapping->bytes().last(kMemory);
  const auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
  TRY_ASSIGN(const RpmaPeer peer, open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL));
  TRY_ASSIGN(const RpmaRegion region, register_memory(peer, memory, kUsage));
  Bytes message(4096);
  TRY_ASSIGN(const RpmaRegion messages,
             register_memory(peer, message, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND));
  TRY_ASSIGN(Bytes described, describe(region));

  rpma_ep* raw_endpoint = nullptr;
  TRY(rpma_ok(rpma_ep_listen(peer.get(), address.c_str(), kPort, &raw_endpoint), "rpma_ep_listen"));
  const RpmaEndpoint endpoint(raw_endpoint);
  std::printf("listening, %s\n", std::string(to_string(persistence->durability())).c_str());
  std::fflush(stdout);
  rpma_conn_req* request = nullptr;
  TRY(rpma_ok(rpma_ep_next_conn_req(endpoint.get(), nullptr, &request), "rpma_ep_next_conn_req"));
  TRY(rpma_ok(rpma_conn_req_recv(request, messages.get(), 0, sizeof(FlushRequest), nullptr),
              "rpma_conn_req_recv"));
  rpma_conn_private_data data{described.data(), static_cast<uint8_t>(described.size())};
  rpma_conn* raw_connection = nullptr;
  TRY(rpma_ok(rpma_conn_req_connect(&request, &data, &raw_connection), "rpma_conn_req_connect"));
  const RpmaConnection connection(raw_connection);
  rpma_conn_event event = RPMA_CONN_UNDEFINED;
  TRY(rpma_ok(rpma_conn_next_event(raw_connection, &event), "rpma_conn_next_event"));
  if (event != RPMA_CONN_ESTABLISHED) return fail(ECONNRESET, "the client did not come");
  return answer_flushes(raw_connection, messages, message, *persistence, memory);
}

}  // namespace pnfsrdma::bench
