// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/done_record.h"

#include <algorithm>
#include <string>

#include "shared/base/bytes.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {
namespace {

// The second version has the open.
inline constexpr uint32_t kRecordVersion = 1;
inline constexpr uint32_t kOpenRecordVersion = 2;

// What the key (session, slot) does not say.
struct StoredDone {
  uint32_t version = kRecordVersion;
  uint32_t seqid = 0;
  uint32_t operation = 0;
  uint64_t request_hash = 0;
};
struct StoredOpenDone {
  StoredDone done;
  StateidOther open{};
};

std::string key_of(const SessionId& session, uint32_t slot) {
  std::string key(as_text(session));
  key.resize(session.size() + sizeof(slot));
  store_big_endian(reinterpret_cast<std::byte*>(key.data() + session.size()), slot);
  return key;
}

std::optional<SessionId> session_of(std::string_view key) {
  SessionId session{};
  if (key.size() != session.size() + sizeof(uint32_t)) return std::nullopt;
  std::ranges::copy(as_bytes(key.substr(0, session.size())), session.begin());
  return session;
}

}  // namespace

void DoneRecords::put(Batch& batch, const DoneRecord& record) {
  StoredOpenDone stored{
      .done = {.seqid = record.seqid, .operation = record.operation, .request_hash = record.request_hash},
      .open = record.open};
  const bool opens = record.open != StateidOther();
  if (opens) stored.done.version = kOpenRecordVersion;
  const Bytes value = opens ? xdr::encode_to_bytes(stored) : xdr::encode_to_bytes(stored.done);
  Records::put(batch, RecordKind::kDone, key_of(record.session, record.slot), as_text(value));
}

Outcome<std::optional<DoneRecord>> DoneRecords::find(const SessionId& session, uint32_t slot) {
  const auto stored = records_.get(RecordKind::kDone, key_of(session, slot));
  if (!stored) return std::unexpected(status_of(stored.error()));
  if (!*stored) return std::nullopt;
  StoredOpenDone found;
  if (const auto opened = xdr::decode_from<StoredOpenDone>(as_bytes(**stored))) {
    if (opened->done.version != kOpenRecordVersion) return std::nullopt;
    found = *opened;
  } else {
    const auto done = xdr::decode_from<StoredDone>(as_bytes(**stored));
    if (!done || done->version != kRecordVersion) return std::nullopt;
    found.done = *done;
  }
  return DoneRecord{.session = session,
                    .slot = slot,
                    .seqid = found.done.seqid,
                    .operation = found.done.operation,
                    .request_hash = found.done.request_hash,
                    .open = found.open};
}

Outcome<Batch> DoneRecords::of_session(const SessionId& session) {
  Batch batch;
  const std::string prefix = Records::key(RecordKind::kDone, as_text(session));
  const auto scanned = store_.scan(prefix, {}, [&](std::string_view key, std::string_view) {
    batch.erase(key);
    return true;
  });
  if (!scanned) return std::unexpected(status_of(scanned.error()));
  return batch;
}

Outcome<DoneRecords::Earlier> DoneRecords::earlier(const std::function<bool(const SessionId&)>& alive,
                                                   const std::string& from, size_t most) {
  Earlier found;
  size_t seen = 0;
  const std::string prefix = Records::key(RecordKind::kDone, {});
  const auto scanned = store_.scan(prefix, from, [&](std::string_view key, std::string_view) {
    if (seen++ == most) {
      found.next = key;
      return false;
    }
    const auto session = session_of(key.substr(prefix.size()));
    if (!session || !alive(*session)) found.dead.erase(key);
    return true;
  });
  if (!scanned) return std::unexpected(status_of(scanned.error()));
  return found;
}

Outcome<> DoneRecords::forget(const Batch& records) {
  if (records.empty()) return {};
  const auto committed = store_.commit(records, CommitKind::kState);
  if (!committed) return std::unexpected(status_of(committed.error()));
  return {};
}

}  // namespace pnfsrdma::mds
