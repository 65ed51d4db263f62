// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/blocks_server.h"

#include <utility>

#include "shared/base/log.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::brick {
namespace {

constexpr Milliseconds kPutOff{1000};
constexpr size_t kHostsPutOffMax = 1024;
constexpr Milliseconds kRefusalLogged{5000};
// The largest calls carry bytes, the largest answers list runs, mappings or grants.
constexpr size_t kBlocksCallMax = blocks::kIoBytesMax + 1024;
constexpr size_t kBlocksAnswersMax = size_t{4} << 20;

template <typename Answer>
BlocksService::Done<Answer> encode_blocks_answer(rpc::Responder responder) {
  auto shared = std::make_shared<rpc::Responder>(std::move(responder));
  return [shared](const Answer& answer) { shared->reply(xdr::encode_to_bytes(answer)); };
}

// "192.0.2.7" of "192.0.2.7:1023". Anybody of this host may come by a Unix socket: there each user is one.
std::string host_of(const rpc::Connection& connection) {
  const std::string& peer = connection.peer();
  if (const auto credentials = connection.peer_credentials())
    return peer + " uid " + std::to_string(credentials->uid);
  const size_t colon = peer.rfind(':');
  return colon == std::string::npos ? peer : peer.substr(0, colon);
}

}  // namespace

BlocksServer::BlocksServer(EventLoop& loop, BlocksService& service, std::shared_ptr<rpc::TlsEndpoint> key)
    : loop_(loop), service_(service), key_(std::move(key)), memory_(loop.clock(), {}) {
  memory_.start(loop);
}

BlocksServer::~BlocksServer() {
  listeners_.clear();
  for (auto& [pointer, peer] : std::exchange(peers_, {})) {
    peer.connection->on_call(nullptr);
    peer.connection->on_close(nullptr);
    peer.connection->close();
  }
}

Result<std::string> BlocksServer::listen(const std::string& text) {
  TRY_ASSIGN(const rpc::SocketAddress address, rpc::SocketAddress::parse(text, kDefaultControlPort));
  rpc::Service service;
  service.memory = &memory_;
  service.options.record_bytes_max = kBlocksCallMax;
  service.options.unsent_bytes_max = kBlocksAnswersMax;
  service.options.tls = key_;
  service.options.tls_required = true;
  service.on_accept = [this](const rpc::ConnectionPointer& connection) { accepted(connection); };
  service.on_secured = [this](const rpc::ConnectionPointer& connection) {
    peers_[connection.get()].let_in = true;
    log_info("brick", "owner-connected peer={}", connection->peer());
  };
  service.on_close = [this](const rpc::ConnectionPointer& connection, const Error& reason) {
    closed(connection, reason);
  };
  service.on_call = [this](const rpc::ConnectionPointer& connection, const rpc::IncomingCall& call,
                           rpc::Responder responder) { handle(connection, call, std::move(responder)); };
  // The key lets in, not the rights on the socket's file.
  TRY_ASSIGN(auto listener, rpc::Listener::listen(loop_, address, std::move(service), 0666));
  listeners_.push_back(std::move(listener));
  return listeners_.back()->address().to_string();
}

void BlocksServer::accepted(const rpc::ConnectionPointer& connection) {
  const std::string host = host_of(*connection);
  peers_[connection.get()] = {.connection = connection, .host = host};
  if (is_put_off(host)) connection->close();
}

bool BlocksServer::is_put_off(const std::string& host) {
  const auto found = failed_.find(host);
  if (found == failed_.end()) return false;
  if (loop_.now() < found->second) return true;
  failed_.erase(found);
  return false;
}

void BlocksServer::closed(const rpc::ConnectionPointer& connection, const Error& reason) {
  const auto peer = peers_.extract(connection.get());
  if (peer.empty()) return;
  if (!peer.mapped().let_in) return refused(peer.mapped(), reason);
  log_info("brick", "owner-disconnected peer={} reason=\"{}\"", connection->peer(), reason.to_string());
}

