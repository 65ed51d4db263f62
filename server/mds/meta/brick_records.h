// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"
#include "shared/brick/protocol.h"
#include "shared/xdr/types.h"

namespace pnfsrdma::mds {

// This server's number for a brick, given once and never again. 0: none.
using BrickNumber = uint32_t;
inline constexpr BrickNumber kNoBrick = 0;
inline constexpr BrickNumber kFirstBrick = 1;

using BrickUuid = xdr::FixedOpaque<16>;
// Another one than before: the brick may have lost what was not flushed.
using BrickVerifier = xdr::FixedOpaque<8>;
// "01234567-89ab-cdef-0123-456789abcdef"
std::string uuid_text(const BrickUuid& uuid);

// The logical addresses of all bricks are one space, cut into zones of 2^48 bytes. A zone belongs to one
// brick forever, so an address says on which brick it is. A brick that has used up its zone (addresses are
// not used twice) gets another one.
inline constexpr uint64_t kZoneBytes = uint64_t{1} << 48;
inline constexpr uint32_t kZonesMax = 1 << 15;  // 2^63 bytes: what an extent can name
inline constexpr uint64_t kBlocksPerZone = kZoneBytes / brick::kBlockSize;
constexpr uint32_t zone_of(uint64_t logical) {
  return static_cast<uint32_t>(logical / kZoneBytes);
}

// A brick this server uses, as stored.
struct BrickRecord {
  BrickNumber number = kNoBrick;
  BrickUuid uuid{};             // of its pool; zeros until it was claimed for the first time
  std::string name;             // that people gave it; empty: none
  std::string address;          // of its control socket: "unix:/path" or "tcp:host:port"
  uint64_t block_count = 0;     // when it was claimed last
  uint32_t durability = 0;      // Durability, likewise
  bool configured = false;      // it was in the configuration at the first start; else added later
  bool leaving = false;         // gets no new data
  bool tls = false;             // its control connection was protected by TLS when it was made last
  std::vector<uint32_t> zones;  // ascending

  bool claimed_before() const { return uuid != BrickUuid{}; }
  bool operator==(const BrickRecord&) const = default;
};

// The stored records. A store of format 1 has none and knows one brick: read as number 1 with the zones its
// counter of addresses has reached; the first write settles it. Control loop only.
class BrickRecords {
 public:
  static constexpr size_t kAddressBytesMax = 256;
  static constexpr size_t kNameBytesMax = 64;

  explicit BrickRecords(KeyValueStore& store) : store_(store) {}

  // In the order of numbers. EUCLEAN.
  Result<std::vector<BrickRecord>> all();
  // Gives the record its number and its first zone; part of a batch the caller commits. ENOSPC when the
  // zones are spent.
  Result<> add(Batch& batch, BrickRecord& record);
  // One more zone.
  Result<> extend(Batch& batch, BrickRecord& record);
  // Replaces the record. EINVAL: the address or the name is too long.
  Result<> put(Batch& batch, const BrickRecord& record);
  static void erase(Batch& batch, BrickNumber number);
  // The verifier a brick had when it was heard of last; none: never.
  Result<std::optional<BrickVerifier>> verifier(BrickNumber number);
  // How often a brick was found with another one than before.
  Result<uint64_t> verifier_changes();
  static void put_verifier(Batch& batch, BrickNumber number, const BrickVerifier& verifier, uint64_t changes);

 private:
  Result<uint64_t> counter(std::string_view name, uint64_t otherwise);
  Result<uint32_t> take_zone(Batch& batch);
  Result<> write(Batch& batch, const BrickRecord& record);
  Result<std::vector<BrickRecord>> of_format_1();

  KeyValueStore& store_;
};

// The counter of addresses of a brick: its first brick's is older than the others.
std::string address_counter_key(BrickNumber number);

}  // namespace pnfsrdma::mds
