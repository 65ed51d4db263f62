// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/callback_channel.h"

#include <cerrno>
#include <optional>

#include "shared/nfs4/compound.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// How soon a call that found no path or no slot looks again.
inline constexpr Milliseconds kRetryDelay{100};
inline constexpr uint32_t kProcedureCallbackCompound = 1;

}  // namespace

struct CallbackChannel::Place {
  std::shared_ptr<Session> session;
  rpc::ConnectionPointer connection;
  uint32_t slot = 0;

  BackSlot& back_slot() const { return session->back().slots[slot]; }
};

struct CallbackChannel::Call {
  ClientId client;
  nfs4::CallbackArgumentOperation operation;
  Done done;
  SteadyTime deadline;
  SteadyTime to_be_sent;  // until then
  // Where it went and was not answered. The slot stays busy: the client may have seen its number, under which
  // it would answer another call as it has answered this one.
  std::optional<Place> unanswered = std::nullopt;
};

CallbackChannel::CallbackChannel(EventLoop& loop, ClientTable& clients, SessionTable& sessions,
                                 Milliseconds timeout)
    : loop_(loop), clients_(clients), sessions_(sessions), timeout_(timeout) {}

void CallbackChannel::call(ClientId client, nfs4::CallbackArgumentOperation operation, Milliseconds patience,
                           Done done) {
  auto call = std::make_shared<Call>(Call{.client = client,
                                          .operation = std::move(operation),
                                          .done = std::move(done),
                                          .deadline = loop_.now() + timeout_,
                                          .to_be_sent = loop_.now() + patience});
  // A turn later at the earliest: `done` must not meet its caller still at work.
  loop_.at_turn_end(lifetime_.guard([this, call] { attempt(call); }));
}

// A session with a live connection and a slot at rest, best one whose number is known.
bool CallbackChannel::find_place(const Client& client, Place& place) {
  for (const bool uncertain : {false, true}) {
    for (Session* session : client.sessions) {
      auto connection = session->back_connection();
      if (!connection) continue;
      auto& slots = session->back().slots;
      for (uint32_t slot = 0; slot < slots.size(); ++slot) {
        if (slots[slot].busy || slots[slot].broken || slots[slot].uncertain != uncertain) continue;
        place = {sessions_.find(session->id()), std::move(connection), slot};
        return place.session != nullptr;
      }
    }
  }
  return false;
}

// Where it went before, if the session has a connection again. False, and it has none: nowhere else while the
// session lives.
bool CallbackChannel::find_place_of_before(const CallPointer& call, Place& place) {
  place = *call->unanswered;
  if (sessions_.find(place.session->id()) != place.session) {
    call->unanswered.reset();
    return false;
  }
  place.connection = place.session->back_connection();
  if (!place.connection) return false;
  call->unanswered.reset();
  return true;
}

void CallbackChannel::attempt(const CallPointer& call) {
  const auto client = clients_.find(call->client);
  if (!client) return call->done(std::unexpected(CallbackFailure::kNoPath));
  Place place;
  if (call->unanswered && find_place_of_before(call, place)) return send(call, std::move(place));
  if (call->unanswered || !find_place(*client, place)) return retry(call, CallbackFailure::kNoPath);
  send(call, std::move(place));
}

void CallbackChannel::retry(const CallPointer& call, CallbackFailure why) {
  const SteadyTime until = call->unanswered ? call->deadline : std::min(call->deadline, call->to_be_sent);
  if (loop_.now() + kRetryDelay >= until) {
    if (call->unanswered) call->unanswered->back_slot().busy = false;
    return call->done(std::unexpected(why));
  }
  loop_.after(kRetryDelay, lifetime_.guard([this, call] { attempt(call); }));
}

void CallbackChannel::send(const CallPointer& call, Place place) {
  BackChannel& back = place.session->back();
  BackSlot& slot = place.back_slot();
  slot.busy = true;
  // A call whose fate is unknown used its seqid up or did not: the client tells, if the same one comes again.
  if (!slot.uncertain) ++slot.seqid;
  slot.uncertain = true;

  nfs4::CallbackSequenceArguments sequence;
  sequence.session_id = place.session->id();
  sequence.sequence_id = slot.seqid;
  sequence.slot_id = place.slot;
  sequence.highest_slot_id = static_cast<uint32_t>(back.slots.size()) - 1;
  Bytes arguments;
  nfs4::CallbackCompoundWriter writer(arguments, {.tag = {}, .minor_version = back.minor_version});
  writer.add(sequence);
  writer.add(call->operation);

  const auto left = std::chrono::duration_cast<Milliseconds>(call->deadline - loop_.now());
  place.connection->call(back.program, nfs4::kCallbackVersion, kProcedureCallbackCompound, back.credential,
                         std::move(arguments), std::max(left, Milliseconds(1)),
                         lifetime_.guard([this, call, place](Result<rpc::Reply> reply) {
                           answered(call, place, std::move(reply));
                         }));
}

void CallbackChannel::answered(const CallPointer& call, const Place& place, Result<rpc::Reply> reply) {
  BackSlot& slot = place.back_slot();
  slot.busy = false;
  if (!reply) {
    const int error = reply.error().number();
    if (error == ECONNRESET || error == EAGAIN) {
      slot.busy = true;
      call->unanswered = place;
      return retry(call, CallbackFailure::kNoPath);
    }
    place.session->unbind_back(*place.connection);
    const auto why = error == ETIMEDOUT ? CallbackFailure::kTimeout : CallbackFailure::kRefused;
    return call->done(std::unexpected(why));
  }
  auto results = nfs4::CallbackResultReader::open(reply->results);
  if (!results) return call->done(std::unexpected(CallbackFailure::kRefused));
  if (const auto sequence = results->result<nfs4::CallbackSequenceResponse>(); !sequence) {
    return sequence_failed(call, place, sequence.error());
  }
  slot.uncertain = false;
  auto result = results->next();
  if (!result) return call->done(std::unexpected(CallbackFailure::kRefused));
  call->done(std::move(*result));
}

void CallbackChannel::sequence_failed(const CallPointer& call, const Place& place, Status status) {
  BackSlot& slot = place.back_slot();
  switch (status) {
    case Status::kDelay:  // nothing was used up: the same again, later
      return retry(call, CallbackFailure::kTimeout);
    case Status::kRetryUncachedRep:  // the earlier call did arrive, and this one is another
    case Status::kSeqFalseRetry:
      slot.uncertain = false;
      return retry(call, CallbackFailure::kTimeout);
    case Status::kSeqMisordered:
    case Status::kBadSlot:
      slot.broken = true;
      return retry(call, CallbackFailure::kRefused);
    default:
      place.session->unbind_back(*place.connection);
      return call->done(std::unexpected(CallbackFailure::kRefused));
  }
}

}  // namespace pnfsrdma::mds