// Anybody can come to the door and be refused: the log has it now and then.
void BlocksServer::refused(const Peer& peer, const Error& reason) {
  const SteadyTime now = loop_.now();
  const bool wrong_key = reason.number() == EACCES || reason.number() == EPROTO;
  if (wrong_key) {
    if (failed_.size() >= kHostsPutOffMax)
      std::erase_if(failed_, [&](const auto& one) { return one.second <= now; });
    if (failed_.size() < kHostsPutOffMax) failed_[peer.host] = now + kPutOff;
  }
  // Who looks whether somebody is there hides nobody with a wrong key.
  Refusals& refusals = wrong_key ? wrong_keys_ : others_;
  if (++refusals.count > 1 && now - refusals.logged < kRefusalLogged) return;
  refusals.logged = now;
  log_warning("brick", "owner-refused peer={} reason=\"{}\" refused={}", peer.connection->peer(),
              reason.to_string(), refusals.count);
}

void BlocksServer::handle(const rpc::ConnectionPointer& connection, const rpc::IncomingCall& call,
                          rpc::Responder responder) {
  using blocks::Procedure;
  if (call.header.program != blocks::kProgram)
    return responder.refuse(rpc::AcceptStatus::kProgramUnavailable);
  if (call.header.version != blocks::kVersion)
    return responder.refuse_version({blocks::kVersion, blocks::kVersion});
  const auto found = peers_.find(connection.get());
  if (found == peers_.end() || !found->second.let_in) return responder.refuse_auth(rpc::AuthStatus::kTooWeak);
  Peer& peer = found->second;
  const auto with = [&](auto method) { serve(peer, call.arguments, std::move(responder), method); };
  switch (static_cast<Procedure>(call.header.procedure)) {
    case Procedure::kNull:
      service_.hear(peer.attachment);
      return responder.reply(Bytes{});
    case Procedure::kAttach:
      return attach(connection, call.arguments, std::move(responder));
    case Procedure::kDetach:
      return with(&BlocksService::detach);
    case Procedure::kAlloc:
      return with(&BlocksService::alloc);
    case Procedure::kFree:
      return with(&BlocksService::free);
    case Procedure::kMap:
      return with(&BlocksService::map);
    case Procedure::kUnmap:
      return with(&BlocksService::unmap);
    case Procedure::kRelease:
      return with(&BlocksService::release);
    case Procedure::kWithdraw:
      return with(&BlocksService::withdraw);
    case Procedure::kList:
      return with(&BlocksService::list);
    case Procedure::kListMappings:
      return with(&BlocksService::list_mappings);
    case Procedure::kRead:
      return with(&BlocksService::read);
    case Procedure::kWrite:
      return with(&BlocksService::write);
    case Procedure::kCommit:
      return with(&BlocksService::commit);
  }
  responder.refuse(rpc::AcceptStatus::kProcedureUnavailable);
}

// What an earlier connection of the attachment has still on its way would be late: it ends first.
void BlocksServer::attached(const rpc::ConnectionPointer& connection, uint64_t attachment) {
  std::vector<rpc::ConnectionPointer> earlier;
  for (auto& [pointer, peer] : peers_) {
    if (peer.attachment == attachment && pointer != connection.get()) earlier.push_back(peer.connection);
  }
  for (const auto& other : earlier) other->close();
  if (const auto peer = peers_.find(connection.get()); peer != peers_.end())
    peer->second.attachment = attachment;
}

void BlocksServer::attach(const rpc::ConnectionPointer& connection, ByteSpan encoded,
                          rpc::Responder responder) {
  const auto arguments = xdr::decode_from<blocks::AttachArguments>(encoded);
  if (!arguments) return responder.refuse(rpc::AcceptStatus::kGarbageArguments);
  if (arguments->attachment != 0) attached(connection, arguments->attachment);
  auto done = encode_blocks_answer<blocks::AttachResult>(std::move(responder));
  service_.attach(*arguments, [this, connection, done = std::move(done)](const blocks::AttachResult& result) {
    if (result.status == blocks::Status::kOk) attached(connection, result.attachment);
    done(result);
  });
}

template <typename Arguments, typename Answer>
void BlocksServer::serve(Peer& peer, ByteSpan encoded, rpc::Responder responder,
                         void (BlocksService::*method)(const Arguments&, BlocksService::Done<Answer>)) {
  const auto arguments = xdr::decode_from<Arguments>(encoded);
  if (!arguments) return responder.refuse(rpc::AcceptStatus::kGarbageArguments);
  peer.attachment = arguments->attachment;
  (service_.*method)(*arguments, encode_blocks_answer<Answer>(std::move(responder)));
}

}  // namespace pnfsrdma::brick
