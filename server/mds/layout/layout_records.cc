// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_records.h"

#include <optional>
#include <string>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/records.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {

namespace {

constexpr std::string_view kRunName = "layouts";  // the last run that kept records
// A file with more of them is one that is read here and there: its layout is void at a restart.
constexpr size_t kHolesMax = 64;
constexpr size_t kForgottenPerBatch = 1024;

struct HoleRecord {
  uint64_t begin = 0;
  uint64_t end = 0;
};
struct LayoutRecord {
  static constexpr uint32_t kVersion = 1;
  uint32_t version = kVersion;
  StateidOther other{};
  uint32_t seqid = 0;
  uint32_t newest_recall = 0;
  uint64_t end_token = 0;
  uint32_t export_id = 0;
  uint64_t generation = 0;
  bool old_handle = false;
  bool all_holes = true;
  xdr::List<HoleRecord, kHolesMax> holes;
};
struct GrantRecord {
  static constexpr uint32_t kVersion = 2;  // 1 had no stateid; its layout is void
  uint32_t version = kVersion;
  StateidOther other{};  // of the layout: an earlier one's may not be erased yet
  uint64_t file_offset = 0;
  uint64_t length = 0;
  bool writable = false;
  bool whole = true;  // false: the client has returned a part of it
};

// In the order of keys a layout's record comes before those of its grants.
std::string key_of(uint64_t inode, uint64_t client) {
  std::byte key[16];
  store_big_endian(key, inode);
  store_big_endian(key + 8, client);
  return std::string(as_text(key));
}
std::string key_of(uint64_t inode, uint64_t client, const HeldGrant& grant) {
  std::byte key[16];
  store_big_endian(key, grant.logical);
  store_big_endian(key + 8, grant.grant);
  return key_of(inode, client).append(as_text(key));
}
uint64_t number_at(std::string_view key, size_t at) {
  return load_big_endian<uint64_t>(as_bytes(key.substr(at, 8)).data());
}

void put(Batch& batch, const HeldLayout& layout) {
  LayoutRecord record{.other = layout.stateid().other,
                      .seqid = layout.stateid().seqid,
                      .newest_recall = layout.newest_recall(),
                      .end_token = layout.end_token(),
                      .export_id = layout.export_id(),
                      .generation = layout.generation(),
                      .old_handle = layout.old_handle(),
                      .all_holes = true,
                      .holes = {}};
  for (const ByteRange& hole : layout.holes().within({0, kEndOfFile}, kHolesMax + 1)) {
    record.all_holes = record.holes.size() < kHolesMax;
    if (!record.all_holes) break;
    record.holes.push_back({hole.begin, hole.end});
  }
  Records::put(batch, RecordKind::kHeldLayout, key_of(layout.inode(), layout.client()),
               as_text(xdr::encode_to_bytes(record)));
}

void put(Batch& batch, const HeldLayout& layout, const HeldGrant& grant) {
  const GrantRecord record{.other = layout.stateid().other,
                           .file_offset = grant.file.begin,
                           .length = grant.file.length(),
                           .writable = grant.writable,
                           .whole = grant.held.contains(grant.file)};
  Records::put(batch, RecordKind::kHeldLayout, key_of(layout.inode(), layout.client(), grant),
               as_text(xdr::encode_to_bytes(record)));
}

void erase(Batch& batch, uint64_t inode, uint64_t client, std::span<const HeldGrant> grants) {
  for (const HeldGrant& grant : grants)
    Records::erase(batch, RecordKind::kHeldLayout, key_of(inode, client, grant));
}

template <typename Record>
std::optional<Record> read(std::string_view value) {
  auto record = xdr::decode_from<Record>(as_bytes(value));
  if (!record || record->version != Record::kVersion) return std::nullopt;
  return *std::move(record);
}

std::optional<RecordedLayout> layout_of(std::string_view key, std::string_view value) {
  const auto record = read<LayoutRecord>(value);
  if (!record) return std::nullopt;
  RecordedLayout layout{.inode = number_at(key, 0),
                        .client = number_at(key, 8),
                        .other = record->other,
                        .seqid = record->seqid,
                        .newest_recall = record->newest_recall,
                        .end_token = record->end_token,
                        .export_id = static_cast<uint16_t>(record->export_id),
                        .generation = record->generation,
                        .old_handle = record->old_handle,
                        .complete = record->all_holes,
                        .holes = {},
                        .grants = {}};
  for (const HoleRecord& hole : record->holes) layout.holes.push_back({hole.begin, hole.end});
  return layout;
}

// False: it is of another layout, which has ended.
bool add_grant(RecordedLayout& layout, std::string_view key, std::string_view value) {
  const auto record = read<GrantRecord>(value);
  if (record && record->other != layout.other) return false;
  if (!record || record->length == 0 || record->length > kEndOfFile - record->file_offset) {
    layout.complete = false;
    return true;
  }
  HeldGrant grant{.grant = number_at(key, 24),
                  .file = {record->file_offset, record->file_offset + record->length},
                  .logical = number_at(key, 16),
                  .writable = record->writable,
                  .held = {},
                  .confirmed = false};
  layout.grants.push_back(std::move(grant));
  layout.complete = layout.complete && record->whole;
  return true;
}

// The edges of what was returned, between which a grant dies as a whole.
std::vector<ByteRange> edges(const ByteRange& range) {
  return {{range.begin, range.begin + 1}, {range.end - 1, range.end}};
}

}  // namespace

