// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/control_server.h"

#include <utility>

#include "server/brickd/call_journal.h"
#include "shared/base/log.h"
#include "shared/brick/call_limits.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::brick {
namespace {

constexpr Milliseconds kRefusalLoggedEvery{5000};

// Answers are encoded where they are made. The shared_ptr makes the move-only responder fit a std::function.
template <typename Answer>
Control::Done<Answer> encode_to(rpc::Responder responder) {
  auto shared = std::make_shared<rpc::Responder>(std::move(responder));
  return [shared](Result<Answer> answer) {
    if (!answer) return shared->refuse(rpc::AcceptStatus::kSystemError);
    shared->reply(xdr::encode_to_bytes(*answer));
  };
}

}  // namespace

ControlServer::ControlServer(EventLoop& loop, ControlService& service)
    : loop_(loop), service_(service), memory_(loop.clock(), {}) {
  memory_.start(loop);
}

ControlServer::~ControlServer() {
  listeners_.clear();
  for (auto& [pointer, peer] : std::exchange(peers_, {})) {
    peer.connection->on_call(nullptr);
    peer.connection->on_close(nullptr);
    peer.connection->close();
  }
}

Result<std::string> ControlServer::listen(const std::string& text, std::shared_ptr<rpc::TlsEndpoint> tls) {
  TRY_ASSIGN(const rpc::SocketAddress address, rpc::SocketAddress::parse(text, kDefaultControlPort));
  TRY_ASSIGN(auto listener, rpc::Listener::listen(loop_, address, service_for(std::move(tls)), 0600));
  listeners_.push_back(std::move(listener));
  return listeners_.back()->address().to_string();
}

rpc::Service ControlServer::service_for(std::shared_ptr<rpc::TlsEndpoint> tls) {
  rpc::Service service;
  service.memory = &memory_;
  service.options.record_bytes_max = kCallBytesMax;
  service.options.unsent_bytes_max = kAnswerBytesMax;
  service.options.tls_required = tls != nullptr;
  service.options.tls = std::move(tls);
  service.on_accept = [this,
                       protects = service.options.tls_required](const rpc::ConnectionPointer& connection) {
    peers_[connection.get()] = {connection};
    if (!protects) let_in(connection);
  };
  service.on_secured = [this](const rpc::ConnectionPointer& connection) { let_in(connection); };
  service.on_close = [this](const rpc::ConnectionPointer& connection, const Error& reason) {
    closed(connection, reason);
  };
  service.on_call = [this](const rpc::ConnectionPointer& connection, rpc::IncomingCall call,
                           rpc::Responder responder) {
    handle(connection, std::move(call), std::move(responder));
  };
  return service;
}

void ControlServer::let_in(const rpc::ConnectionPointer& connection) {
  peers_[connection.get()].let_in = true;
  const rpc::TlsPeer* const who = connection->tls_peer();
  log_info("brick", "control-connected peer={} tls={}", connection->peer(),
           who == nullptr ? "none" : who->name());
}

// Anybody can come to the door and be refused: the log has it now and then.
void ControlServer::closed(const rpc::ConnectionPointer& connection, const Error& reason) {
  const auto peer = peers_.extract(connection.get());
  if (peer.empty()) return;
  if (peer.mapped().let_in)
    return log_info("brick", "control-closed peer={} reason=\"{}\"", connection->peer(), reason.to_string());
  ++refused_;
  const SteadyTime now = loop_.now();
  if (refused_ > 1 && now - refusal_logged_ < kRefusalLoggedEvery) return;
  refusal_logged_ = now;
  log_warning("brick", "control-refused peer={} reason=\"{}\" refused={}", connection->peer(),
              reason.to_string(), refused_);
}

void ControlServer::reassess_tls() {
  std::vector<rpc::ConnectionPointer> all;
  for (const auto& [pointer, peer] : peers_) all.push_back(peer.connection);
  for (const auto& connection : all) connection->reassess_tls();
}

void ControlServer::disconnect(uint64_t epoch) {
  std::vector<rpc::ConnectionPointer> ending;
  for (const auto& [pointer, peer] : peers_) {
    if (peer.epoch == epoch) ending.push_back(peer.connection);
  }
  for (const auto& connection : ending) connection->close();
}

