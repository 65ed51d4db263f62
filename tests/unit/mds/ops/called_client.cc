// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/called_client.h"

#include <sys/socket.h>

#include "shared/base/check.h"
#include "shared/nfs4/compound.h"

namespace pnfsrdma::mds {

CalledClient::CalledClient(TestServer& server_in, const std::string& name) : TestClient(server_in, name) {}

CalledClient::~CalledClient() {
  if (client_end_) client_end_->close();
  if (server_end_) server_end_->close();
}

void CalledClient::join(bool reclaim_complete) {
  const auto exchanged = exchange_id();
  CHECK(exchanged.ok());
  id = exchanged.result.client_id;
  CHECK(create_session(exchanged.result.sequence_id).ok());
  if (reclaim_complete) CHECK(status({nfs4::ReclaimCompleteArguments{}}) == nfs4::Status::kOk);
  bind_callbacks();
}

void CalledClient::bind_callbacks() {
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) == 0);
  EventLoop& loop = server.host.loop;
  server_end_ = rpc::Connection::start(loop, FileDescriptor(sockets[0]), {}, nullptr);
  client_end_ =
      rpc::Connection::start(loop, FileDescriptor(sockets[1]), {},
                             [this](const rpc::ConnectionPointer&, rpc::IncomingCall call,
                                    rpc::Responder responder) { serve(call, std::move(responder)); });
  const auto bound = server.sessions.find(session);
  CHECK(bound != nullptr);
  bound->back().wanted = true;
  bound->bind_back(server_end_);
}

void CalledClient::serve(const rpc::IncomingCall& call, rpc::Responder responder) {
  auto reader = nfs4::CallbackCompoundReader::open(call.arguments);
  CHECK(reader.has_value());
  const auto first = reader->next();
  const auto& sequence = std::get<nfs4::CallbackSequenceArguments>(*first.arguments);
  Bytes reply;
  nfs4::CallbackResultWriter writer(reply, {});
  writer.add(nfs4::CallbackSequenceResponse(nfs4::CallbackSequenceResult{
      .session_id = sequence.session_id, .sequence_id = sequence.sequence_id, .slot_id = sequence.slot_id}));
  const auto second = reader->next();
  if (const auto* recall = std::get_if<nfs4::CallbackRecallArguments>(&*second.arguments)) {
    recalls.push_back(*recall);
    writer.add(nfs4::CallbackRecallResponse(recall_status));
  } else if (const auto* question = std::get_if<nfs4::CallbackGetAttributesArguments>(&*second.arguments)) {
    questions.push_back(*question);
    writer.add(attributes);
  } else if (const auto* offload = std::get_if<nfs4::CallbackOffloadArguments>(&*second.arguments)) {
    offloads.push_back(*offload);
    writer.add(nfs4::CallbackOffloadResponse(offload_status));
  } else {
    any_recalls.push_back(std::get<nfs4::CallbackRecallAnyArguments>(*second.arguments));
    writer.add(nfs4::CallbackRecallAnyResponse(nfs4::Status::kOk));
  }
  if (is_silent) {
    unanswered_.emplace_back(std::move(responder), std::move(reply));
    return;
  }
  responder.reply(std::move(reply));
}

void CalledClient::answer_at_last() {
  is_silent = false;
  for (auto& [responder, reply] : std::exchange(unanswered_, {})) responder.reply(std::move(reply));
}

}  // namespace pnfsrdma::mds
