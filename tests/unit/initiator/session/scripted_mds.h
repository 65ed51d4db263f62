// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/owned.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/message.h"
#include "shared/rpc/record.h"

namespace pnfsrdma::initiator {

// An NFSv4.1+ server on a TCP port of this host that does what the test says: real sessions with a reply
// cache, faults on demand. Operations behind SEQUENCE are answered by on_operation (kOk results by default).
// Thread-safe.
class ScriptedMds {
 public:
  using Operation = nfs4::ArgumentOperation;
  using Answer = nfs4::ResultOperation;

  // What to do to the next COMPOUNDs with a SEQUENCE, one each.
  enum class Fault {
    kNone,
    kDropBefore,     // close the connection, nothing done
    kDropAfter,      // do it, cache the reply, close the connection
    kDieAfter,       // do it, close the connection, forget the session but not what was done in it
    kSequenceDelay,  // SEQUENCE answers DELAY
    kSilence,        // nothing done, no answer at all
    kMute,           // do it, cache the reply, no answer
  };

  // `number`: of the port, 0: any.
  explicit ScriptedMds(in_addr_t host = INADDR_LOOPBACK, uint16_t number = 0) {
    listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(number), .sin_addr = {htonl(host)}};
    const int on = 1;  // of one that was there before connections may remain
    CHECK(::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CHECK(::listen(listener_.get(), 16) == 0);
    socklen_t size = sizeof address;
    CHECK(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedMds() {
    {
      const std::lock_guard lock(mutex);
      stopping_ = true;
      for (const auto& peer : peers_) ::shutdown(peer->fd.get(), SHUT_RDWR);
    }
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (auto& thread : threads_) thread.join();
  }

  uint16_t port = 0;
  std::mutex mutex;
  // Guarded by mutex: what the test sets and looks at.
  std::deque<Fault> faults;
  // The next operation outside of a session that comes to this is done, and the connection closed instead of an
  // answer.
  std::optional<std::pair<nfs4::Operation, nfs4::Status>> drop_after;
  uint32_t minor_version_max = 2;
  uint32_t status_flags = 0;
  uint32_t slots = 8;
  std::string owner = "server";  // so_major_id
  bool silent = false;           // it takes what comes and says nothing
  uint32_t resets = 0;           // so many connections are ended at once
  std::vector<Bytes>
      requests;  // every record with a SEQUENCE as it came, without those that ask for the lease
  std::vector<nfs4::SequenceArguments> sequences;
  uint32_t executed = 0;  // COMPOUNDs run (not replays), without those about the lease
  uint32_t connections = 0, sessions_made = 0, clients_made = 0, binds = 0, reclaim_completes = 0,
           renewals = 0;
  bool session_destroyed = false, client_destroyed = false;
  std::function<Answer(const Operation&)> on_operation;
  std::vector<rpc::CallHeader> headers;

  // As after a restart that kept the client, or that kept nothing.
  void lose_session() {
    const std::lock_guard lock(mutex);
    session_ = {};
  }
  void lose_client() {
    const std::lock_guard lock(mutex);
    session_ = {};
    clientid_ = 0;
  }
  void drop_connections() {
    const std::lock_guard lock(mutex);
    for (const auto& peer : peers_) ::shutdown(peer->fd.get(), SHUT_RDWR);
  }

  // Sends CB_SEQUENCE and `operation` on the newest connection; the answer, or nothing after two seconds.
  std::optional<nfs4::CallbackCompoundResults> call_back(nfs4::CallbackArgumentOperation operation,
                                                         std::optional<uint32_t> sequence = std::nullopt) {
    nfs4::CallbackCompoundArguments arguments;
    arguments.header.minor_version = 2;
    nfs4::CallbackSequenceArguments first;
    {
      const std::lock_guard lock(mutex);
      first.session_id = session_;
      first.sequence_id = sequence.value_or(++callback_sequence_);
    }
    arguments.operations.emplace_back(first);
    arguments.operations.push_back(std::move(operation));
    const auto results = call_back(nfs4::kProcedureCompound, xdr::encode_to_bytes(arguments));
    if (!results) return std::nullopt;
    auto decoded = xdr::decode_from<nfs4::CallbackCompoundResults>(*results);
    return decoded ? std::optional(std::move(*decoded)) : std::nullopt;
  }
  std::optional<Bytes> call_back(uint32_t procedure, const Bytes& arguments) {
    rpc::CallHeader header;
    std::unique_lock lock(mutex);
    header.xid = ++callback_xid_;
    header.program = nfs4::kCallbackProgramDefault;
    header.version = nfs4::kCallbackVersion;
    header.procedure = procedure;
    Bytes body;
    xdr::Encoder encoder(body);
    xdr::encode(encoder, header);
    body.insert(body.end(), arguments.begin(), arguments.end());
    if (peers_.empty()) return std::nullopt;
    send(*peers_.back(), body);
    const bool answered = changed_.wait_for(lock, std::chrono::seconds(2),
                                            [&] { return callback_replies_.contains(header.xid); });
    if (!answered) return std::nullopt;
    const Bytes record = callback_replies_.at(header.xid);
    xdr::Decoder decoder(record);
    rpc::ReplyHeader reply;
    if (!xdr::decode(decoder, reply) || !reply.successful()) return std::nullopt;
    const ByteSpan rest = decoder.rest();
    return Bytes(rest.begin(), rest.end());
  }

 private:
  struct Peer {
    FileDescriptor fd;
  };
  struct CachedReply {
    uint32_t sequence = 0;
    Bytes results;
  };

  void accept_all() {
    for (;;) {
      FileDescriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::lock_guard lock(mutex);
      if (stopping_ || !fd) return;
      ++connections;
      if (resets > 0) {
        --resets;
        continue;
      }
      auto peer = std::make_shared<Peer>(Peer{std::move(fd)});
      peers_.push_back(peer);
      threads_.emplace_back([this, peer] { serve(peer); });
    }
  }

  void serve(const std::shared_ptr<Peer>& peer) {
    rpc::RecordReader reader;
    for (;;) {
      const MutableByteSpan space = reader.space();
      const ssize_t count = ::recv(peer->fd.get(), space.data(), space.size(), 0);
      if (count <= 0 || !reader.filled(static_cast<size_t>(count))) return;
      while (auto record = reader.next()) {
        if (!take(*peer, *record)) {
          ::shutdown(peer->fd.get(), SHUT_RDWR);
          return;
        }
      }
    }
  }

  static void send(Peer& peer, const Bytes& body) {
    std::byte mark[rpc::kMarkSize];
    rpc::write_record_mark(mark, body.size());
    Bytes record(std::begin(mark), std::end(mark));
    record.insert(record.end(), body.begin(), body.end());
    (void)!::send(peer.fd.get(), record.data(), record.size(), MSG_NOSIGNAL);
  }

  // False: the connection is to be closed.
  bool take(Peer& peer, const Bytes& record) {
    const std::lock_guard lock(mutex);
    const auto start = rpc::peek_message(record);
    CHECK(start.has_value());
    if (silent) return true;
    if (start->type == rpc::MessageType::kReply) {
      callback_replies_[start->xid] = record;
      changed_.notify_all();
      return true;
    }
    xdr::Decoder decoder(record);
    const auto header = rpc::decode_call(decoder);
    CHECK(header.has_value());
    headers.push_back(*header);
    const auto arguments = xdr::decode_from<nfs4::CompoundArguments>(decoder.rest());
    CHECK(arguments.has_value());
    if (arguments->header.minor_version > minor_version_max) {
      nfs4::CompoundResults refused;
      refused.status = nfs4::Status::kMinorVersMismatch;
      reply(peer, header->xid, xdr::encode_to_bytes(refused));
      return true;
    }
    CHECK(!arguments->operations.empty());
    if (!std::holds_alternative<nfs4::SequenceArguments>(arguments->operations.front())) {
      const Answer answered = outside(arguments->operations.front());
      if (drop_after == std::pair(nfs4::operation_of(answered), nfs4::status_of(answered))) {
        drop_after.reset();
        return false;
      }
      reply(peer, header->xid, results_of({answered}));
      return true;
    }
    return in_session(peer, header->xid, record, arguments->operations);
  }

  bool in_session(Peer& peer, uint32_t xid, const Bytes& record, const std::vector<Operation>& operations) {
    const auto& sequence = std::get<nfs4::SequenceArguments>(operations.front());
    const bool asks_lease = asks_for_the_lease(operations);
    if (!asks_lease) {
      requests.push_back(record);
      sequences.push_back(sequence);
    }
    const bool is_alone = operations.size() == 1;
    renewals += is_alone;
    const bool renewal = is_alone || asks_lease;  // what a session does by itself
    Fault fault = Fault::kNone;
    if (!faults.empty() && !renewal) {
      fault = faults.front();
      faults.pop_front();
    }
    if (fault == Fault::kDropBefore) return false;
    if (fault == Fault::kSilence) return true;
    nfs4::SequenceResponse response;
    const auto done = done_.find(record);
    if (done != done_.end()) {
      reply(peer, xid, done->second);
      return true;
    }
    if (session_ == nfs4::SessionId{} || sequence.session_id != session_)
      response.status = nfs4::Status::kBadSession;
    if (fault == Fault::kSequenceDelay) response.status = nfs4::Status::kDelay;
    if (!response.ok()) {
      reply(peer, xid, results_of({response}));
      return true;
    }
    CachedReply& cached = cache_[sequence.slot_id];
    if (sequence.sequence_id == cached.sequence) {
      reply(peer, xid, cached.results);
      return true;
    }
    if (sequence.sequence_id != cached.sequence + 1) {
      reply(peer, xid, results_of({nfs4::SequenceResponse(nfs4::Status::kSeqMisordered)}));
      return true;
    }
    response.result = {sequence.session_id, sequence.sequence_id, sequence.slot_id, slots - 1,
                       slots - 1,           status_flags};
    std::vector<Answer> answers = {response};
    for (size_t i = 1; i < operations.size(); ++i) {
      answers.push_back(answer(operations[i]));
      if (nfs4::status_of(answers.back()) != nfs4::Status::kOk) break;
    }
    executed += !renewal;
    cached = {sequence.sequence_id, results_of(answers)};
    if (fault == Fault::kDropAfter) return false;
    if (fault == Fault::kMute) return true;
    if (fault == Fault::kDieAfter) {
      done_[record] = cached.results;
      session_ = {};
      return false;
    }
    reply(peer, xid, cached.results);
    return true;
  }

  static bool asks_for_the_lease(const std::vector<Operation>& operations) {
    const auto* asked =
        operations.size() == 3 ? std::get_if<nfs4::GetAttributesArguments>(&operations[2]) : nullptr;
    return asked != nullptr && asked->requested == nfs4::Bitmap::of(nfs4::Attribute::kLeaseTime);
  }

  Answer answer(const Operation& operation) {
    if (std::holds_alternative<nfs4::ReclaimCompleteArguments>(operation)) ++reclaim_completes;
    if (on_operation) return on_operation(operation);
    return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
  }

  Answer outside(const Operation& operation) {
    if (std::holds_alternative<nfs4::ExchangeIdArguments>(operation)) {
      nfs4::ExchangeIdResult result;
      const bool known = clientid_ != 0;
      if (!known) {
        clientid_ = ++next_clientid_;
        ++clients_made;
      }
      result.client_id = clientid_;
      result.sequence_id = create_sequence_ + 1;
      result.server_owner.major_id = nfs4::OwnerId(as_bytes(owner));
      result.flags = nfs4::kExchangeUsePnfsMds | (known ? nfs4::kExchangeConfirmed : 0);
      return nfs4::ExchangeIdResponse(result);
    }
    if (const auto* create = std::get_if<nfs4::CreateSessionArguments>(&operation)) {
      if (create->client_id != clientid_ || clientid_ == 0) {
        return nfs4::CreateSessionResponse(nfs4::Status::kStaleClientId);
      }
      if (create->sequence_id != create_sequence_ + 1) {
        return nfs4::CreateSessionResponse(nfs4::Status::kSeqMisordered);
      }
      ++create_sequence_;
      ++sessions_made;
      session_.fill(static_cast<std::byte>(sessions_made));
      cache_.clear();
      callback_sequence_ = 0;
      nfs4::CreateSessionResult result;
      result.session_id = session_;
      result.sequence_id = create->sequence_id;
      result.fore_channel = create->fore_channel;
      result.fore_channel.max_requests = slots;
      result.back_channel = create->back_channel;
      return nfs4::CreateSessionResponse(result);
    }
    if (const auto* bind = std::get_if<nfs4::BindConnectionToSessionArguments>(&operation)) {
      ++binds;
      if (bind->session_id != session_ || session_ == nfs4::SessionId{}) {
        return nfs4::BindConnectionToSessionResponse(nfs4::Status::kBadSession);
      }
      return nfs4::BindConnectionToSessionResponse(
          nfs4::BindConnectionToSessionResult{session_, nfs4::DirectionFromServer::kBoth, false});
    }
    if (const auto* destroy = std::get_if<nfs4::DestroySessionArguments>(&operation)) {
      if (destroy->session_id != session_) return nfs4::DestroySessionResponse(nfs4::Status::kBadSession);
      session_destroyed = true;
    }
    if (std::holds_alternative<nfs4::DestroyClientIdArguments>(operation)) client_destroyed = true;
    return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
  }

  static Bytes results_of(std::vector<Answer> answers) {
    nfs4::CompoundResults results;
    results.status = nfs4::status_of(answers.back());
    results.operations = std::move(answers);
    return xdr::encode_to_bytes(results);
  }

  static void reply(Peer& peer, uint32_t xid, const Bytes& results) {
    Bytes body;
    xdr::Encoder encoder(body);
    xdr::encode(encoder, rpc::ReplyHeader::success(xid));
    body.insert(body.end(), results.begin(), results.end());
    send(peer, body);
  }

  std::map<Bytes, Bytes> done_;  // results by request, of sessions that are gone
  FileDescriptor listener_;
  std::thread acceptor_;
  bool stopping_ = false;
  std::vector<std::shared_ptr<Peer>> peers_;
  std::vector<std::thread> threads_;
  nfs4::SessionId session_{};
  uint64_t clientid_ = 0, next_clientid_ = 100;
  uint32_t create_sequence_ = 0;
  std::map<uint32_t, CachedReply> cache_;
  uint32_t callback_sequence_ = 0, callback_xid_ = 0;
  std::map<uint32_t, Bytes> callback_replies_;
  std::condition_variable changed_;
};

}  // namespace pnfsrdma::initiator
