// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/pmem/persistence.h"

namespace pnfsrdma::pmem {

// Bytes of a page cache: durable by msync(2).
class SyncPersistence final : public Persistence {
 public:
  SyncPersistence() = default;
  // Of a mapping of `fd` from `offset` on, with the same open file: a write-back that failed is told to it once.
  // Both outlive this.
  SyncPersistence(int fd, const std::byte* base, uint64_t offset = 0);

  void copy(std::byte* target, ByteSpan source) override;
  void zero(MutableByteSpan target) override;
  Result<> flush(ByteSpan memory) override;
  Result<> fence() override { return {}; }  // msync has waited
  // Where the file system's fsync(2) of a part is known to make the metadata of the whole file durable (ext4,
  // XFS): all pages are written back at once, then one msync waits for one commit and one cache flush of the
  // disk. Elsewhere one msync after the other.
  Result<> persist_all(std::span<const ByteSpan> ranges) override;
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }

 private:
  Result<> write_back(ByteSpan memory, unsigned how) const;

  int fd_ = -1;  // none: one msync after the other
  const std::byte* base_ = nullptr;
  uint64_t offset_ = 0;  // of base_, in the file
};

// Bytes that nothing here makes more durable: plain memory, or a page cache the administrator trusts.
class UnflushedPersistence final : public Persistence {
 public:
  explicit UnflushedPersistence(Durability durability) : durability_(durability) {}
  void copy(std::byte* target, ByteSpan source) override;
  void zero(MutableByteSpan target) override;
  Result<> flush(ByteSpan) override { return {}; }
  Result<> fence() override { return {}; }
  Durability durability() const override { return durability_; }
  bool blocks() const override { return false; }

 private:
  Durability durability_;
};

}  // namespace pnfsrdma::pmem
