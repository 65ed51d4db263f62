// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/brickd/block_table.h"
#include "server/brickd/superblock.h"
#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/brick/protocol.h"
#include "shared/pmem/mapping.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

// A formatted pool, open: mapping, superblock, block table. Owns all of it; the mapping's lock keeps a second
// brick out. Control loop only, but for memory and persistence(), which any thread may use.
class Pool {
 public:
  struct FormatOptions {
    uint64_t block_size = kBlockSize;
    bool force = false;       // overwrite a pool that is there
    bool known_zero = false;  // every byte is known to be zero on the medium: blocks begin clean
    std::optional<format::Ownership> ownership{};  // none: an MDS claims it
  };
  // Writes a new superblock and table. EEXIST: formatted already; ENOSPC: too small for one block.
  static Result<> format(MutableByteSpan bytes, pmem::Persistence& persistence, const FormatOptions& options,
                         Random& random);

  // Opens a formatted one; errors as Superblock::open's.
  static Result<std::unique_ptr<Pool>> open(std::unique_ptr<pmem::Mapping> mapping,
                                            std::unique_ptr<pmem::Persistence> persistence, SteadyTime now);

  // A volatile pool of this process, formatted and clean, for tests and the simulator.
  static Result<std::unique_ptr<Pool>> in_memory(uint64_t blocks, Random& random,
                                                 uint64_t block_size = kBlockSize);

  Superblock& superblock() { return superblock_; }
  BlockTable& table() { return *table_; }
  pmem::Persistence& persistence() { return *persistence_; }
  const pmem::Mapping& mapping() const { return *mapping_; }
  uint64_t block_count() const { return superblock_.content().block_count; }
  uint64_t block_size() const { return superblock_.content().block_size; }
  // The bytes of a piece, or of one physical block.
  MutableByteSpan memory(const Piece& piece) const;
  MutableByteSpan block(uint64_t number) const;

 private:
  Pool(std::unique_ptr<pmem::Mapping> mapping, std::unique_ptr<pmem::Persistence> persistence,
       Superblock superblock);

  std::unique_ptr<pmem::Mapping> mapping_;
  std::unique_ptr<pmem::Persistence> persistence_;
  Superblock superblock_;
  std::unique_ptr<BlockTable> table_;
};

// The table's place in a pool with this superblock.
MutableByteSpan table_of(MutableByteSpan pool, const format::Superblock& superblock);

}  // namespace pnfsrdma::brick
