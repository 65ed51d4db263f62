// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/records.h"

#include "server/mds/meta/keys.h"

namespace pnfsrdma::mds {
namespace {

constexpr size_t kKeyAt = 2;  // behind tag and kind

std::string key_of(RecordKind kind, std::string_view key) {
  return record_key(static_cast<uint8_t>(kind), key);
}

}  // namespace

std::string Records::key(RecordKind kind, std::string_view key) {
  return key_of(kind, key);
}

void Records::put(Batch& batch, RecordKind kind, std::string_view key, std::string_view value) {
  batch.put(key_of(kind, key), value);
}

void Records::erase(Batch& batch, RecordKind kind, std::string_view key) {
  batch.erase(key_of(kind, key));
}

Result<> Records::put(RecordKind kind, std::string_view key, std::string_view value) {
  Batch batch;
  put(batch, kind, key, value);
  TRY(store_.commit(batch, CommitKind::kState));
  return {};
}

Result<> Records::erase(RecordKind kind, std::string_view key) {
  Batch batch;
  erase(batch, kind, key);
  TRY(store_.commit(batch, CommitKind::kState));
  return {};
}

Result<std::optional<std::string>> Records::get(RecordKind kind, std::string_view key) {
  return store_.get(key_of(kind, key));
}

Result<> Records::scan(RecordKind kind,
                       const std::function<bool(std::string_view key, std::string_view value)>& visitor) {
  return store_.scan(key_of(kind, {}), {}, [&](std::string_view key, std::string_view value) {
    return visitor(key.substr(kKeyAt), value);
  });
}

Result<> Records::clear(RecordKind kind) {
  Batch batch;
  TRY(scan(kind, [&](std::string_view key, std::string_view) {
    erase(batch, kind, key);
    return true;
  }));
  if (!batch.empty()) TRY(store_.commit(batch, CommitKind::kState));
  return {};
}

}  // namespace pnfsrdma::mds
