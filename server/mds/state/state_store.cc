// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/state_store.h"

#include <cerrno>
#include <set>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"
#include "server/mds/state/server_limits.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {

namespace {

inline constexpr uint32_t kRecordVersion = 1;
constexpr std::string_view kGraceName = "grace";  // there while it runs

struct ClientRecord {
  uint32_t version = kRecordVersion;
  uint64_t id = 0;
  xdr::Opaque<1024> owner;
  xdr::FixedOpaque<8> verifier{};
  uint32_t flavor = 0;
  uint32_t uid = 0;
  bool reclaim_complete = false;
  uint32_t create_sequence = 0;
};

struct OpenRecord {
  uint32_t version = kRecordVersion;
  StateidOther other{};
  uint32_t seqid = 0;
  uint64_t client = 0;
  uint64_t inode = 0;
  xdr::Opaque<1024> owner;
  uint32_t access = 0;
  uint32_t deny = 0;
  uint32_t combinations = 0;
};

struct RangeRecord {
  uint64_t first = 0;
  uint64_t last = 0;
  bool exclusive = false;
};
struct LockRecord {
  uint32_t version = kRecordVersion;
  StateidOther other{};
  uint32_t seqid = 0;
  uint64_t client = 0;
  uint64_t inode = 0;
  xdr::Opaque<1024> owner;
  StateidOther open{};
  xdr::List<RangeRecord, kLockRangesMax> ranges;
};

struct DelegationRecord {
  uint32_t version = kRecordVersion;
  StateidOther other{};
  uint64_t client = 0;
  uint64_t inode = 0;
  nfs4::FileHandle handle;
  uint32_t flags = 0;
};
// Its flags. Versions that knew read delegations only had a bool there: whether it was revoked. The first ones that
// knew others, too, put them there.
constexpr uint32_t kRevokedFlag = 1;
constexpr uint32_t kWriteFlag = 2;
// Of one to write that is in the kind of its own.
constexpr uint32_t kTimesFlag = 4;

struct WriteDelegationRecord {
  DelegationRecord base;  // kRevokedFlag, kTimesFlag
  bool has_change = false;
  uint64_t change = 0;  // DelegationState::change_told
};

std::string client_key(ClientId id) {
  std::string key(sizeof(id), '\0');
  store_big_endian(reinterpret_cast<std::byte*>(key.data()), id);
  return key;
}
std::string_view open_key(const OpenState& open) {
  return as_text(open.other);
}
std::string_view lock_key(const LockState& lock) {
  return as_text(lock.other);
}
std::string_view delegation_key(const DelegationState& delegation) {
  return as_text(delegation.other);
}

// In whichever kind it is.
void erase_delegation(Batch& batch, const DelegationState& delegation) {
  Records::erase(batch, RecordKind::kDelegation, delegation_key(delegation));
  if (delegation.kind == DelegationKind::kWrite)
    Records::erase(batch, RecordKind::kWriteDelegation, delegation_key(delegation));
}

void mark(Batch& batch, ClientId client) {
  Records::erase(batch, RecordKind::kClient, client_key(client));
  Records::put(batch, RecordKind::kExpiring, client_key(client), "");
}

Outcome<> outcome(const Result<>& result) {
  if (!result) return std::unexpected(status_of(result.error()));
  return {};
}

template <typename Record>
uint32_t version_of(const Record& record) {
  return record.version;
}
uint32_t version_of(const WriteDelegationRecord& record) {
  return record.base.version;
}

template <typename Record>
Result<Record> read_record(std::string_view value) {
  auto record = xdr::decode_from<Record>(as_bytes(value));
  if (!record || version_of(*record) != kRecordVersion) return fail(EUCLEAN, "a state record cannot be read");
  return std::move(*record);
}

// Each record of a kind; the first that cannot be read ends it.
template <typename Record, typename Take>
Result<> each_record(Records& records, RecordKind kind, Take take) {
  Result<> read;
  TRY(records.scan(kind, [&](std::string_view, std::string_view value) {
    const auto record = read_record<Record>(value);
    if (!record) read = std::unexpected(record.error());
    if (record) take(*record);
    return read.has_value();
  }));
  return read;
}

// In a record's flavor, which is 0 or 1: it came from a reserved port. Clear in those of before.
constexpr uint32_t kReservedPort = uint32_t{1} << 31;

Client client_of(const ClientRecord& record) {
  Client client;
  client.id = record.id;
  client.owner = record.owner;
  client.verifier = record.verifier;
  client.principal = {.flavor = record.flavor & ~kReservedPort,
                      .uid = record.uid,
                      .reserved_port = (record.flavor & kReservedPort) != 0};
  client.confirmed = true;
  client.reclaim_complete = record.reclaim_complete;
  client.create_sequence = record.create_sequence;
  return client;
}

OpenState open_of(const OpenRecord& record) {
  OpenState open;
  open.other = record.other;
  open.seqid = record.seqid;
  open.client = record.client;
  open.inode = record.inode;
  open.owner = record.owner;
  open.access = record.access;
  open.deny = record.deny;
  open.combinations = static_cast<uint16_t>(record.combinations);
  return open;
}

LockState lock_of(const LockRecord& record) {
  LockState lock;
  lock.other = record.other;
  lock.seqid = record.seqid;
  lock.client = record.client;
  lock.inode = record.inode;
  lock.owner = record.owner;
  lock.open = record.open;
  for (const RangeRecord& range : record.ranges) {
    lock.ranges.lock({range.first, range.last, range.exclusive});
  }
  return lock;
}

DelegationState delegation_of(const DelegationRecord& record) {
  return {.other = record.other,
          .client = record.client,
          .inode = record.inode,
          .kind = (record.flags & kWriteFlag) != 0 ? DelegationKind::kWrite : DelegationKind::kRead,
          .handle = record.handle,
          .revoked = (record.flags & kRevokedFlag) != 0,
          .change_told = {},
          .keeps_times = true};
}

}  // namespace