bool LayoutRecords::commit(const Batch& batch) {
  const auto committed = store_.commit(batch, CommitKind::kState);
  if (!committed) log_warning("layouts", "layout-not-recorded error=\"{}\"", committed.error().to_string());
  return committed.has_value();
}

bool LayoutRecords::told(const HeldLayout& layout, std::span<const HeldGrant> grants) {
  Batch batch;
  put(batch, layout);
  for (const HeldGrant& grant : grants) {
    // Null: given back before the answer was ready.
    if (const HeldGrant* const held = layout.find(grant)) put(batch, layout, *held);
  }
  return commit(batch);
}

bool LayoutRecords::changed(const HeldLayout& layout) {
  Batch batch;
  put(batch, layout);
  return commit(batch);
}

void LayoutRecords::given_back(const HeldLayout& layout, const ByteRange& range,
                               std::span<const HeldGrant> dead) {
  Batch batch;
  erase(batch, layout.inode(), layout.client(), dead);
  if (layout.empty()) {
    Records::erase(batch, RecordKind::kHeldLayout, key_of(layout.inode(), layout.client()));
  } else {
    put(batch, layout);
  }
  for (const ByteRange& edge : edges(range)) {
    for (const HeldGrant* grant : layout.grants_in(edge)) {
      if (!grant->held.contains(grant->file)) put(batch, layout, *grant);
    }
  }
  commit(batch);
}

void LayoutRecords::withdrawn(uint64_t inode, uint64_t client, std::span<const HeldGrant> dead) {
  Batch batch;
  erase(batch, inode, client, dead);
  commit(batch);
}

void LayoutRecords::gone(const HeldLayout& layout, std::span<const HeldGrant> dead) {
  Batch batch;
  erase(batch, layout.inode(), layout.client(), dead);
  Records::erase(batch, RecordKind::kHeldLayout, key_of(layout.inode(), layout.client()));
  commit(batch);
}

void LayoutRecords::forget(const RecordedLayout& layout) {
  Batch batch;
  erase(batch, layout.inode, layout.client, layout.grants);
  Records::erase(batch, RecordKind::kHeldLayout, key_of(layout.inode, layout.client));
  commit(batch);
}

Result<LayoutRecords::Loaded> LayoutRecords::load(uint64_t run) {
  TRY_ASSIGN(const std::optional<std::string> before, store_.get(meta_key(kRunName)));
  Loaded loaded;
  if (before) {
    TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*before, "the run that kept layouts"));
    loaded.believed = number.number + 1 == run;
  }
  std::vector<std::string> strange;
  const auto visit = [&](std::string_view key, std::string_view value) {
    RecordedLayout* const last = loaded.layouts.empty() ? nullptr : &loaded.layouts.back();
    if (loaded.believed && key.size() == 16) {
      if (auto layout = layout_of(key, value)) {
        loaded.layouts.push_back(*std::move(layout));
        return true;
      }
    } else if (loaded.believed && key.size() == 32 && last != nullptr && last->inode == number_at(key, 0) &&
               last->client == number_at(key, 8) && add_grant(*last, key, value)) {
      return true;
    }
    strange.emplace_back(key);
    return true;
  };
  TRY(Records(store_).scan(RecordKind::kHeldLayout, visit));
  Batch batch;
  for (const std::string& key : strange) {
    Records::erase(batch, RecordKind::kHeldLayout, key);
    if (batch.size() < kForgottenPerBatch) continue;
    TRY(store_.commit(std::exchange(batch, {}), CommitKind::kState));
  }
  put_value(batch, meta_key(kRunName), StoredNumber{run});
  TRY(store_.commit(batch, CommitKind::kState));
  return loaded;
}

}  // namespace pnfsrdma::mds
