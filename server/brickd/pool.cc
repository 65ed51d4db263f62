// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/pool.h"

#include <fmt/core.h>

#include "shared/base/check.h"

namespace pnfsrdma::brick {
namespace {

BlockTable::Geometry geometry_of(const format::Superblock& superblock) {
  return {superblock.uuid, superblock.block_size, superblock.block_count};
}

}  // namespace

MutableByteSpan table_of(MutableByteSpan pool, const format::Superblock& superblock) {
  return pool.subspan(superblock.table_offset, superblock.block_count * sizeof(format::Entry));
}

Result<> Pool::format(MutableByteSpan bytes, pmem::Persistence& persistence, const FormatOptions& options,
                      Random& random) {
  if (!options.force && Superblock::looks_formatted(bytes)) {
    return fail(EEXIST, "there is a formatted pool already; --force destroys it and all data in it");
  }
  format::Superblock superblock;
  if (options.ownership) {
    superblock.version = format::kVersion;
    superblock.ownership = *options.ownership;
  }
  superblock.block_size = options.block_size;
  superblock.block_count = format::blocks_that_fit(bytes.size(), options.block_size);
  if (superblock.block_count == 0) {
    return fail(ENOSPC,
                fmt::format("{} bytes are too small for a pool: it takes one block of {} bytes and its table",
                            bytes.size(), options.block_size));
  }
  superblock.data_offset = format::data_offset(superblock.block_size, superblock.block_count);
  random.fill(superblock.uuid);

  // The old superblock goes first and the new one comes last: a format cut short leaves no pool, never half
  // of one.
  persistence.zero(bytes.first(format::kTableOffset));
  TRY(persistence.persist(bytes.first(format::kTableOffset)));
  const auto state = options.known_zero ? format::State::kFreeClean : format::State::kFreeDirty;
  TRY(BlockTable::write_new(table_of(bytes, superblock), persistence, geometry_of(superblock), state));
  return Superblock::write_new(bytes, persistence, superblock);
}

Pool::Pool(std::unique_ptr<pmem::Mapping> mapping, std::unique_ptr<pmem::Persistence> persistence,
           Superblock superblock)
    : mapping_(std::move(mapping)),
      persistence_(std::move(persistence)),
      superblock_(std::move(superblock)) {}

Result<std::unique_ptr<Pool>> Pool::open(std::unique_ptr<pmem::Mapping> mapping,
                                         std::unique_ptr<pmem::Persistence> persistence, SteadyTime now) {
  TRY_ASSIGN(Superblock superblock, Superblock::open(mapping->bytes(), *persistence));
  std::unique_ptr<Pool> pool(new Pool(std::move(mapping), std::move(persistence), std::move(superblock)));
  const format::Superblock& content = pool->superblock_.content();
  pool->table_ = std::make_unique<BlockTable>(table_of(pool->mapping_->bytes(), content), *pool->persistence_,
                                              geometry_of(content), now);
  return pool;
}

Result<std::unique_ptr<Pool>> Pool::in_memory(uint64_t blocks, Random& random, uint64_t block_size) {
  const uint64_t size = format::data_offset(block_size, blocks) + blocks * block_size;
  TRY_ASSIGN(auto mapping, pmem::Mapping::anonymous(size));
  auto persistence = mapping->make_persistence(pmem::FileFlush::kPageCache);
  TRY(format(mapping->bytes(), *persistence, {.block_size = block_size, .force = true, .known_zero = true},
             random));
  return open(std::move(mapping), std::move(persistence), SystemClock().now());
}

MutableByteSpan Pool::memory(const Piece& piece) const {
  const uint64_t data = superblock_.content().data_offset;
  CHECK(piece.physical + piece.length <= block_count() * block_size());
  return mapping_->bytes().subspan(data + piece.physical, piece.length);
}

MutableByteSpan Pool::block(uint64_t number) const {
  return memory({0, number * block_size(), block_size()});
}

}  // namespace pnfsrdma::brick
