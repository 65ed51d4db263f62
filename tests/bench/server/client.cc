// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/server/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/random.h"
#include "shared/nfs4/status_errno.h"
#include "shared/rpc/dial.h"

namespace pnfsrdma::bench {
namespace {

using nfs4::Status;

constexpr Milliseconds kConnectPatience{10'000};
// A server that answers nothing for so long is no longer measured.
constexpr Milliseconds kCallPatience{60'000};
constexpr Milliseconds kDelay{50};

constexpr uint32_t kMessageBytes = 128 * 1024;  // 64 KiB of data, and a page of READDIR
constexpr uint32_t kCachedBytes = 4096;
constexpr uint32_t kOperations = 64;
constexpr uint32_t kCallbackBytes = 4096;

Error refused(std::string_view what, Status status) {
  return Error(nfs4::to_errno(status),
               fmt::format("{}: the server answers {}", what, nfs4::to_string(status)));
}

}  // namespace

Client::~Client() {
  if (connection_) connection_->close();
}

void Client::establish(const rpc::SocketAddress& address, Ready done) {
  credential_ = rpc::to_opaque(options_.credential);
  rpc::dial(loop_, address, kConnectPatience, [this, done = std::move(done)](Result<FileDescriptor> socket) {
    if (!socket) return done(std::unexpected(std::move(socket).error()));
    connection_ = rpc::Connection::start(loop_, std::move(*socket), {}, nullptr);
    exchange_id(done);
  });
}

void Client::exchange_id(Ready done) {
  const auto build = [this](nfs4::CompoundWriter& compound) {
    nfs4::ExchangeIdArguments arguments;
    SystemRandom().fill(arguments.owner.verifier);
    arguments.owner.owner = nfs4::OwnerId(as_bytes(options_.owner));
    put(compound, arguments);
  };
  ask("EXCHANGE_ID", build, [this, done = std::move(done)](Result<nfs4::CompoundResultReader*> results) {
    if (!results) return done(std::unexpected(std::move(results).error()));
    const auto result = (*results)->result<nfs4::ExchangeIdResponse>();
    if (!result) return done(std::unexpected(refused("EXCHANGE_ID", result.error())));
    client_id_ = result->client_id;
    create_sequence_ = result->sequence_id;
    create_session(done);
  });
}

void Client::create_session(Ready done) {
  const auto build = [this](nfs4::CompoundWriter& compound) {
    nfs4::CreateSessionArguments arguments;
    arguments.client_id = client_id_;
    arguments.sequence_id = create_sequence_;
    arguments.fore_channel = {0, kMessageBytes, kMessageBytes, kCachedBytes, kOperations, options_.slots, {}};
    arguments.back_channel = {0, kCallbackBytes, kCallbackBytes, kCallbackBytes, 2, 1, {}};
    arguments.callback_program = nfs4::kCallbackProgramDefault;
    arguments.callback_security.push_back(nfs4::CallbackSecurity::make<nfs4::kFlavorNone>());
    put(compound, arguments);
  };
  ask("CREATE_SESSION", build, [this, done = std::move(done)](Result<nfs4::CompoundResultReader*> results) {
    if (!results) return done(std::unexpected(std::move(results).error()));
    const auto result = (*results)->result<nfs4::CreateSessionResponse>();
    if (!result) return done(std::unexpected(refused("CREATE_SESSION", result.error())));
    session_id_ = result->session_id;
    slots_.resize(std::clamp<uint32_t>(result->fore_channel.max_requests, 1, options_.slots));
    reclaim_complete(done);
  });
}

void Client::reclaim_complete(Ready done) {
  const auto build = [](nfs4::CompoundWriter& compound) { put(compound, nfs4::ReclaimCompleteArguments()); };
  call(0, true, build, [done = std::move(done)](Result<nfs4::CompoundResultReader*> results) {
    if (!results) return done(std::unexpected(std::move(results).error()));
    const auto result = (*results)->result<nfs4::ReclaimCompleteResponse>();
    if (!result) return done(std::unexpected(refused("RECLAIM_COMPLETE", result.error())));
    done({});
  });
}

void Client::leave(Ready done) {
  const auto destroy_session = [this](nfs4::CompoundWriter& compound) {
    put(compound, nfs4::DestroySessionArguments{session_id_});
  };
  const auto destroy_client = [this](nfs4::CompoundWriter& compound) {
    put(compound, nfs4::DestroyClientIdArguments{client_id_});
  };
  if (!connection_ || !connection_->is_open()) return done({});
  ask("DESTROY_SESSION", destroy_session, [this, destroy_client, done = std::move(done)](auto) {
    ask("DESTROY_CLIENTID", destroy_client, [this, done](auto) {
      connection_->close();
      done({});
    });
  });
}

void Client::ask(const char* what, Build build, Answered done, int repetitions) {
  Bytes arguments = begin_compound();
  nfs4::CompoundWriter compound(arguments, {{}, options_.minor_version});
  build(compound);
  send(std::move(arguments),
       [this, what, build = std::move(build), done = std::move(done), repetitions](Result<rpc::Reply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         auto results = nfs4::CompoundResultReader::open(reply->results);
         if (!results) return done(fail(EPROTO, fmt::format("{}: the answer cannot be decoded", what)));
         if (results->status() == Status::kDelay) {
           loop_.after(kDelay, [this, what, build, done] { ask(what, build, done); });
           return;
         }
         done(&*results);
       });
}

void Client::call(uint32_t slot, bool cache, const Build& build, Answered done) {
  Slot& state = slots_[slot];
  CHECK(!std::exchange(state.busy, true));
  Bytes arguments = begin_compound();
  nfs4::CompoundWriter compound(arguments, {{}, options_.minor_version});
  put(compound, nfs4::SequenceArguments{session_id_, state.sequence, slot, slots() - 1, cache});
  build(compound);
  send(std::move(arguments), [this, slot, done = std::move(done)](Result<rpc::Reply> reply) {
    Slot& answered = slots_[slot];
    answered.busy = false;
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    auto results = nfs4::CompoundResultReader::open(reply->results);
    if (!results) return done(fail(EPROTO, "the server's answer cannot be decoded"));
    const auto sequence = results->result<nfs4::SequenceResponse>();
    // A refused SEQUENCE leaves the slot as it was.
    if (!sequence && sequence.error() != Status::kDelay) {
      return done(std::unexpected(refused("SEQUENCE", sequence.error())));
    }
    if (sequence) ++answered.sequence;
    done(&*results);
  });
}

Bytes Client::begin_compound() const {
  Bytes arguments;
  arguments.reserve(512);
  return arguments;
}

void Client::send(Bytes arguments, rpc::Connection::ReplyHandler done) {
  connection_->call(nfs4::kProgram, nfs4::kVersion, nfs4::kProcedureCompound, credential_,
                    std::move(arguments), kCallPatience, std::move(done));
}

}  // namespace pnfsrdma::bench