Outcome<> StateStore::put(const Client& client) {
  const ClientRecord record{
      .id = client.id,
      .owner = client.owner,
      .verifier = client.verifier,
      .flavor = client.principal.flavor | (client.principal.reserved_port ? kReservedPort : 0),
      .uid = client.principal.uid,
      .reclaim_complete = client.reclaim_complete,
      .create_sequence = client.create_sequence};
  const Bytes value = xdr::encode_to_bytes(record);
  Batch batch;
  for (const ClientId kept : kept_) mark(batch, kept);
  Records::put(batch, RecordKind::kClient, client_key(client.id), as_text(value));
  TRY(commit(batch));
  kept_.clear();
  return {};
}

Outcome<> StateStore::put(const OpenState& open) {
  Batch batch;
  put(batch, open);
  return commit(batch);
}

void StateStore::put(Batch& batch, const OpenState& open) {
  const OpenRecord record{.other = open.other,
                          .seqid = open.seqid,
                          .client = open.client,
                          .inode = open.inode,
                          .owner = open.owner,
                          .access = open.access,
                          .deny = open.deny,
                          .combinations = open.combinations};
  const Bytes value = xdr::encode_to_bytes(record);
  Records::put(batch, RecordKind::kOpen, open_key(open), as_text(value));
}

Outcome<> StateStore::put(const LockState& lock) {
  LockRecord record{.other = lock.other,
                    .seqid = lock.seqid,
                    .client = lock.client,
                    .inode = lock.inode,
                    .owner = lock.owner,
                    .open = lock.open,
                    .ranges = {}};
  for (const nfs4::LockRange& range : lock.ranges.all()) {
    record.ranges.push_back({range.first, range.last, range.exclusive});
  }
  const Bytes value = xdr::encode_to_bytes(record);
  return outcome(records_.put(RecordKind::kLock, lock_key(lock), as_text(value)));
}

Outcome<> StateStore::put(const DelegationState& delegation) {
  DelegationRecord record{.other = delegation.other,
                          .client = delegation.client,
                          .inode = delegation.inode,
                          .handle = delegation.handle,
                          .flags = delegation.revoked ? kRevokedFlag : 0};
  Batch batch;
  // One that is in the other kind still, as some versions put it there, goes over to its own.
  if (delegation.kind == DelegationKind::kWrite) {
    erase_delegation(batch, delegation);
    if (delegation.keeps_times) record.flags |= kTimesFlag;
    const Bytes value =
        xdr::encode_to_bytes(WriteDelegationRecord{.base = record,
                                                   .has_change = delegation.change_told.has_value(),
                                                   .change = delegation.change_told.value_or(0)});
    Records::put(batch, RecordKind::kWriteDelegation, delegation_key(delegation), as_text(value));
  } else {
    const Bytes value = xdr::encode_to_bytes(record);
    Records::put(batch, RecordKind::kDelegation, delegation_key(delegation), as_text(value));
  }
  // Whoever has the file behind a revocation is answered when that is durable: the holder must not reclaim it, and with
  // it his locks, when the host has lost its power. And he must be able to reclaim one to write as soon as he has it:
  // what he locks and writes under it is known to nobody else.
  const bool is_to_be_durable = delegation.revoked || delegation.kind == DelegationKind::kWrite;
  return commit(batch, is_to_be_durable ? CommitKind::kNamespace : CommitKind::kState);
}

Outcome<> StateStore::erase(const DelegationState& delegation) {
  Batch batch;
  erase_delegation(batch, delegation);
  return commit(batch);
}

