// SPDX-License-Identifier: Apache-2.0
// Messages of an RPC-over-RDMA peer, each behind a length of two bytes, to an endpoint that has calls
// outstanding and answers what it is asked. The first byte says which end we are.
#include "shared/base/log.h"
#include "shared/nfs4/compound.h"
#include "shared/nfs4/data_items.h"
#include "shared/rpc/message.h"
#include "shared/rpc_rdma/endpoint.h"
#include "shared/xdr/codec.h"
#include "tests/fuzz/rpc-rdma/scripted_transport.h"

using namespace pnfsrdma;
using namespace pnfsrdma::rpc_rdma;

namespace {

constexpr UpperLayer kNfs{.argument_items = nfs4::argument_data_items,
                          .result_items = nfs4::result_data_items,
                          .result_bound = nfs4::result_bound,
                          .restored_items = nfs4::restored_data_items};
constexpr size_t kMessageMax = 100'000;

void call(Endpoint& endpoint, uint32_t xid, nfs4::ArgumentOperation operation) {
  rpc::CallHeader header;
  header.xid = xid;
  header.program = nfs4::kProgram;
  header.version = nfs4::kVersion;
  Bytes body = xdr::encode_to_bytes(nfs4::CompoundArguments{{nfs4::Tag(), 2}, {std::move(operation)}});
  (void)endpoint.send(xdr::encode_to_bytes(header), std::make_shared<const Bytes>(std::move(body)));
}

void call_some(Endpoint& endpoint) {
  nfs4::ReadArguments read;
  read.count = 8192;
  nfs4::WriteArguments write;
  write.data = nfs4::Data(Bytes(8001));
  call(endpoint, 1, read);
  call(endpoint, 2, write);
  call(endpoint, 3, nfs4::GetXattrArguments{});
  call(endpoint, 4, nfs4::PutRootFileHandleArguments{});
}

// Results with data: long ones for every other call.
void answer(Endpoint& endpoint, uint32_t xid) {
  nfs4::ReadResult read;
  read.data = nfs4::Data(Bytes(xid % 2 == 0 ? 20 : 9001, std::byte{7}));
  nfs4::CompoundResults results;
  results.operations = {nfs4::ReadResponse(std::move(read))};
  (void)endpoint.send(xdr::encode_to_bytes(rpc::ReplyHeader::success(xid)),
                      std::make_shared<const Bytes>(xdr::encode_to_bytes(results)));
}

// False: the connection has ended.
bool run(Endpoint& endpoint) {
  std::vector<Bytes> messages;
  const bool goes_on = static_cast<bool>(endpoint.progress(messages));
  for (const Bytes& message : messages) {
    CHECK(message.size() <= kMessageMax + 8192);
    const auto start = rpc::peek_message(message);
    CHECK(start);
    if (start->type == rpc::MessageType::kCall) answer(endpoint, start->xid);
  }
  return goes_on && endpoint.flush() && endpoint.progress(messages);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  set_log_level(LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ByteSpan input(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const auto role = data[0] % 2 == 0 ? Endpoint::Role::kAccepting : Endpoint::Role::kConnecting;
  ScriptedMemory memory;
  {
    const auto transport = std::make_shared<ScriptedTransport>(memory);
    const auto domain = transport->make_protection_domain();
    auto buffers = MessageBuffers::make(*transport, domain);
    auto queue_pair = std::make_unique<ScriptedQueuePair>(memory);
    ScriptedQueuePair& peer = *queue_pair;
    auto endpoint = Endpoint::make(role, transport, domain, *std::move(buffers), std::move(queue_pair), {},
                                   kNfs, kMessageMax);
    CHECK(endpoint);
    if (role == Endpoint::Role::kConnecting) call_some(**endpoint);
    bool goes_on = static_cast<bool>((*endpoint)->flush());
    while (goes_on && input.size() > 2) {
      const size_t length = std::min<size_t>(load_big_endian<uint16_t>(input.data()), input.size() - 2);
      goes_on = peer.deliver(input.subspan(2, length)) && run(**endpoint);
      input = input.subspan(2 + length);
    }
    // Nothing stays reachable when all has been answered.
    if (goes_on && (*endpoint)->calls_outstanding() == 0) CHECK(!memory.remotely_reachable());
  }
  return 0;
}
