// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/backchannel.h"

#include <algorithm>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/rpc/record.h"

namespace pnfsrdma::initiator {
namespace {

using nfs4::CallbackOperation;
using nfs4::Status;

// The record of a reply: mark, header, results.
Bytes reply_record(const rpc::ReplyHeader& header, ByteSpan results) {
  Bytes record(rpc::kMarkSize);
  xdr::Encoder encoder(record);
  xdr::encode(encoder, header);
  record.insert(record.end(), results.begin(), results.end());
  std::byte mark[rpc::kMarkSize];
  rpc::write_record_mark(mark, record.size() - rpc::kMarkSize);
  std::copy(std::begin(mark), std::end(mark), record.begin());
  return record;
}

// COMPOUND results without operations.
Bytes refused(const nfs4::Tag& tag, Status status) {
  Bytes results;
  nfs4::CallbackResultWriter writer(results, tag);
  writer.set_status(status);
  return results;
}

}  // namespace

void Backchannel::start(Hooks hooks) {
  hooks_ = std::move(hooks);
  thread_ = Thread([this] { run(); });
}

void Backchannel::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Backchannel::reset(const nfs4::SessionId& session, uint32_t slots) {
  const std::lock_guard lock(mutex_);
  session_ = session;
  slots_.assign(slots, {});
  ++session_number_;
}

void Backchannel::push(std::shared_ptr<SessionSocket> socket, Bytes record) {
  // More than the backchannel's slots can carry comes only from a server that breaks the protocol.
  constexpr size_t kQueuedMax = 64;
  const std::lock_guard lock(mutex_);
  if (jobs_.size() >= kQueuedMax) return;
  jobs_.push_back({std::move(socket), std::move(record)});
  changed_.notify_one();
}

void Backchannel::run() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    serve(job);
  }
}

void Backchannel::serve(const Job& job) {
  const auto send = [&](const rpc::ReplyHeader& header, ByteSpan results) {
    // A lost connection is noticed by whoever polls it; the server repeats the callback.
    (void)job.socket->send(reply_record(header, results), kSendPatience);
  };
  xdr::Decoder decoder(job.record);
  const auto call = rpc::decode_call(decoder);
  if (!call) {
    if (call.error().reply) send(*call.error().reply, {});
    return;
  }
  const uint32_t xid = call->xid;
  if (call->program != nfs4::kCallbackProgramDefault) {
    return send(rpc::ReplyHeader::refusal(xid, rpc::AcceptStatus::kProgramUnavailable), {});
  }
  if (call->version != nfs4::kCallbackVersion) {
    return send(rpc::ReplyHeader::program_mismatch(xid, {nfs4::kCallbackVersion, nfs4::kCallbackVersion}),
                {});
  }
  if (call->procedure == nfs4::kProcedureNull) return send(rpc::ReplyHeader::success(xid), {});
  if (call->procedure != nfs4::kProcedureCompound) {
    return send(rpc::ReplyHeader::refusal(xid, rpc::AcceptStatus::kProcedureUnavailable), {});
  }
  const ByteSpan request = decoder.rest();
  auto reader = nfs4::CallbackCompoundReader::open(request);
  if (!reader) return send(rpc::ReplyHeader::refusal(xid, rpc::AcceptStatus::kGarbageArguments), {});
  const Executed executed = execute(*reader, request);
  send(rpc::ReplyHeader::success(xid), executed.results);
  if (executed.then) executed.then();
}

// RFC 8881, 20.9.3: CB_SEQUENCE first, its slot decides whether this is new, a repetition, or out of order.
Backchannel::Executed Backchannel::execute(nfs4::CallbackCompoundReader& reader, ByteSpan request) {
  const nfs4::Tag tag = reader.header().tag;
  if (reader.minor_version() < 1 || reader.minor_version() > 2)
    return {refused(tag, Status::kMinorVersMismatch), {}};
  if (reader.left() == 0) return {refused(tag, Status::kOk), {}};
  const auto first = reader.next();
  Executed executed;
  nfs4::CallbackResultWriter writer(executed.results, tag);
  const auto* arguments =
      first.arguments ? std::get_if<nfs4::CallbackSequenceArguments>(&*first.arguments) : nullptr;
  if (arguments == nullptr) {
    const Status why = first.arguments ? Status::kOpNotInSession : first.arguments.error();
    writer.add(nfs4::status_result(first.operation, why));
    return executed;
  }
  CallbackSlot* slot = nullptr;
  bool replay = false;
  const nfs4::CallbackSequenceResponse sequenced = sequence(*arguments, request, slot, replay);
  if (replay) return {slot->reply, {}};
  writer.add(sequenced);
  if (!sequenced.ok()) return executed;

  while (reader.left() > 0) {
    const auto item = reader.next();
    const nfs4::CallbackResultOperation result =
        item.arguments ? answer(*item.arguments, executed.then)
                       : nfs4::status_result(item.operation, item.arguments.error());
    writer.add(result);
    if (nfs4::status_of(result) != Status::kOk) break;
  }
  const std::lock_guard lock(mutex_);
  // A new session may have come meanwhile; its slots are others.
  if (arguments->session_id == session_ && arguments->slot_id < slots_.size()) {
    slots_[arguments->slot_id] = {arguments->sequence_id, Bytes(request.begin(), request.end()),
                                  executed.results};
  }
  return executed;
}

