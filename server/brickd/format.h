// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// What stands on the medium, and nothing else does but data. The grammar is in README.md. Integers are
// little-endian.
namespace pnfsrdma::brick::format {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> kMagic = {'P', 'N', 'F', 'S', 'R', 'B', 'R', 'K'};
// A program refuses pools of a version above its own. A pool is of the lowest version that says all of it: 2 is
// one with an owner of its own, and the label of a device that is split into partitions.
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kVersionWithoutOwner = 1;

inline constexpr uint64_t kSuperblockCopies = 2;
inline constexpr uint64_t kSuperblockStride = 4096;  // no page, line or sector holds parts of both copies
inline constexpr uint64_t kTableOffset = kSuperblockCopies * kSuperblockStride;
inline constexpr uint64_t kBlockSizeMin = 4096;

// Who a pool of version 2 belongs to, in place of an MDS. All zeros in version 1.
struct Ownership {
  std::array<char, 64> name{};         // of the partition
  std::array<std::byte, 32> secret{};  // shared with whoever has the key (shared/brick/partition_key.h)
  uint64_t quota_blocks = 0;           // allocated at most; 0: as many as there are
};
static_assert(sizeof(Ownership) == 104 && std::has_unique_object_representations_v<Ownership>);

struct Superblock {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersionWithoutOwner;
  uint32_t size = 512;
  std::array<std::byte, 16> uuid{};
  uint64_t block_size = 0;
  uint64_t block_count = 0;
  uint64_t table_offset = kTableOffset;
  uint64_t data_offset = 0;
  uint64_t sequence = 0;       // of the two copies the higher one counts
  uint64_t epoch = 0;          // the highest claimed
  uint64_t unsafe_events = 0;  // times that unflushed data may have been lost: part of the verifier
  uint64_t reserved = 0;
  std::array<char, 64> owner{};  // who claimed the epoch, for administrators
  Ownership ownership{};
  std::array<std::byte, 240> padding{};
  std::array<std::byte, 8> checksum{};  // the front of SHA-256 over all before it
};
static_assert(sizeof(Superblock) == 512 && std::is_trivially_copyable_v<Superblock>);
static_assert(std::has_unique_object_representations_v<Superblock>);
static_assert(offsetof(Superblock, uuid) == 16 && offsetof(Superblock, sequence) == 64);
static_assert(offsetof(Superblock, owner) == 96 && offsetof(Superblock, checksum) == 504);
static_assert(offsetof(Superblock, ownership) == 160);

enum class State : uint32_t {
  kFreeDirty = 1,  // must be zeroed before anybody gets it
  kFreeClean = 2,  // zero on the medium
  kAllocated = 3,  // mapped at its logical address
  kParked = 4,     // keeps content and address, cannot be exposed
};
constexpr bool is_known(uint32_t state) {
  return state >= 1 && state <= 4;
}

// One version of a block's entry.
struct Record {
  uint64_t logical = 0;     // where allocated or parked; 0 when free
  uint64_t owner = 0;       // the epoch or (version 2) the call under which it was allocated; 0 when free
  uint64_t generation = 0;  // counts the updates of this entry
  uint32_t state = 0;
  uint32_t checksum = 0;  // over the above, the block's index and the pool's uuid: an entry names its place
  bool operator==(const Record&) const = default;
};
static_assert(sizeof(Record) == 32 && std::is_trivially_copyable_v<Record>);
static_assert(offsetof(Record, generation) == 16 && offsetof(Record, checksum) == 28);

// One line per block. An update writes the half that is older, so that a line torn at any 8 bytes still holds
// the other half, whole: the valid record with the higher generation counts.
struct Entry {
  std::array<Record, 2> halves;
};
static_assert(sizeof(Entry) == 64 && std::has_unique_object_representations_v<Entry>);

// Where the data begins: behind the table, at a multiple of the block size.
constexpr uint64_t data_offset(uint64_t block_size, uint64_t block_count) {
  const uint64_t end = kTableOffset + block_count * sizeof(Entry);
  return (end + block_size - 1) / block_size * block_size;
}

// How many blocks a pool of `size` bytes holds.
constexpr uint64_t blocks_that_fit(uint64_t size, uint64_t block_size) {
  if (size < kTableOffset) return 0;
  uint64_t count = (size - kTableOffset) / (block_size + sizeof(Entry));
  while (count > 0 && data_offset(block_size, count) + count * block_size > size) --count;
  return count;
}

// A device that is split into partitions begins with two copies of this, where a pool has its superblock; behind
// kLabelRegion each partition is a pool of its own.
inline constexpr uint64_t kLabelRegion = uint64_t{2} << 20;
inline constexpr size_t kPartitionsMax = 31;

struct Partition {
  std::array<char, 64> name{};  // empty: none
  uint64_t offset = 0;
  uint64_t length = 0;
  std::array<std::byte, 48> padding{};
};
static_assert(sizeof(Partition) == 128 && std::has_unique_object_representations_v<Partition>);

struct Label {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t size = kSuperblockStride;
  std::array<std::byte, 16> uuid{};
  uint64_t sequence = 0;  // of the two copies the higher one counts
  std::array<std::byte, 80> padding{};
  std::array<Partition, kPartitionsMax> partitions{};
  std::array<std::byte, 8> checksum{};  // the front of SHA-256 over all before it
};
static_assert(sizeof(Label) == kSuperblockStride && std::has_unique_object_representations_v<Label>);
static_assert(offsetof(Label, partitions) == 120 && std::is_trivially_copyable_v<Label>);

uint32_t record_checksum(const Record& record, uint64_t block, const std::array<std::byte, 16>& uuid);
std::array<std::byte, 8> superblock_checksum(const Superblock& superblock);
std::array<std::byte, 8> label_checksum(const Label& label);

}  // namespace pnfsrdma::brick::format
