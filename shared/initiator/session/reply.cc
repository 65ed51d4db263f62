// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/record.h"
#include "shared/initiator/session/repetition.h"
#include "shared/initiator/session/state.h"
#include "shared/nfs4/status_errno.h"

// What a reply means for the call, the slot and the session; and the loop that repeats a call until it is
// answered for good.
namespace pnfsrdma::initiator {
namespace {

using nfs4::Status;

// The operations of `all` at `indices`.
Session::Operations pick(const Session::Operations& all, const std::vector<size_t>& indices) {
  Session::Operations picked;
  picked.reserve(indices.size());
  for (const size_t index : indices) picked.push_back(all[index]);
  return picked;
}

bool changes_data(const nfs4::ArgumentOperation& operation) {
  switch (nfs4::operation_of(operation)) {
    case nfs4::Operation::kWrite:
    case nfs4::Operation::kSetAttributes:
    case nfs4::Operation::kAllocate:
    case nfs4::Operation::kDeallocate:
    case nfs4::Operation::kCopy:
    case nfs4::Operation::kClone:
      return true;
    default:
      return false;
  }
}

// What has been answered so far, by the caller's operations, over several COMPOUNDs.
class Gathered {
 public:
  explicit Gathered(size_t count) : places_(count) {
    for (size_t i = 0; i < count; ++i) places_[i] = i;
  }

  // The results of one more COMPOUND of operations().
  void add(CompoundReply reply) {
    whole_.status = reply.status;
    whole_.repeated |= reply.repeated;
    const size_t reached = reply.results.empty() ? 0 : places_[reply.results.size() - 1] + 1;
    whole_.results.resize(std::max(reached, whole_.results.size()));
    for (size_t i = 0; i < reply.results.size(); ++i)
      whole_.results[places_[i]] = std::move(reply.results[i]);
    for (Bytes& record : reply.records) whole_.records.push_back(std::move(record));
    if (reached > 0) whole_.results.resize(reached);
    answered_ = reply.results.size();
  }
  // Of the operations sent last, the one that failed; nothing when not even the first was tried.
  std::optional<size_t> failed() const {
    if (answered_ == 0) return std::nullopt;
    return answered_ - 1;
  }
  // From now on only these of the operations sent last are sent.
  void narrow(const std::vector<size_t>& indices) {
    std::vector<size_t> places;
    for (const size_t index : indices) places.push_back(places_[index]);
    places_ = std::move(places);
  }
  const CompoundReply& so_far() const { return whole_; }
  CompoundReply take() { return std::move(whole_); }