void ControlServer::handle(const rpc::ConnectionPointer& connection, rpc::IncomingCall call,
                           rpc::Responder responder) {
  // RFC 9289, 4.1: without TLS here, a probe for it is refused.
  if (call.header.credential.flavor == rpc::AuthFlavor::kTls)
    return responder.refuse_auth(rpc::AuthStatus::kRejectedCredential);
  if (call.header.program != kProgram) return responder.refuse(rpc::AcceptStatus::kProgramUnavailable);
  if (call.header.version != kVersion) return responder.refuse_version({kVersion, kVersion});
  if (const auto peer = peers_.find(connection.get()); peer != peers_.end())
    service_.renew_lease(peer->second.epoch);
  const EventLoop::Step step(loop_, name_of(static_cast<Procedure>(call.header.procedure)));
  dispatch(connection.get(), call, std::move(responder));
}

void ControlServer::note_epoch(const rpc::Connection* connection, uint64_t epoch) {
  if (const auto peer = peers_.find(connection); peer != peers_.end()) peer->second.epoch = epoch;
}

template <typename Arguments, typename Answer>
void ControlServer::serve(const rpc::Connection* connection, Procedure procedure, ByteSpan encoded,
                          rpc::Responder responder,
                          void (ControlService::*method)(const Arguments&, Control::Done<Answer>)) {
  const auto arguments = xdr::decode_from<Arguments>(encoded);
  if (!arguments) return responder.refuse(rpc::AcceptStatus::kGarbageArguments);
  Control::Done<Answer> done = encode_to<Answer>(std::move(responder));
  if constexpr (requires { arguments->epoch; }) {
    note_epoch(connection, arguments->epoch);
    done = journalled<Answer>(connection->peer(), procedure, arguments->epoch, std::move(done));
  }
  (service_.*method)(*arguments, std::move(done));
}

template <typename Answer>
void ControlServer::serve(ByteSpan encoded, rpc::Responder responder,
                          void (ControlService::*method)(Control::Done<Answer>)) {
  if (!encoded.empty()) return responder.refuse(rpc::AcceptStatus::kGarbageArguments);
  (service_.*method)(encode_to<Answer>(std::move(responder)));
}

void ControlServer::dispatch(const rpc::Connection* connection, const rpc::IncomingCall& call,
                             rpc::Responder responder) {
  const ByteSpan encoded = call.arguments;
  const auto procedure = static_cast<Procedure>(call.header.procedure);
  const auto with = [&](auto method) { serve(connection, procedure, encoded, std::move(responder), method); };
  switch (procedure) {
    case Procedure::kNull:
      return responder.reply(Bytes{});
    case Procedure::kClaim:
      return with(&ControlService::claim);
    case Procedure::kAlloc:
      return with(&ControlService::alloc);
    case Procedure::kFree:
      return with(&ControlService::free);
    case Procedure::kMap:
      return with(&ControlService::map);
    case Procedure::kUnmap:
      return with(&ControlService::unmap);
    case Procedure::kList:
      return with(&ControlService::list);
    case Procedure::kSurvey:
      return with(&ControlService::survey);
    case Procedure::kErase:
      return with(&ControlService::erase);
    case Procedure::kOpenSession:
      return with(&ControlService::open_session);
    case Procedure::kCloseSession:
      return with(&ControlService::close_session);
    case Procedure::kListSessions:
      return serve(encoded, std::move(responder), &ControlService::list_sessions);
    case Procedure::kExpose:
      return with(&ControlService::expose);
    case Procedure::kWithdraw:
      return with(&ControlService::withdraw);
    case Procedure::kListGrants:
      return with(&ControlService::list_grants);
    case Procedure::kListAllGrants:
      return with(&ControlService::list_all_grants);
    case Procedure::kPersist:
      return with(&ControlService::persist);
    case Procedure::kZero:
      return with(&ControlService::zero);
    case Procedure::kCopy:
      return with(&ControlService::copy);
    case Procedure::kStatistics:
      return serve(encoded, std::move(responder), &ControlService::statistics);
    case Procedure::kLoopTurns:
      return serve(encoded, std::move(responder), &ControlService::loop_turns);
    case Procedure::kSessionTraffic:
      return serve(encoded, std::move(responder), &ControlService::session_traffic);
    case Procedure::kIdentify:
      return serve(encoded, std::move(responder), &ControlService::identify);
  }
  responder.refuse(rpc::AcceptStatus::kProcedureUnavailable);
}

}  // namespace pnfsrdma::brick
