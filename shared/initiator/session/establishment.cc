// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/establishment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/random.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/record.h"
#include "shared/initiator/session/repetition.h"
#include "shared/initiator/session/slots.h"
#include "shared/nfs4/status_errno.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::initiator {
namespace {

using nfs4::Status;
using Socket = std::shared_ptr<SessionSocket>;

// A server that is there answers these at once; a connection that brings no answer is better made anew, and one to
// another host the sooner.
constexpr Milliseconds kPatience = std::chrono::seconds(10);
constexpr Milliseconds kPatienceWithOthers = std::chrono::seconds(3);
constexpr int kDelaysMax = 50;
constexpr size_t kMountPointBytesMax = 255;

constexpr uint32_t kOperationsWanted = 40;
constexpr uint32_t kCachedReplyWanted = 8192;
constexpr uint32_t kCallbackSize = 4096;
constexpr uint32_t kCallbackSlots = 4;

// xids of calls outside the session must not look like a slot's.
constexpr uint32_t kOutsideXid = kSlotsMax - 1;

Error to_error(std::string_view what, Status status) {
  return Error(nfs4::to_errno(status), fmt::format("{}: the MDS answers {}", what, nfs4::to_string(status)));
}

}  // namespace

Establishment::Establishment(const SessionOptions& options, const std::atomic<bool>& stop,
                             CallHandler on_call)
    : options_(options),
      patience_(options.other_hosts.empty() ? kPatience : kPatienceWithOthers),
      stop_(stop),
      on_call_(std::move(on_call)) {
  SystemRandom().fill(verifier_);
  established_.minor_version = options.minor_version;
}

Result<Recovered> Establishment::recover(const Socket& socket, Damage damage, bool elsewhere,
                                         const std::function<Result<>()>& session_lost) {
  TRY(try_to_recover(socket, damage, elsewhere, session_lost));
  if (asked_) server_ = std::exchange(asked_, std::nullopt);
  return Recovered{.established = established_,
                   .new_session = std::exchange(new_session_, false),
                   .new_client = std::exchange(new_client_, false)};
}

Result<> Establishment::try_to_recover(const Socket& socket, Damage damage, bool elsewhere,
                                       const std::function<Result<>()>& session_lost) {
  // A stranger must not get what others are still waiting for.
  if (elsewhere && damage < Damage::kClient) {
    TRY(exchange_id(socket));
    if (new_client_) return begin_session(socket);
  }
  if (damage == Damage::kConnection) {
    TRY_ASSIGN(const bool bound, bind(socket));
    if (bound) return {};
    damage = Damage::kSession;
  }
  if (damage == Damage::kSession) {
    TRY(session_lost());
    // The clientid may have survived a restart of the server, and with it all stateids.
    nfs4::DestroySessionArguments before;
    before.session_id = established_.session_id;
    TRY_ASSIGN(const Status status, create_session(socket));
    if (status == Status::kOk) {
      // Most often it is gone anyway; one that is only broken must not stay.
      TRY(exchange(socket, before, patience_));
      return {};
    }
  }
  TRY(exchange_id(socket));
  return begin_session(socket);
}

Result<> Establishment::begin_session(const Socket& socket) {
  TRY_ASSIGN(const Status status, create_session(socket));
  if (status != Status::kOk) return std::unexpected(to_error("CREATE_SESSION", status));
  return {};
}

// False: the session is gone.
Result<bool> Establishment::bind(const Socket& socket) {
  nfs4::BindConnectionToSessionArguments arguments;
  arguments.session_id = established_.session_id;
  arguments.direction = nfs4::DirectionFromClient::kForeOrBoth;
  TRY_ASSIGN(const nfs4::CompoundResults results, exchange(socket, arguments, patience_));
  return results.status == Status::kOk;
}