nfs4::CallbackSequenceResponse Backchannel::sequence(const nfs4::CallbackSequenceArguments& arguments,
                                                     ByteSpan request, CallbackSlot*& slot, bool& replay) {
  {
    const std::lock_guard lock(mutex_);
    if (arguments.session_id != session_) return Status::kBadSession;
    if (arguments.slot_id >= slots_.size()) return Status::kBadSlot;
    if (arguments.highest_slot_id >= slots_.size()) return Status::kBadHighSlot;
    slot = &slots_[arguments.slot_id];
    if (arguments.sequence_id == slot->sequence && slot->sequence != 0) {
      // Another call under the number of one whose answer the server has not seen: that answer is not its own.
      if (!std::ranges::equal(request, slot->request)) return Status::kSeqFalseRetry;
      replay = true;
      return Status::kOk;
    }
    if (arguments.sequence_id != slot->sequence + 1) return Status::kSeqMisordered;
  }
  // Before the slot is used: DELAY here leaves it as it was.
  if (const Status waited = wait_for_referred(arguments); waited != Status::kOk) return waited;
  nfs4::CallbackSequenceResult result;
  result.session_id = arguments.session_id;
  result.sequence_id = arguments.sequence_id;
  result.slot_id = arguments.slot_id;
  result.highest_slot_id = result.target_highest_slot_id = static_cast<uint32_t>(slots_.size()) - 1;
  return result;
}

// RFC 8881, 2.10.6.3: the callback speaks of something that a reply still under way tells us of.
Status Backchannel::wait_for_referred(const nfs4::CallbackSequenceArguments& arguments) {
  const SteadyTime until = steady_now() + kReferredPatience;
  for (const nfs4::ReferringCalls& list : arguments.referring_calls) {
    if (list.session_id != arguments.session_id) continue;
    for (const nfs4::ReferringCall& call : list.calls) {
      while (hooks_.outstanding(call.slot_id, call.sequence_id)) {
        if (steady_now() > until) return Status::kDelay;
        sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  return Status::kOk;
}

nfs4::CallbackResultOperation Backchannel::answer(const nfs4::CallbackArgumentOperation& arguments,
                                                  std::function<void()>& then) {
  CallbackHandler* const handler = handler_;
  const auto handled = [&](CallbackAnswer answer) {
    if (answer.then) {
      // Several operations in one COMPOUND: all of them, in order.
      then = then ? [first = std::move(then), second = std::move(answer.then)] { first(), second(); }
                  : std::move(answer.then);
    }
    return answer.status;
  };
  if (const auto* recall = std::get_if<nfs4::CallbackLayoutRecallArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackLayoutRecallResponse(Status::kNomatchingLayout);
    return nfs4::CallbackLayoutRecallResponse(handled(handler->layout_recall(*recall)));
  }
  if (const auto* recall = std::get_if<nfs4::CallbackRecallArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackRecallResponse(Status::kBadStateid);
    return nfs4::CallbackRecallResponse(handled(handler->recall(*recall)));
  }
  if (const auto* question = std::get_if<nfs4::CallbackGetAttributesArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackGetAttributesResponse(Status::kBadHandle);
    return handler->get_attributes(*question);
  }
  if (const auto* recall = std::get_if<nfs4::CallbackRecallAnyArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackRecallAnyResponse(Status::kOk);
    return nfs4::CallbackRecallAnyResponse(handled(handler->recall_any(*recall)));
  }
  if (const auto* notify = std::get_if<nfs4::CallbackNotifyDeviceIdArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackNotifyDeviceIdResponse(Status::kOk);
    return nfs4::CallbackNotifyDeviceIdResponse(handled(handler->notify_deviceid(*notify)));
  }
  if (const auto* notify = std::get_if<nfs4::CallbackNotifyLockArguments>(&arguments)) {
    if (handler == nullptr) return nfs4::CallbackNotifyLockResponse(Status::kOk);
    return nfs4::CallbackNotifyLockResponse(handled(handler->notify_lock(*notify)));
  }
  if (const auto* recall = std::get_if<nfs4::CallbackRecallSlotArguments>(&arguments)) {
    hooks_.limit_slots(recall->target_highest_slot_id);
    return nfs4::CallbackRecallSlotResponse(Status::kOk);
  }
  const CallbackOperation operation = nfs4::operation_of(arguments);
  const Status why = operation == CallbackOperation::kCallbackSequence  ? Status::kSequencePos
                     : operation == CallbackOperation::kCallbackIllegal ? Status::kOpIllegal
                                                                        : Status::kNotSupp;
  return nfs4::status_result(operation, why);
}

}  // namespace pnfsrdma::initiator
