// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/mds/ops/handlers.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/done_record.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/session_table.h"

// SEQUENCE (RFC 8881, 18.46).
namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

// RPC header of an accepted reply with an AUTH_NONE verifier: part of ca_maxresponsesize.
inline constexpr uint32_t kReplyHeaderBytes = 24;

uint32_t status_flags(Session& session, const DelegationTable& delegations) {
  uint32_t flags = session.client().status_flags;
  if (delegations.revoked_of_client(session.client().id) > 0) flags |= nfs4::kSequenceRecallableStateRevoked;
  if (!session.back().wanted || session.back_connection()) return flags;
  flags |= nfs4::kSequenceCallbackPathDownSession;
  const auto& sessions = session.client().sessions;
  const bool reachable =
      std::ranges::any_of(sessions, [](Session* other) { return other->back_connection() != nullptr; });
  return reachable ? flags : flags | nfs4::kSequenceCallbackPathDown;
}

uint32_t reply_bytes_max(const nfs4::ChannelAttributes& fore, bool keep) {
  uint32_t bytes = fore.max_response_size;
  if (keep) bytes = std::min(bytes, fore.max_response_size_cached);
  return bytes > kReplyHeaderBytes ? bytes - kReplyHeaderBytes : 0;
}

nfs4::SequenceResult result_of(const CompoundContext& context, Session& session,
                               const nfs4::SequenceArguments& arguments) {
  return {.session_id = session.id(),
          .sequence_id = arguments.sequence_id,
          .slot_id = arguments.slot_id,
          .highest_slot_id = session.slots().highest(),
          .target_highest_slot_id = session.slots().target_highest(),
          .status_flags = status_flags(session, context.services.delegations.table())};
}

// Sessions do not survive the daemon, but what was done in them is known: a request that had made its change
// when the daemon died is answered, every other one meets BADSESSION.
nfs4::SequenceResponse of_earlier_session(CompoundContext& context,
                                          const nfs4::SequenceArguments& arguments) {
  TRY_ASSIGN(const std::optional<DoneRecord> done,
             DoneRecords(context.services.store).find(arguments.session_id, arguments.slot_id));
  if (!done || done->seqid != arguments.sequence_id || done->request_hash != context.request.hash)
    return Status::kBadSession;
  ++context.services.counters.replays;
  context.done = done->operation;
  context.done_open = done->open;
  context.keep_reply = arguments.cache_this;
  context.reply_bytes_max = context.services.limits.cached_reply_bytes_max;
  return nfs4::SequenceResult{.session_id = arguments.session_id,
                              .sequence_id = arguments.sequence_id,
                              .slot_id = arguments.slot_id,
                              .highest_slot_id = arguments.highest_slot_id,
                              .target_highest_slot_id = arguments.highest_slot_id,
                              .status_flags = 0};
}

}  // namespace

nfs4::SequenceResponse handle(CompoundContext& context, const nfs4::SequenceArguments& arguments) {
  if (context.request.index != 0) return Status::kSequencePos;
  const auto session = context.services.sessions.find(arguments.session_id);
  if (!session) return of_earlier_session(context, arguments);
  if (context.request.operations > session->fore().max_operations) return Status::kTooManyOps;
  if (context.request.bytes > session->fore().max_request_size) return Status::kReqTooBig;
  TRY_ASSIGN(const SlotTable::Verdict verdict,
             session->slots().begin(arguments.slot_id, arguments.sequence_id, arguments.highest_slot_id,
                                    context.request.hash));
  session->give_back_slots();
  // A retry renews the lease like any other request of the client's.
  context.services.clients.renew(session->client());
  // With SP4_NONE whatever connection brings a SEQUENCE belongs to the session (2.10.3.1).
  if (const auto connection = context.connection.lock()) session->bind_fore(connection);
  if (verdict != SlotTable::Verdict::kNew) {
    ++context.services.counters.replays;
    context.replay = true;
    context.kept_reply = session->slots().at(arguments.slot_id).reply;
    return result_of(context, *session, arguments);
  }
  context.session = session;
  context.client = session->shared_client();
  context.slot = arguments.slot_id;
  context.keep_reply = arguments.cache_this;
  context.reply_bytes_max = reply_bytes_max(session->fore(), arguments.cache_this);
  ++context.client->running_compounds;
  return result_of(context, *session, arguments);
}

}  // namespace pnfsrdma::mds