Result<> Establishment::exchange_id(const Socket& socket) {
  nfs4::ExchangeIdArguments arguments;
  arguments.owner.verifier = verifier_;
  arguments.owner.owner = nfs4::OwnerId(as_bytes(options_.owner));
  arguments.flags = nfs4::kExchangeUsePnfsMds;
  nfs4::Implementation implementation;
  implementation.domain = "pnfsrdma";
  // The path comes last: it may have spaces.
  implementation.name = "pnfsrdma-fuse";
  if (!options_.mount_point.empty() && options_.mount_point.size() <= kMountPointBytesMax)
    implementation.name += " mount=" + options_.mount_point;
  arguments.implementation = implementation;

  const uint32_t minor_version = established_.minor_version;
  TRY_ASSIGN(nfs4::CompoundResults results, exchange(socket, arguments, patience_));
  if (results.status == Status::kMinorVersMismatch && established_.minor_version > 1) {
    log_info("session", "minor-version-fallback server={} from={}", options_.host, minor_version);
    established_.minor_version = 1;
    TRY_ASSIGN(results, exchange(socket, arguments, patience_));
  }
  if (results.status == Status::kMinorVersMismatch) {
    return fail(EPROTONOSUPPORT, "the server speaks neither NFSv4.2 nor NFSv4.1");
  }
  if (results.status == Status::kClidInuse) {
    return fail(EBUSY, "EXCHANGE_ID: another client uses the owner id " + options_.owner);
  }
  if (results.status != Status::kOk) return std::unexpected(to_error("EXCHANGE_ID", results.status));
  const auto* response = std::get_if<nfs4::ExchangeIdResponse>(&results.operations.at(0));
  if (response == nullptr) return fail(EPROTO, "EXCHANGE_ID: the MDS answered another operation");

  const nfs4::ExchangeIdResult& result = response->result;
  if (const Result<> same = check_server(result); !same) {
    established_.minor_version = minor_version;  // of the server that is meant
    return same;
  }
  const bool confirmed = (result.flags & nfs4::kExchangeConfirmed) != 0;
  // Else nothing of the state of before exists.
  const bool same = confirmed && result.client_id == established_.clientid;
  new_client_ |= !same;
  established_.clientid = result.client_id;
  // Of a confirmed client the sequence says where it stands; of a new one where it begins.
  create_sequence_ = result.sequence_id;
  if (result.implementation) established_.implementation = result.implementation->name;
  return {};
}

// Of several hosts: what one has granted means nothing to a server that is another one (RFC 8881, 2.10.4).
Result<> Establishment::check_server(const nfs4::ExchangeIdResult& result) {
  if (options_.other_hosts.empty()) return {};
  asked_.emplace(result.server_owner.major_id, result.server_scope);
  if (!server_ || *server_ == *asked_) return {};
  asked_.reset();
  return fail(EREMCHG, "EXCHANGE_ID: another server answers here than before");
}

nfs4::CreateSessionArguments Establishment::session_wish() const {
  nfs4::CreateSessionArguments arguments;
  arguments.client_id = established_.clientid;
  arguments.sequence_id = create_sequence_;
  arguments.flags = nfs4::kSessionBackChannel;
  auto& fore = arguments.fore_channel;
  fore.max_request_size = options_.message_size;
  fore.max_response_size = options_.message_size;
  fore.max_response_size_cached = kCachedReplyWanted;
  fore.max_operations = kOperationsWanted;
  fore.max_requests = std::clamp<uint32_t>(options_.slots, 2, kSlotsMax - 1);
  auto& back = arguments.back_channel;
  back.max_request_size = kCallbackSize;
  back.max_response_size = kCallbackSize;
  back.max_response_size_cached = kCallbackSize;
  back.max_operations = 2;
  back.max_requests = kCallbackSlots;
  arguments.callback_program = nfs4::kCallbackProgramDefault;
  arguments.callback_security.push_back(nfs4::CallbackSecurity::make<nfs4::kFlavorNone>());
  return arguments;
}

