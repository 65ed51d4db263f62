// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/compound_client.h"

#include "shared/base/check.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::crash {
namespace {

constexpr int kLaterMax = 40;  // times that "later" is taken for an answer
constexpr Milliseconds kPause{100};

bool says_later(nfs4::Status status) {
  using nfs4::Status;
  return status == Status::kDelay || status == Status::kGrace || status == Status::kLayoutTryLater ||
         status == Status::kRecallConflict || status == Status::kReturnConflict;
}

nfs4::ChannelAttributes channel(uint32_t bytes, uint32_t requests) {
  return {.max_request_size = bytes,
          .max_response_size = bytes,
          .max_response_size_cached = 4096,
          .max_operations = 16,
          .max_requests = requests,
          .rdma_ird = {}};
}

}  // namespace

Reply CompoundClient::send(const Operations& operations) {
  nfs4::CompoundArguments arguments;
  arguments.header = {.tag = "crash", .minor_version = 2};
  arguments.operations = operations;
  mds::CompoundCall call;
  call.record = xdr::encode_to_bytes(arguments);
  call.arguments = call.record;
  call.flavor = 1;
  call.caller = {.uid = 0, .gid = 0, .groups = {}};
  call.peer = "127.0.0.1:900";
  auto answer = std::make_shared<std::shared_ptr<const Bytes>>();
  system_.metadata->compounds.start(std::move(call), [answer](mds::CompoundReply sent) {
    CHECK(sent);
    *answer = *std::move(sent);
  });
  if (!system_.until([&] { return *answer != nullptr; })) {
    Reply none;
    none.results.status = nfs4::Status::kServerFault;
    return none;
  }
  auto results = xdr::decode_from<nfs4::CompoundResults>(**answer);
  CHECK(results);
  return {*answer, std::move(*results)};
}

bool CompoundClient::connect() {
  nfs4::ExchangeIdArguments exchange;
  exchange.owner.owner = nfs4::OwnerId(as_bytes(name_));
  store_big_endian(exchange.owner.verifier.data(), uint64_t(system_.clock.now().time_since_epoch().count()));
  exchange.flags = nfs4::kExchangeUsePnfsMds;
  const Reply exchanged = send({exchange});
  if (!exchanged.ok()) return false;
  id_ = exchanged.result<nfs4::ExchangeIdResponse>().client_id;

  nfs4::CreateSessionArguments create;
  create.client_id = id_;
  create.sequence_id = exchanged.result<nfs4::ExchangeIdResponse>().sequence_id;
  create.fore_channel = channel((1 << 20) + 16384, 4);
  create.back_channel = channel(4096, 2);
  // The incarnation before this one may take a while to be taken apart.
  for (int attempt = 0; attempt < kLaterMax; ++attempt) {
    const Reply created = send({create});
    if (created.status() == nfs4::Status::kDelay) continue;
    if (!created.ok()) return false;
    session_ = created.result<nfs4::CreateSessionResponse>().session_id;
    break;
  }
  sequence_ = 0;
  return call({nfs4::ReclaimCompleteArguments{}}).ok();
}

Reply CompoundClient::call_once(const Operations& operations) {
  Operations all;
  all.push_back(nfs4::SequenceArguments{
      .session_id = session_, .sequence_id = ++sequence_, .slot_id = 0, .highest_slot_id = 0});
  all.insert(all.end(), operations.begin(), operations.end());
  Reply reply = send(all);
  if (!reply.results.operations.empty()) reply.results.operations.erase(reply.results.operations.begin());
  return reply;
}

Reply CompoundClient::call(const Operations& operations) {
  Reply reply = call_once(operations);
  for (int attempt = 0; attempt < kLaterMax && says_later(reply.status()); ++attempt) {
    system_.clock.advance(kPause);
    int turns = 3;
    static_cast<void>(system_.until([&] { return turns-- == 0; }));
    reply = call_once(operations);
  }
  return reply;
}

}  // namespace pnfsrdma::crash
