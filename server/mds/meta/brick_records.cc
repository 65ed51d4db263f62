// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/brick_records.h"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kNextBrick = "next-brick";
constexpr std::string_view kNextZone = "next-zone";
constexpr std::string_view kVerifierChanges = "verifier-changes";

struct StoredVerifier {
  BrickVerifier verifier{};
};

std::string verifier_key(BrickNumber number) {
  return meta_key("verifier." + std::to_string(number));
}

// A record of its own: programs that know no names leave it alone.
struct StoredName {
  xdr::String<BrickRecords::kNameBytesMax> name;
};

std::string name_key(BrickNumber number) {
  return meta_key("brick-name." + std::to_string(number));
}

// Likewise. Its presence says it.
std::string tls_key(BrickNumber number) {
  return meta_key("brick-tls." + std::to_string(number));
}

// What the key (number) does not say.
struct StoredBrick {
  BrickUuid uuid{};
  xdr::String<BrickRecords::kAddressBytesMax> address;
  uint64_t block_count = 0;
  uint32_t durability = 0;
  bool configured = false;
  bool leaving = false;
  xdr::List<uint32_t, kZonesMax> zones;
};

BrickRecord record_of(BrickNumber number, const StoredBrick& stored) {
  return {.number = number,
          .uuid = stored.uuid,
          .address = stored.address,
          .block_count = stored.block_count,
          .durability = stored.durability,
          .configured = stored.configured,
          .leaving = stored.leaving,
          .zones = stored.zones};
}

}  // namespace

std::string uuid_text(const BrickUuid& uuid) {
  std::string text = to_hex(uuid);
  for (const size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

std::string address_counter_key(BrickNumber number) {
  return number == kFirstBrick ? meta_key("next-block") : meta_key("next-block." + std::to_string(number));
}

Result<std::vector<BrickRecord>> BrickRecords::all() {
  std::vector<BrickRecord> records;
  Result<> outcome;
  TRY(store_.scan(tag_prefix(kBrickTag), {}, [&](std::string_view key, std::string_view value) {
    const auto number = number_of_key(kBrickTag, key);
    const auto stored = read_value<StoredBrick>(value, "a brick record");
    if (!number || *number == 0 || *number > UINT32_MAX || !stored) {
      outcome = fail(EUCLEAN, "the metadata store has a brick record that cannot be read");
      return false;
    }
    records.push_back(record_of(static_cast<BrickNumber>(*number), *stored));
    return true;
  }));
  TRY(outcome);
  TRY_ASSIGN(const std::optional<std::string> settled, store_.get(meta_key(kNextBrick)));
  if (!settled) return of_format_1();
  for (BrickRecord& record : records) {
    TRY_ASSIGN(const std::optional<std::string> protects, store_.get(tls_key(record.number)));
    record.tls = protects.has_value();
    TRY_ASSIGN(const std::optional<std::string> named, store_.get(name_key(record.number)));
    if (!named) continue;
    TRY_ASSIGN(const StoredName name, read_value<StoredName>(*named, "a brick's name"));
    record.name = name.name;
  }
  return records;
}

Result<std::vector<BrickRecord>> BrickRecords::of_format_1() {
  TRY_ASSIGN(const std::optional<std::string> stored, store_.get(meta_key("next-block")));
  uint64_t end = 0;
  if (stored) {
    TRY_ASSIGN(const StoredNumber next, read_value<StoredNumber>(*stored, "an address counter"));
    end = next.number * brick::kBlockSize;
  }
  TRY(Extents(store_).scan([&](InodeId, const Extent& extent) {
    end = std::max(end, extent.logical_end());
    return true;
  }));
  if (end == 0) return std::vector<BrickRecord>();
  BrickRecord first{.number = kFirstBrick, .configured = true};
  first.zones.resize(zone_of(end - 1) + 1);
  std::iota(first.zones.begin(), first.zones.end(), 0);
  return std::vector{first};
}

Result<uint64_t> BrickRecords::counter(std::string_view name, uint64_t otherwise) {
  TRY_ASSIGN(const std::optional<std::string> stored, store_.get(meta_key(name)));
  if (!stored) return otherwise;
  TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*stored, "a counter of bricks"));
  return number.number;
}