Result<Status> Establishment::create_session(const Socket& socket) {
  TRY_ASSIGN(const nfs4::CompoundResults results, exchange(socket, session_wish(), patience_));
  if (results.status != Status::kOk) return results.status;
  const auto* response = std::get_if<nfs4::CreateSessionResponse>(&results.operations.at(0));
  if (response == nullptr) return fail(EPROTO, "CREATE_SESSION: the MDS answered another operation");
  note_session(response->result);
  return Status::kOk;
}

void Establishment::note_session(const nfs4::CreateSessionResult& result) {
  // Only an answered CREATE_SESSION counts: sent again after a lost connection it must have the same number.
  ++create_sequence_;
  established_.session_id = result.session_id;
  new_session_ = true;
  const auto& fore = result.fore_channel;
  // The server may not give more than was asked for, but may say so.
  established_.slots =
      std::clamp<uint32_t>(fore.max_requests, 1, std::clamp<uint32_t>(options_.slots, 2, kSlotsMax - 1));
  established_.operations_max = std::max<uint32_t>(fore.max_operations, 2);
  established_.request_size_max = std::min(fore.max_request_size, options_.message_size);
  established_.response_size_max = std::min(fore.max_response_size, options_.message_size);
  established_.callback_slots = std::clamp<uint32_t>(result.back_channel.max_requests, 1, kCallbackSlots);
}

Result<nfs4::CompoundResults> Establishment::exchange(const Socket& socket, nfs4::ArgumentOperation operation,
                                                      Milliseconds patience) {
  BackOff back_off(options_.delay_first, std::chrono::seconds(1));
  // Another host is asked the sooner.
  const SteadyTime until = options_.other_hosts.empty() ? SteadyTime::max() : steady_now() + patience;
  Bytes record;
  for (int round = 0;; ++round) {
    const uint32_t xid = (next_xid_++ << kSlotBits) | kOutsideXid;
    CallRecord call(record, xid, Credential{}, established_.minor_version);
    call.compound().add(operation);
    call.finish();
    TRY(socket->send(record, patience));
    TRY_ASSIGN(const Bytes reply, await(socket, xid, patience));
    TRY_ASSIGN(const ByteSpan bytes, results_of(reply));
    auto results = xdr::decode_prefix<nfs4::CompoundResults>(bytes);
    if (!results) return fail(EPROTO, "the MDS sent results that cannot be decoded");
    if (results->status == Status::kOk && results->operations.size() != 1) {
      return fail(EPROTO, "the MDS sent a wrong number of results");
    }
    const bool enough = round >= kDelaysMax || steady_now() >= until;
    if (results->status != Status::kDelay || enough) return std::move(*results);
    sleep_for(back_off.next());
    if (stop_) return fail(ECANCELED, "the mount is ending");
  }
}

Result<Bytes> Establishment::await(const Socket& socket, uint32_t xid, Milliseconds patience) {
  const SteadyTime until = steady_now() + patience;
  std::vector<Bytes> records;
  while (!stop_) {
    TRY(socket->receive(true, records));
    std::optional<Bytes> found;
    for (Bytes& record : records) {
      const auto start = rpc::peek_message(record);
      if (!start) continue;
      if (start->type == rpc::MessageType::kCall) {
        on_call_(socket, std::move(record));
      } else if (start->xid == xid) {
        found = std::move(record);
      }
    }
    if (found) return std::move(*found);
    records.clear();
    if (steady_now() > until) return fail(ETIMEDOUT, "the MDS does not answer");
  }
  return fail(ECANCELED, "the mount is ending");
}

Result<Bytes> Establishment::repeat(const Socket& socket, ByteSpan request, uint32_t xid) {
  TRY(socket->send(request, patience_));
  return await(socket, xid, patience_);
}

void Establishment::destroy(const Socket& socket) {
  constexpr Milliseconds kFarewell = std::chrono::seconds(1);
  nfs4::DestroySessionArguments session;
  session.session_id = established_.session_id;
  if (!exchange(socket, session, kFarewell)) return;
  nfs4::DestroyClientIdArguments client;
  client.client_id = established_.clientid;
  (void)exchange(socket, client, kFarewell);
}

}  // namespace pnfsrdma::initiator
