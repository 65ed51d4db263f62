// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/superblock.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "shared/base/check.h"

namespace pnfsrdma::brick {
namespace {

std::byte* place_of(MutableByteSpan pool, unsigned copy) {
  return pool.data() + copy * format::kSuperblockStride;
}

format::Superblock load(ByteSpan pool, unsigned copy) {
  format::Superblock content;
  std::memcpy(&content, pool.data() + copy * format::kSuperblockStride, sizeof content);
  return content;
}

bool is_label(const format::Superblock& content) {
  return content.magic == format::kMagic && content.version == format::kVersion &&
         content.size == sizeof(format::Label);
}

bool is_whole(const format::Superblock& content) {
  return content.magic == format::kMagic && content.version >= 1 && content.size == sizeof content &&
         content.checksum == format::superblock_checksum(content);
}

// A checksum proves that we wrote it, not that it fits this file: one that was cut short must not be mapped
// beyond.
bool sizes_fit(const format::Superblock& content, uint64_t pool_size) {
  if (!std::has_single_bit(content.block_size) || content.block_size < format::kBlockSizeMin) return false;
  if (content.block_count == 0 || content.block_count > pool_size / content.block_size) return false;
  return content.table_offset == format::kTableOffset &&
         content.data_offset == format::data_offset(content.block_size, content.block_count) &&
         content.data_offset + content.block_count * content.block_size <= pool_size;
}

}  // namespace

Superblock::Superblock(MutableByteSpan pool, pmem::Persistence& persistence, unsigned current,
                       unsigned damaged_copies)
    : pool_(pool),
      persistence_(&persistence),
      content_(load(pool, current)),
      current_(current),
      damaged_copies_(damaged_copies) {}

bool Superblock::looks_formatted(ByteSpan pool) {
  if (pool.size() < format::kTableOffset) return false;
  return load(pool, 0).magic == format::kMagic || load(pool, 1).magic == format::kMagic;
}

Result<Superblock> Superblock::open(MutableByteSpan pool, pmem::Persistence& persistence) {
  if (!looks_formatted(pool)) {
    return fail(EINVAL, "no pool found (no superblock): format it with pnfsrdma-brickd --format");
  }
  if (is_label(load(pool, 0)) || is_label(load(pool, 1)))
    return fail(
        EINVAL,
        "split into partitions: set pool.partition to the name of one (pnfsrdma-brickd partition list)");
  std::optional<unsigned> current;
  unsigned damaged = 0;
  for (unsigned copy = 0; copy < format::kSuperblockCopies; ++copy) {
    const format::Superblock content = load(pool, copy);
    if (content.magic == format::kMagic && content.version > format::kVersion) {
      return fail(EPROTO,
                  fmt::format("the pool has format version {}, this program knows up to {}: use a newer one",
                              content.version, format::kVersion));
    }
    if (!is_whole(content)) {
      ++damaged;
    } else if (!current || content.sequence > load(pool, *current).sequence) {
      current = copy;
    }
  }
  if (!current) return fail(EUCLEAN, "both copies of the superblock are damaged");
  if (!sizes_fit(load(pool, *current), pool.size())) {
    return fail(
        EUCLEAN,
        fmt::format("the superblock does not fit the pool's {} bytes: was the file truncated?", pool.size()));
  }
  return Superblock(pool, persistence, *current, damaged);
}

Result<> Superblock::write_new(MutableByteSpan pool, pmem::Persistence& persistence,
                               format::Superblock content) {
  for (unsigned copy = 0; copy < format::kSuperblockCopies; ++copy) {
    content.sequence = copy + 1;
    content.checksum = format::superblock_checksum(content);
    persistence.copy(place_of(pool, copy), std::as_bytes(std::span(&content, 1)));
    TRY(persistence.persist({place_of(pool, copy), sizeof content}));
  }
  return {};
}

std::string Superblock::owner() const {
  const auto end = std::ranges::find(content_.owner, '\0');
  return {content_.owner.begin(), end};
}

ByteSpan Superblock::set_claim(uint64_t epoch, const std::string& owner) {
  CHECK(epoch > content_.epoch);
  content_.epoch = epoch;
  content_.owner = {};
  std::memcpy(content_.owner.data(), owner.data(), std::min(owner.size(), content_.owner.size()));
  return store();
}

ByteSpan Superblock::add_unsafe_event() {
  ++content_.unsafe_events;
  return store();
}

ByteSpan Superblock::set_ownership(const format::Ownership& ownership) {
  CHECK(has_owner_by_key());
  content_.ownership = ownership;
  return store();
}

ByteSpan Superblock::store() {
  current_ ^= 1;
  ++content_.sequence;
  content_.checksum = format::superblock_checksum(content_);
  std::byte* place = place_of(pool_, current_);
  persistence_->copy(place, std::as_bytes(std::span(&content_, 1)));
  return {place, sizeof content_};
}

}  // namespace pnfsrdma::brick
