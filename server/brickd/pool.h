// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/brickd/block_table.h"
#include "server/brickd/superblock.h"
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
  using Progress = std::function<void(uint64_t blocks_done, uint64_t blocks)>;

  // Writes a new superblock and table, zeroes nothing: all blocks begin free-dirty unless `known_zero` (a
  // file made by us just now). Refuses a formatted pool with EEXIST unless `force`.
  static Result<> format(const pmem::Mapping& mapping, pmem::Persistence& persistence, uint64_t block_size,
                         bool force, bool known_zero, Random& random, const Progress& progress = nullptr);

  // Opens a formatted one: EINVAL when it is none, EPROTO when a newer program wrote it, EUCLEAN when both
  // superblocks are damaged. `boot` names this boot of the host: see verifier.h.
  static Result<std::unique_ptr<Pool>> open(std::unique_ptr<pmem::Mapping> mapping,
                                            std::unique_ptr<pmem::Persistence> persistence,
                                            const BootId& boot);

  // A volatile pool of this process, formatted and clean, for tests and the simulator.
  static Result<std::unique_ptr<Pool>> in_memory(uint64_t blocks, Random& random,
                                                 uint64_t block_size = kBlockSize);

  Superblock& superblock() { return *superblock_; }
  BlockTable& table() { return *table_; }
  pmem::Persistence& persistence() { return *persistence_; }
  const pmem::Mapping& mapping() const { return *mapping_; }
  uint64_t block_size() const { return block_size_; }
  // The bytes of physical block `index` and the `count - 1` behind it.
  MutableByteSpan blocks(uint64_t index, uint64_t count) const;

 private:
  Pool() = default;

  std::unique_ptr<pmem::Mapping> mapping_;
  std::unique_ptr<pmem::Persistence> persistence_;
  std::unique_ptr<Superblock> superblock_;
  std::unique_ptr<BlockTable> table_;
  uint64_t block_size_ = 0;
  uint64_t data_offset_ = 0;
};

}  // namespace pnfsrdma::brick