Result<uint32_t> BrickRecords::take_zone(Batch& batch) {
  TRY_ASSIGN(const uint64_t zone, counter(kNextZone, 0));
  if (zone >= kZonesMax) return fail(ENOSPC, "the logical addresses are spent");
  put_value(batch, meta_key(kNextZone), StoredNumber{zone + 1});
  return static_cast<uint32_t>(zone);
}

Result<> BrickRecords::add(Batch& batch, BrickRecord& record) {
  TRY_ASSIGN(const uint64_t number, counter(kNextBrick, kFirstBrick));
  if (number > UINT32_MAX) return fail(ENOSPC, "the numbers of bricks are spent");
  record.number = static_cast<BrickNumber>(number);
  put_value(batch, meta_key(kNextBrick), StoredNumber{number + 1});
  // An older program would give out the addresses of other bricks' zones.
  TRY(raise_format_version(store_, batch, kFormatBasic));
  return extend(batch, record);
}

Result<> BrickRecords::extend(Batch& batch, BrickRecord& record) {
  TRY_ASSIGN(const uint32_t zone, take_zone(batch));
  record.zones.push_back(zone);
  return write(batch, record);
}

Result<> BrickRecords::put(Batch& batch, const BrickRecord& record) {
  TRY_ASSIGN(const uint64_t next_brick, counter(kNextBrick, 0));
  if (next_brick == 0) {
    // The brick of a store of format 1: its number and its zones count as given from now on.
    put_value(batch, meta_key(kNextBrick), StoredNumber{uint64_t{record.number} + 1});
    put_value(batch, meta_key(kNextZone), StoredNumber{uint64_t{record.zones.back()} + 1});
    TRY(raise_format_version(store_, batch, kFormatBasic));
  }
  return write(batch, record);
}

Result<> BrickRecords::write(Batch& batch, const BrickRecord& record) {
  if (record.address.size() > kAddressBytesMax) return fail(EINVAL, "the brick's address is too long");
  if (record.name.size() > kNameBytesMax) return fail(EINVAL, "the brick's name is too long");
  StoredBrick stored{.uuid = record.uuid,
                     .address = record.address,
                     .block_count = record.block_count,
                     .durability = record.durability,
                     .configured = record.configured,
                     .leaving = record.leaving,
                     .zones = record.zones};
  put_value(batch, number_key(kBrickTag, record.number), stored);
  if (record.name.empty()) {
    batch.erase(name_key(record.number));
  } else {
    put_value(batch, name_key(record.number), StoredName{record.name});
  }
  if (record.tls) {
    put_value(batch, tls_key(record.number), StoredNumber{1});
  } else {
    batch.erase(tls_key(record.number));
  }
  return {};
}

void BrickRecords::erase(Batch& batch, BrickNumber number) {
  batch.erase(number_key(kBrickTag, number));
  batch.erase(address_counter_key(number));
  batch.erase(verifier_key(number));
  batch.erase(name_key(number));
  batch.erase(tls_key(number));
}

Result<std::optional<BrickVerifier>> BrickRecords::verifier(BrickNumber number) {
  TRY_ASSIGN(const std::optional<std::string> stored, store_.get(verifier_key(number)));
  if (!stored) return std::nullopt;
  TRY_ASSIGN(const StoredVerifier known, read_value<StoredVerifier>(*stored, "a brick's verifier"));
  return known.verifier;
}

Result<uint64_t> BrickRecords::verifier_changes() {
  return counter(kVerifierChanges, 0);
}

void BrickRecords::put_verifier(Batch& batch, BrickNumber number, const BrickVerifier& verifier,
                                uint64_t changes) {
  put_value(batch, verifier_key(number), StoredVerifier{verifier});
  put_value(batch, meta_key(kVerifierChanges), StoredNumber{changes});
}

}  // namespace pnfsrdma::mds
