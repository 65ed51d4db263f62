// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/compound.h"

#include <algorithm>
#include <cstring>

#include "server/mds/layout/file_copy.h"
#include "server/mds/ops/done_operations.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/state/client_table.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "shared/base/check.h"
#include "shared/base/turn_times.h"

namespace pnfsrdma::mds {

using nfs4::Operation;
using nfs4::Status;

namespace {

inline constexpr uint32_t kMinorVersionFirst = 1;
inline constexpr uint32_t kMinorVersionLast = 2;
// Most replies are no longer: one allocation.
inline constexpr size_t kReplyBytesUsual = 512;
// Operation and status of a result.
inline constexpr uint32_t kResultHeaderBytes = 8;
// No result of an operation that changes something is longer (OPEN's 96 bytes come near). With less room it
// is not begun: once it is done, REP_TOO_BIG would be a lie.
inline constexpr uint32_t kChangingResultBytes = 128;
// Ports up to it are bound by privileged programs only (ip_unprivileged_port_start of ip(7)).
inline constexpr uint16_t kReservedPortLast = 1023;

struct Handlers {
  template <typename Arguments>
  nfs4::ResponseTo<Arguments> operator()(CompoundContext& context, const Arguments& arguments) {
    return handle(context, arguments);
  }
};
static_assert(nfs4::HandlesEveryOperation<Handlers, CompoundContext>);

// RFC 8881, 2.10.2.1 and the operations' own sections: alone in their COMPOUND they need no session.
bool may_be_sessionless(Operation operation) {
  switch (operation) {
    case Operation::kExchangeId:
    case Operation::kCreateSession:
    case Operation::kBindConnectionToSession:
    case Operation::kDestroySession:
    case Operation::kDestroyClientId:
      return true;
    default:
      return false;
  }
}

bool changes_something(Operation operation) {
  switch (operation) {
    case Operation::kAllocate:
    case Operation::kClone:
    case Operation::kClose:
    case Operation::kCopy:
    case Operation::kCreate:
    case Operation::kDeallocate:
    case Operation::kDelegationReturn:
    case Operation::kLink:
    case Operation::kOpen:
    case Operation::kOpenDowngrade:
    case Operation::kRemove:
    case Operation::kRemoveXattr:
    case Operation::kRename:
    case Operation::kSetAttributes:
    case Operation::kSetXattr:
    case Operation::kWrite:
    case Operation::kLayoutCommit:
    case Operation::kLayoutReturn:
    case Operation::kLayoutGet:
    case Operation::kWantDelegation:
      return true;
    default:
      return false;
  }
}

// What asks for nobody's rights, and is too frequent to look up his groups.
bool judges_nobody(Operation operation) {
  switch (operation) {
    case Operation::kSequence:
    case Operation::kPutFileHandle:
    case Operation::kPutRootFileHandle:
    case Operation::kPutPublicFileHandle:
    case Operation::kGetFileHandle:
    case Operation::kSaveFileHandle:
    case Operation::kRestoreFileHandle:
    case Operation::kGetAttributes:
    case Operation::kClose:
    case Operation::kDelegationReturn:
    case Operation::kLayoutReturn:
      return true;
    default:
      return false;
  }
}

// Whose handler reads before it changes anything, so that it can be run again where a row is not in memory
// (request_reads.h). All others wait for the medium.
bool may_miss(Operation operation) {
  switch (operation) {
    case Operation::kAccess:
    case Operation::kAllocate:
    case Operation::kClone:
    case Operation::kCommit:
    case Operation::kCopy:
    case Operation::kCreate:
    case Operation::kDeallocate:
    case Operation::kGetAttributes:
    case Operation::kGetXattr:
    case Operation::kIoAdvise:
    case Operation::kLayoutCommit:
    case Operation::kLayoutError:
    case Operation::kLayoutGet:
    case Operation::kLayoutReturn:
    case Operation::kLayoutStatistics:
    case Operation::kLink:
    case Operation::kListXattrs:
    case Operation::kLock:
    case Operation::kLockTest:
    case Operation::kLookup:
    case Operation::kLookupParent:
    case Operation::kNegatedVerify:
    case Operation::kOpen:
    case Operation::kPutFileHandle:
    case Operation::kPutPublicFileHandle:
    case Operation::kPutRootFileHandle:
    case Operation::kRead:
    case Operation::kReadDirectory:
    case Operation::kReadLink:
    case Operation::kReadPlus:
    case Operation::kRemove:
    case Operation::kRemoveXattr:
    case Operation::kRename:
    case Operation::kSecurityInfo:
    case Operation::kSecurityInfoNoName:
    case Operation::kSeek:
    case Operation::kSequence:
    case Operation::kSetAttributes:
    case Operation::kSetXattr:
    case Operation::kUnlock:
    case Operation::kVerify:
    case Operation::kWantDelegation:
    case Operation::kWrite:
      return true;
    default:
      return false;
  }
}

// What the holder of a write delegation does with the file before he returns it (RFC 8881, 10.4.4).
bool comes_before_a_return(Operation operation) {
  switch (operation) {
    case Operation::kOpen:
    case Operation::kLock:
    case Operation::kWrite:
    case Operation::kCommit:
    case Operation::kSetAttributes:
    case Operation::kLayoutCommit:
      return true;
    default:
      return false;
  }
}

// What an answer may become, or take to make, that the client can be asked to fetch later (DELAY); 0: of all others,
// which are small or must not wait.
size_t large_answer(const nfs4::ArgumentOperation& arguments) {
  if (const auto* read = std::get_if<nfs4::ReadArguments>(&arguments)) return read->count;
  if (const auto* read = std::get_if<nfs4::ReadDirectoryArguments>(&arguments)) return read->max_count;
  // No answer, but a piece of the file is held at a time.
  if (std::holds_alternative<nfs4::CopyArguments>(arguments)) return FileCopy::kPieceBytes;
  return 0;
}

// Tells a retry from another request with the same slot and seqid (SEQ_FALSE_RETRY). Not against malice:
// FNV-1a over 64-bit words of the head, where operations and names are, and the length. About 130
// multiplications at most.
uint64_t hash_request(ByteSpan arguments, const Credentials& caller) {
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr size_t kBytesMax = 1024;
  uint64_t hash = 0xcbf29ce484222325 ^ arguments.size() ^ (uint64_t{caller.uid} << 32);
  const size_t end = std::min(arguments.size(), kBytesMax);
  for (size_t at = 0; at < end; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, arguments.data() + at, std::min(sizeof(word), end - at));
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace

Compound::Compound(Services& services, CompoundCall call, SendReply send, std::function<void(Compound&)> done)
    : call_(std::move(call)),
      send_(std::move(send)),
      done_(std::move(done)),
      context_(services, [this] { run(); }),
      self_(std::make_shared<Compound*>(this)) {}

Compound::~Compound() {
  hold(0);
  if (context_.client) --context_.client->running_compounds;
}

void Compound::run() {
  if (!reader_ && !begin()) return;
  Step step = Step::kGoOn;
  while (step == Step::kGoOn) step = run_operation();
  if (step == Step::kAnswered) return;  // and gone
  if (step == Step::kEnd) return finish();
  hold(std::max(held_, reply_->capacity()));
}

// The head of the call. False: it has been answered already.
bool Compound::begin() {
  auto reader = nfs4::CompoundReader::open(call_.arguments);
  if (!reader) {
    send(std::unexpected(CompoundRefusal(rpc::AcceptStatus::kGarbageArguments)));
    return false;
  }
  reader_ = std::move(*reader);
  ++context_.services.counters.compounds;
  context_.minor_version = reader_->minor_version();
  context_.caller_flavor = call_.flavor;
  context_.caller = std::move(call_.caller);
  context_.high_port = !call_.rdma && port_of(call_.peer) > kReservedPortLast;
  context_.peer = std::move(call_.peer);
  context_.connection = call_.connection;
  context_.request = {.bytes = static_cast<uint32_t>(call_.record.size()),
                      .operations = reader_->operation_count(),
                      .index = 0,
                      .hash = hash_request(call_.arguments, context_.caller)};
  context_.reply_bytes_max = static_cast<uint32_t>(rpc::kRecordBytesMax / 2);
  reply_ = std::make_shared<Bytes>();
  reply_->reserve(kReplyBytesUsual);
  writer_.emplace(*reply_, reader_->header().tag);
  if (context_.minor_version < kMinorVersionFirst || context_.minor_version > kMinorVersionLast) {
    writer_->set_status(Status::kMinorVersMismatch);
    finish();
    return false;
  }
  return true;
}

Compound::Step Compound::run_operation() {
  if (!item_) {
    if (reader_->left() == 0) return Step::kEnd;
    item_ = reader_->next();
    context_.request.index = writer_->count();
    if (!first_operation_) first_operation_ = item_->operation;
    if (const Step step = check_place(item_->operation); step != Step::kGoOn) return step;
    if (!item_->arguments) return add_status(item_->operation, item_->arguments.error());
    if (changes_something(item_->operation) && room() < kChangingResultBytes) {
      return add_status(item_->operation,
                        context_.keep_reply ? Status::kRepTooBigToCache : Status::kRepTooBig);
    }
    if (!find_room(*item_->arguments)) return add_status(item_->operation, Status::kDelay);
    ++context_.services.counters.operations[static_cast<size_t>(item_->operation)];
    run_begun_ = operation_begun_ = context_.services.clock.now();
  } else if (client_lost()) {
    return add_status(item_->operation, Status::kDeadSession);
  } else {
    run_begun_ = context_.services.clock.now();
  }
  context_.reply_room = room();
  context_.suspension.begin_run();
  if (const auto served = context_.check_port(); !served) return add_status(item_->operation, served.error());
  if (const auto good = context_.check_use(item_->operation); !good)
    return add_status(item_->operation, good.error());
  if (!judges_nobody(item_->operation)) {
    const auto known = context_.find_groups();
    if (!known && known.error() == kSuspended) return Step::kWait;
    if (!known) return add_status(item_->operation, known.error());
  }
  const nfs4::ResultOperation result = run_handler();
  const SteadyTime now = context_.services.clock.now();
  context_.services.turns.step(nfs4::to_string(item_->operation), context_.client_id(), now - run_begun_);
  if (nfs4::status_of(result) == kSuspended) return Step::kWait;
  context_.suspension.next_operation();
  context_.reads.clear();
  context_.count({.operations = 1});
  context_.services.counters.latency[static_cast<size_t>(item_->operation)].add(now - operation_begun_);
  if (context_.replay && context_.kept_reply) return Step::kEnd;
  if (comes_before_a_return(item_->operation) && nfs4::status_of(result) == Status::kOk)
    context_.services.delegations.at_work(context_.client_id(), context_.current.handle->inode);
  return add_result(item_->operation, result);
}

// kSuspended: it waits, and this is run again.
nfs4::ResultOperation Compound::run_handler() {
  Handlers handlers;
  const auto handle = [&]() -> nfs4::ResultOperation {
    const auto done = answer_as_done(context_, *item_->arguments);
    return done ? *done : nfs4::dispatch(handlers, *item_->arguments, context_);
  };
  const Operation operation = item_->operation;
  if (!may_miss(operation)) return handle();
  const CurrentObject current = context_.current;
  const CurrentObject saved = context_.saved;
  const auto verified = context_.verified;
  const RequestReads::Run reading(context_.reads);
  nfs4::ResultOperation result = handle();
  if (context_.reads.missed()) {
    // Whatever it says: it may have taken for absent what is only not read yet.
    context_.current = current;
    context_.saved = saved;
    context_.verified = verified;
    context_.reads.fetch([this] { run(); });
    result = nfs4::status_result(operation, kSuspended);
  }
  return result;
}

// SEQUENCE comes first, and nothing else without it (RFC 8881, 2.10.2.1).
Compound::Step Compound::check_place(Operation operation) {
  if (operation == Operation::kIllegal) {
    ++context_.services.counters.illegal_operations;
    return add_status(operation, Status::kOpIllegal);
  }
  if ((operation == Operation::kExchangeId || operation == Operation::kCreateSession) &&
      !context_.services.exports.root(context_.peer_host())) {
    return refuse_stranger(operation);
  }
  if (context_.request.index != 0 || operation == Operation::kSequence) return Step::kGoOn;
  if (!may_be_sessionless(operation)) return add_status(operation, Status::kOpNotInSession);
  if (context_.request.operations != 1) return add_status(operation, Status::kNotOnlyOp);
  return Step::kGoOn;
}

// False: peers hold too much memory already for such an answer.
bool Compound::find_room(const nfs4::ArgumentOperation& arguments) {
  const size_t bytes = std::min<size_t>(large_answer(arguments), room());
  if (bytes == 0) return true;
  if (const auto connection = call_.connection.lock(); connection && !connection->has_room(bytes))
    return false;
  hold(held_ + bytes);
  return true;
}

void Compound::hold(size_t bytes) {
  if (bytes == held_) return;
  const auto more = static_cast<ptrdiff_t>(bytes) - static_cast<ptrdiff_t>(held_);
  held_ = bytes;
  if (const auto connection = call_.connection.lock()) connection->hold_more(more);
}

// A host that no export admits makes no client and no session: each costs memory and a record. Neither
// operation may answer ACCESS (RFC 8881, 15.2), so the RPC itself is denied, as one with a credential that is
// good for nothing here (RFC 5531, 8.2); the Linux client calls that "access denied". Behind a SEQUENCE,
// which has to be answered, with what these operations may say.
Compound::Step Compound::refuse_stranger(Operation operation) {
  if (context_.request.index != 0)
    return add_status(operation,
                      operation == Operation::kExchangeId ? Status::kPerm : Status::kStaleClientId);
  ++context_.services.counters.errors[static_cast<size_t>(operation)];
  send(std::unexpected(CompoundRefusal(rpc::AuthStatus::kTooWeak)));
  return Step::kAnswered;
}

bool Compound::client_lost() const {
  return context_.client && context_.client->gone;
}

// What is left for the body of the next result.
uint32_t Compound::room() const {
  const size_t used = writer_->size() + kResultHeaderBytes;
  return used < context_.reply_bytes_max ? context_.reply_bytes_max - static_cast<uint32_t>(used) : 0;
}

Compound::Step Compound::add_result(Operation operation, const nfs4::ResultOperation& result) {
  writer_->add(result);
  if (writer_->size() > context_.reply_bytes_max) {
    writer_->drop_last();
    return add_status(operation, context_.keep_reply ? Status::kRepTooBigToCache : Status::kRepTooBig);
  }
  item_.reset();
  if (context_.replay) return Step::kEnd;
  if (nfs4::status_of(result) == Status::kOk) return Step::kGoOn;
  ++context_.services.counters.errors[static_cast<size_t>(operation)];
  return Step::kEnd;
}

Compound::Step Compound::add_status(Operation operation, Status status) {
  if (operation != Operation::kIllegal) ++context_.services.counters.errors[static_cast<size_t>(operation)];
  writer_->add(nfs4::status_result(operation, status));
  context_.suspension.next_operation();
  context_.reads.clear();
  item_.reset();
  return Step::kEnd;
}

void Compound::finish() {
  if (context_.replay) return replay();
  send_when_durable();
}

// A retry. Where the reply was not kept, SEQUENCE has been answered anew and the operation behind it says so
// (RFC 8881, 2.10.6.1.3).
void Compound::replay() {
  if (context_.kept_reply) return send(std::move(context_.kept_reply));
  if (reader_->left() > 0) {
    const auto next = reader_->next();
    writer_->add(nfs4::status_result(next.operation, Status::kRetryUncachedRep));
  }
  send(std::move(reply_));
}

// A reply, a read-only one too, may have seen the newest batch of the namespace: it waits until that is
// synced. Most find it so already.
void Compound::send_when_durable() {
  KeyValueStore& store = context_.services.store;
  const Sequence seen = store.last_namespace_sequence();
  const Sequence told = store.last_sequence();
  if (seen <= store.synced_sequence()) return send_when_written(told);
  hold(reply_->capacity());
  store.when_synced(seen, [self = std::weak_ptr(self_), told] {
    if (const auto live = self.lock()) (*live)->send_when_written(told);
  });
}

// Opens, locks and the like need not be synced, but what a client has been told must survive the daemon.
void Compound::send_when_written(Sequence told) {
  KeyValueStore& store = context_.services.store;
  if (store.written(told)) return send_now();
  hold(reply_->capacity());
  store.when_written([self = std::weak_ptr(self_)] {
    if (const auto live = self.lock()) (*live)->send_now();
  });
}

void Compound::send_now() {
  std::shared_ptr<const Bytes> reply = std::move(reply_);
  if (context_.session) {
    context_.session->slots().finish(context_.slot, context_.keep_reply ? reply : nullptr);
  }
  send(std::move(reply));
}

void Compound::send(CompoundReply reply) {
  // The lease counts from the reply: a long wait must not use it up.
  if (context_.client && !context_.client->gone) context_.services.clients.renew(*context_.client);
  hold(0);
  std::exchange(send_, nullptr)(std::move(reply));
  const auto done = std::move(done_);
  done(*this);
}

void Compound::refuse() {
  // Not even that of SEQUENCE is left: whoever sees the reply must not take the slot for used.
  reply_ = std::make_shared<Bytes>();
  writer_.emplace(*reply_, reader_->header().tag);
  if (first_operation_) writer_->add(nfs4::status_result(*first_operation_, Status::kServerFault));
  writer_->set_status(Status::kServerFault);
  send(std::move(reply_));
}

void Compounds::refuse_all() {
  while (!running_.empty()) running_.begin()->second->refuse();
}

void Compounds::start(CompoundCall call, SendReply send) {
  auto compound = std::make_unique<Compound>(services_, std::move(call), std::move(send),
                                             [this](Compound& done) { running_.erase(&done); });
  Compound& started = *compound;
  running_.emplace(&started, std::move(compound));
  started.run();
}

}  // namespace pnfsrdma::mds
