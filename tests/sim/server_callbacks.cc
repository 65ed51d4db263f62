// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "shared/base/check.h"
#include "shared/base/sync.h"
#include "shared/rpc/message.h"
#include "tests/sim/model_server.h"

// The backchannel: callbacks are sent again, with their number, until they are answered or their session is gone.
namespace pnfsrdma::sim {

void ModelServer::recall_any(size_t client, uint32_t keep) {
  nfs4::CallbackRecallAnyArguments arguments;
  arguments.objects_to_keep = keep;
  arguments.types.set(nfs4::kRecallAnyOtherLayoutMin);
  do_later([this, client, arguments] { (void)call_back(client, arguments); });
}

void ModelServer::recall(size_t client, const nfs4::CallbackLayoutRecallArguments& arguments) {
  do_later([this, client, arguments] {
    constexpr int kTries = 20;
    for (int tries = 0; tries < kTries; ++tries) {
      const auto status = call_back(client, arguments);
      if (!status) return;
      if (*status == Status::kDelay) {
        sleep_for(Milliseconds(20));
        continue;
      }
      if (*status != Status::kNomatchingLayout) return;
      const auto* file = arguments.what.get_if<nfs4::LayoutRecallType::kFile>();
      return file != nullptr ? mds_.not_held(client, arguments.io_mode, *file)
                             : mds_.layout_return_all(client);
    }
  });
}

std::optional<Status> ModelServer::call_back(size_t client,
                                             const nfs4::CallbackArgumentOperation& operation) {
  const auto session = session_of(client);
  if (!session) return std::nullopt;
  const auto free_slot = [&] {
    return std::find_if(session->callback_slots.begin(), session->callback_slots.end(),
                        [](const CallbackSlot& slot) { return !slot.busy; });
  };
  while (free_slot() == session->callback_slots.end())
    (void)callback_answered_.wait(SteadyTime::max(), "a slot of the backchannel");
  CallbackSlot& slot = *free_slot();
  slot.busy = true;
  ++slot.sequence;
  const uint32_t xid = next_xid_++;
  callback_replies_[xid] = std::nullopt;
  const Bytes record = callback_record(
      *session, xid, static_cast<uint32_t>(&slot - session->callback_slots.data()), operation);
  std::shared_ptr<Wire> sent_on;
  std::optional<Status> answer;
  while (!answer && session_of(client) == session) {
    const auto wire = session->wire.lock();
    if (wire && wire->server_open && wire != sent_on) {
      sent_on = wire;
      wire->to_client(record);
      if (dice_.one_in(10)) wire->to_client(record);
    }
    (void)callback_answered_.wait(steady_now() + Milliseconds(50), "the answer to a callback");
    bool again = false;
    answer = callback_answer(xid, again);
    if (again) sent_on.reset();
  }
  callback_replies_.erase(xid);
  slot.busy = false;
  callback_answered_.ring();
  return answer;
}

Bytes ModelServer::callback_record(const Session& session, uint32_t xid, uint32_t slot,
                                   const nfs4::CallbackArgumentOperation& operation) const {
  rpc::CallHeader header;
  header.xid = xid;
  header.program = nfs4::kCallbackProgramDefault;
  header.version = nfs4::kCallbackVersion;
  header.procedure = nfs4::kProcedureCompound;
  nfs4::CallbackSequenceArguments sequence;
  sequence.session_id = session.id;
  sequence.sequence_id = session.callback_slots[slot].sequence;
  sequence.slot_id = slot;
  sequence.highest_slot_id = static_cast<uint32_t>(session.callback_slots.size()) - 1;
  Bytes record;
  xdr::Encoder encoder(record);
  xdr::encode(encoder, header);
  nfs4::CallbackCompoundWriter writer(record, {.tag = {}, .minor_version = 2});
  writer.add(sequence);
  writer.add(operation);
  return record;
}

// None: there is none yet, or (`again`) the callback has to be sent once more.
std::optional<Status> ModelServer::callback_answer(uint32_t xid, bool& again) {
  auto& reply = callback_replies_[xid];
  if (!reply) return std::nullopt;
  const Bytes record = *std::exchange(reply, std::nullopt);
  xdr::Decoder decoder(record);
  rpc::ReplyHeader header;
  CHECK(xdr::decode(decoder, header));
  const auto results = xdr::decode_from<nfs4::CallbackCompoundResults>(decoder.rest());
  if (!header.successful() || !results || results->operations.empty()) {
    violated("a callback has no answer");
    return Status::kServerFault;
  }
  const Status sequenced = nfs4::status_of(results->operations.front());
  if (sequenced == Status::kOk) return nfs4::status_of(results->operations.back());
  // It does not know of the session yet, or waits for an answer of ours.
  again = sequenced == Status::kBadSession || sequenced == Status::kDelay;
  if (!again) violated(fmt::format("a callback is answered {}", nfs4::to_string(sequenced)));
  return std::nullopt;
}

}  // namespace pnfsrdma::sim
