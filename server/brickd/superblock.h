// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "server/brickd/format.h"
#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

// The pool's superblock: two copies, of which an update writes the one that does not count. Owned by the
// Pool; control loop only. A set_*() stores; it is durable when the bytes it returns have been flushed, and
// no second one may follow before that (the committer sees to it).
class Superblock {
 public:
  // EINVAL: not a pool of ours; EPROTO: of a newer version; EUCLEAN: both copies damaged, or sizes that
  // cannot be.
  static Result<Superblock> open(MutableByteSpan pool, pmem::Persistence& persistence);
  // Makes both copies, durably. The caller fills uuid and sizes, and who owns it.
  static Result<> write_new(MutableByteSpan pool, pmem::Persistence& persistence, format::Superblock content);
  // A pool of ours, whole or damaged, older or newer?
  static bool looks_formatted(ByteSpan pool);

  const format::Superblock& content() const { return content_; }
  uint64_t epoch() const { return content_.epoch; }
  std::string owner() const;
  // Not an MDS's: whoever has the key owns it.
  bool has_owner_by_key() const { return content_.version >= format::kVersion; }
  // Copies that failed their checksum when the pool was opened: 0 or 1.
  unsigned damaged_copies() const { return damaged_copies_; }

  ByteSpan set_claim(uint64_t epoch, const std::string& owner);
  ByteSpan add_unsafe_event();
  ByteSpan set_ownership(const format::Ownership& ownership);

 private:
  Superblock(MutableByteSpan pool, pmem::Persistence& persistence, unsigned current, unsigned damaged_copies);

  ByteSpan store();

  MutableByteSpan pool_;
  pmem::Persistence* persistence_;
  format::Superblock content_;
  unsigned current_;
  unsigned damaged_copies_;
};

}  // namespace pnfsrdma::brick