 private:
  std::vector<size_t> places_;  // index sent -> index of the caller
  CompoundReply whole_;
  size_t answered_ = 0;
};

}  // namespace

Result<CompoundReply> Session::State::finish(Call& call) {
  BackOff back_off(options.delay_first, options.delay_max);
  Gathered gathered(call.operations.size());
  bool repeated = false;
  for (;;) {
    if (call.slot == nullptr) TRY(send_new(call, true));
    TRY(await_reply(call));
    TRY_ASSIGN(Answer answer, interpret(call));
    if (answer.verdict == Verdict::kSendAgain) {
      (void)pause(call, back_off.next());  // a reason to stop shows in await_reply()
      send_again(call);
      continue;
    }
    if (answer.verdict == Verdict::kBuildAnew) {
      repeated = true;
      continue;
    }
    answer.reply.repeated = repeated;
    const Status status = answer.reply.status;
    gathered.add(std::move(answer.reply));
    const auto failed = gathered.failed();
    if (!failed || call.options.return_delay || !asks_for_repetition(status)) return gathered.take();
    const auto indices = operations_to_repeat(call.operations, *failed);
    if (indices && call.options.on_repetition != nullptr) (*call.options.on_repetition)(gathered.so_far());
    if (!indices || !pause(call, back_off.next())) return gathered.take();
    gathered.narrow(*indices);
    call.operations = pick(call.operations, *indices);
  }
}

// The same bytes on the same slot: SEQUENCE answered DELAY, the slot stands where it stood.
void Session::State::send_again(Call& call) {
  std::shared_ptr<SessionSocket> socket;
  {
    Lock lock(mutex_);
    Slot& slot = *call.slot;
    if (slot.session != slots_.session()) {
      release(slot, false);
      call.slot = nullptr;
      return;
    }
    slot.phase = Slot::Phase::kSent;
    stamp(slot);
    if (connected()) socket = socket_;
  }
  if (socket) transmit(socket, call.slot->request);
}

Result<Session::State::Answer> Session::State::interpret(Call& call) {
  Slot& slot = *call.slot;
  const auto give_back = [&](bool sequence_used) {
    Lock lock(mutex_);
    release(slot, sequence_used);
    call.slot = nullptr;
  };
  if (slot.phase == Slot::Phase::kSessionLost) {
    give_back(false);
    return Answer{Verdict::kBuildAnew, {}};
  }
  Answer answer;
  // The record goes with the reply: results of READ are views into it.
  const Bytes& record = answer.reply.records.emplace_back(std::move(slot.reply));
  const Result<ByteSpan> bytes = results_of(record);
  if (!bytes) {
    give_back(false);
    return std::unexpected(bytes.error());
  }
  auto reader = nfs4::CompoundResultReader::open(*bytes);
  if (!reader || reader->left() == 0) {
    give_back(false);
    if (reader) return fail(nfs4::to_errno(reader->status()), "the MDS refuses the COMPOUND");
    return fail(EPROTO, "the MDS sent results that cannot be decoded");
  }
  const auto sequence = reader->result<nfs4::SequenceResponse>();
  if (!sequence) return after_sequence_error(call, sequence.error());
  note_sequence(slot, *sequence);
  call.slot = nullptr;

  answer.reply.status = reader->status();
  while (reader->left() > 0) {
    auto result = reader->next();
    if (!result) return fail(EPROTO, "the MDS sent results that cannot be decoded");
    answer.reply.results.push_back(std::move(*result));
  }
  // It was done, its reply is not kept: said by the operation behind SEQUENCE, which is answered anew (RFC
  // 8881, 2.10.6.1.3). Doing it twice does no harm.
  if (answer.reply.status == Status::kRetryUncachedRep) return Answer{Verdict::kBuildAnew, {}};
  if (answer.reply.ok() && answer.reply.results.size() != call.operations.size()) {
    return fail(EPROTO, "the MDS sent a wrong number of results");
  }
  if (answer.reply.results.size() > call.operations.size()) {
    return fail(EPROTO, "the MDS sent more results than there were operations");
  }
  return answer;
}

// SEQUENCE failed: nothing behind it ran, and the slot's number was not used (RFC 8881, 18.46.3).
Result<Session::State::Answer> Session::State::after_sequence_error(Call& call, Status status) {
  if (status == Status::kDelay) return Answer{Verdict::kSendAgain, {}};
  Lock lock(mutex_);
  Slot& slot = *call.slot;
  const bool current = slot.session == slots_.session();
  switch (status) {
    case Status::kRetryUncachedRep:
      // It was done, its reply is not kept: only asked for where doing it twice does no harm.
      release(slot, true);
      break;
    case Status::kSeqFalseRetry:
      // What was given up had been done before it could be voided.
      if (current && !slot.voided) lose(lock, socket_, Damage::kSession, nfs4::to_string(status));
      release(slot, slot.voided);
      break;
    case Status::kConnNotBoundToSession:
      if (current) lose(lock, socket_, Damage::kConnection, "the connection is not bound to the session");
      release(slot, false);
      break;
    case Status::kReqTooBig:
    case Status::kTooManyOps:
    case Status::kRepTooBig:
    case Status::kRepTooBigToCache:
      release(slot, false);
      call.slot = nullptr;
      return fail(EMSGSIZE, std::string("the MDS answers ") + nfs4::to_string(status));
    case Status::kBadXdr:
      release(slot, false);
      call.slot = nullptr;
      return fail(EPROTO, "SEQUENCE: a reply that cannot be decoded, or the MDS could not decode ours");
    default:
      // BADSESSION, DEADSESSION, and everything that says that our slots and the server's do not agree.
      if (current) lose(lock, socket_, Damage::kSession, nfs4::to_string(status));
      release(slot, false);
      break;
  }
  call.slot = nullptr;
  return Answer{Verdict::kBuildAnew, {}};
}

// It goes now. In this order: a suspension between the two makes the lease that begins here look older, never newer.
void Session::State::stamp(Slot& slot) {
  slot.slept_before = options.slept();
  slot.sent_at = now();
}

void Session::State::note_sequence(Slot& slot, const nfs4::SequenceResult& sequence) {
  // Each time while the flag is up: something else may have been revoked since. Before the caller has the
  // answer, and acts upon what it knows by it.
  RecoveryHandler* const handler = recovery_handler;
  if ((sequence.status_flags & kRevokedFlags) != 0 && handler != nullptr) handler->state_revoked();
  Lock lock(mutex_);
  const bool current = slot.session == slots_.session();
  if (current) {
    renewed_at_ = slot.sent_at;  // the lease began at the server no earlier than that
    answered_at_ = std::max(answered_at_, slot.sent_at + slot.slept_before);
    lease_end = answered_at_ + established_.lease;
    slots_.limit_highest(sequence.target_highest_slot_id);
  }
  release(slot, true);
  if (current) note_status_flags(lock, sequence.status_flags);
}

// RFC 8881, 18.46.3. A flag stays up until the server is content, so only its rise is an event.
void Session::State::note_status_flags(Lock& lock, uint32_t flags) {
  const uint32_t risen = flags & ~status_flags_;
  status_flags_ = flags;
  if (risen == 0) return;
  constexpr uint32_t kPathDown = nfs4::kSequenceCallbackPathDown | nfs4::kSequenceCallbackPathDownSession;
  // Not RECALLABLE_STATE_REVOKED: what is revoked then is a delegation (RecoveryHandler::state_revoked) or a
  // layout; its file learns it at the next I/O or LAYOUTCOMMIT (a dead grant, BAD_STATEID), and the opens and all
  // other layouts are as they were.
  constexpr uint32_t kStateLost = nfs4::kSequenceExpiredAllStateRevoked |
                                  nfs4::kSequenceExpiredSomeStateRevoked | nfs4::kSequenceAdminStateRevoked;
  log_info("session", "status-flags server={} risen={:#x}", server_name, risen);
  poller_.wake();  // the background thread sees to it
  if ((risen & (nfs4::kSequenceRestartReclaimNeeded | kStateLost)) != 0) {
    reclaim_wanted_ = true;
    lose(lock, socket_, Damage::kConnection, "the server has revoked state or asks for reclaim");
  } else if ((risen & nfs4::kSequenceBackchannelFault) != 0) {
    lose(lock, socket_, Damage::kSession, "the backchannel is broken");
  } else if ((risen & kPathDown) != 0) {
    lose(lock, socket_, Damage::kConnection, "the callback path is down");
  }
}

// Nobody waits for it, and who gave it up may have written the same bytes anew: it is not done any more. The number is
// used, as it must be if it was done already (then the answer is its, or SEQ_FALSE_RETRY: RFC 8881, 2.10.6.1.3.1).
void Session::State::void_request(Slot& slot) {
  nfs4::SequenceArguments sequence;
  sequence.session_id = established_.session_id;
  sequence.sequence_id = slot.sequence;
  sequence.slot_id = slot.id;
  sequence.highest_slot_id = std::max(slots_.highest_in_use(), slot.id);
  slot.voided = true;
  CallRecord record(slot.request, slot.xid, {}, established_.minor_version);
  xdr::encode(record.compound().begin(nfs4::Operation::kSequence), sequence);
  record.finish();
}

void Session::State::encode(Call& call, Slot& slot) {
  nfs4::SequenceArguments sequence;
  uint32_t minor_version = 0;
  {
    Lock lock(mutex_);
    sequence.session_id = established_.session_id;
    sequence.highest_slot_id = std::max(slots_.highest_in_use(), slot.id);
    minor_version = established_.minor_version;
    ++(call.operations.empty() ? statistics_.renewals : statistics_.compounds);
    for (const auto& operation : call.operations) {
      const auto number = static_cast<size_t>(nfs4::operation_of(operation));
      if (number < statistics_.operations.size()) ++statistics_.operations[number];
    }
  }
  sequence.sequence_id = slot.sequence;
  sequence.slot_id = slot.id;
  sequence.cache_this = slot.cached = call.options.cache_reply;
  slot.changes_data = std::ranges::any_of(call.operations, changes_data);

  CallRecord record(slot.request, slot.xid, call.credential, minor_version);
  xdr::encode(record.compound().begin(nfs4::Operation::kSequence), sequence);
  for (const auto& operation : call.operations) record.compound().add(operation);
  record.finish();
}

}  // namespace pnfsrdma::initiator