Outcome<> StateStore::erase(const LockState& lock) {
  return outcome(records_.erase(RecordKind::kLock, lock_key(lock)));
}

Outcome<> StateStore::erase(const std::vector<LockState*>& locks) {
  Batch batch;
  for (const LockState* lock : locks) Records::erase(batch, RecordKind::kLock, lock_key(*lock));
  return commit(batch);
}

Outcome<> StateStore::erase(const OpenState& open, const std::vector<LockState*>& locks) {
  Batch batch;
  for (const LockState* lock : locks) Records::erase(batch, RecordKind::kLock, lock_key(*lock));
  Records::erase(batch, RecordKind::kOpen, open_key(open));
  return commit(batch);
}

Outcome<> StateStore::mark_expiring(ClientId client) {
  Batch batch;
  mark(batch, client);
  return commit(batch);
}

Outcome<> StateStore::erase(ClientId client, const Part& part, bool last) {
  Batch batch;
  for (const DelegationState* delegation : part.delegations) erase_delegation(batch, *delegation);
  for (const LockState* lock : part.locks) Records::erase(batch, RecordKind::kLock, lock_key(*lock));
  for (const OpenState* open : part.opens) Records::erase(batch, RecordKind::kOpen, open_key(*open));
  if (last) {
    Records::erase(batch, RecordKind::kClient, client_key(client));
    Records::erase(batch, RecordKind::kExpiring, client_key(client));
  }
  return commit(batch);
}

Outcome<> StateStore::commit(Batch& batch, CommitKind kind) {
  const auto committed = store_.commit(batch, kind);
  if (!committed) return std::unexpected(status_of(committed.error()));
  return {};
}

Result<> StateStore::forget_opens() {
  TRY(records_.clear(RecordKind::kLock));
  TRY(records_.clear(RecordKind::kOpen));
  TRY(records_.clear(RecordKind::kDelegation));
  TRY(records_.clear(RecordKind::kWriteDelegation));
  return records_.clear(RecordKind::kExpiring);
}

Result<> StateStore::note_grace() {
  Batch batch;
  put_value(batch, meta_key(kGraceName), StoredNumber{1});
  TRY(store_.commit(batch, CommitKind::kState));
  return {};
}

Result<> StateStore::end_grace(const std::vector<ClientId>& clients) {
  Batch batch;
  for (const ClientId client : clients) Records::erase(batch, RecordKind::kClient, client_key(client));
  batch.erase(meta_key(kGraceName));
  TRY(store_.commit(batch, CommitKind::kState));
  return {};
}

Result<bool> StateStore::in_grace() {
  TRY_ASSIGN(const std::optional<std::string> noted, store_.get(meta_key(kGraceName)));
  return noted.has_value();
}

Result<StateStore::Loaded> StateStore::load() {
  Loaded loaded;
  std::set<ClientId> clients;
  TRY(each_record<ClientRecord>(records_, RecordKind::kClient, [&](const ClientRecord& record) {
    clients.insert(record.id);
    loaded.clients.push_back(client_of(record));
  }));
  TRY(records_.scan(RecordKind::kExpiring, [&](std::string_view key, std::string_view) {
    if (key.size() != sizeof(ClientId)) return true;
    const ClientId id = load_big_endian<ClientId>(as_bytes(key).data());
    clients.insert(id);
    loaded.expiring.push_back(id);
    return true;
  }));
  std::set<StateidOther> opens;
  TRY(each_record<OpenRecord>(records_, RecordKind::kOpen, [&](const OpenRecord& record) {
    if (!clients.contains(record.client)) return;
    opens.insert(record.other);
    loaded.opens.push_back(open_of(record));
  }));
  TRY(each_record<LockRecord>(records_, RecordKind::kLock, [&](const LockRecord& record) {
    if (opens.contains(record.open)) loaded.locks.push_back(lock_of(record));
  }));
  TRY(each_record<DelegationRecord>(records_, RecordKind::kDelegation, [&](const DelegationRecord& record) {
    if (clients.contains(record.client)) loaded.delegations.push_back(delegation_of(record));
  }));
  const auto take = [&](const WriteDelegationRecord& record) {
    if (!clients.contains(record.base.client)) return;
    DelegationState state = delegation_of(record.base);
    state.kind = DelegationKind::kWrite;
    state.keeps_times = (record.base.flags & kTimesFlag) != 0;
    if (record.has_change) state.change_told = record.change;
    loaded.delegations.push_back(std::move(state));
  };
  TRY(each_record<WriteDelegationRecord>(records_, RecordKind::kWriteDelegation, take));
  return loaded;
}

}  // namespace pnfsrdma::mds
