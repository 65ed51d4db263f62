// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/pmem/persistence.h"

namespace pnfsrdma::pmem {

// Bytes of a page cache: durable by msync(2).
class SyncPersistence final : public Persistence {
 public:
  void copy(std::byte* target, ByteSpan source) override;
  void zero(MutableByteSpan target) override;
  Result<> flush(ByteSpan memory) override;
  Result<> fence() override { return {}; }  // msync has waited
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }
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
