// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "shared/base/sync.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::library {

// A program's registered memory, found by address: a read or write from or to it is not copied. Thread-safe; the
// data path must outlive it.
class Memory {
 public:
  explicit Memory(initiator::DataPath& data_path) : data_path_(data_path) {}

  Result<void*> allocate(size_t size);
  // False: `address` is not the start of anything allocated.
  bool free(void* address);
  // None: at least one byte of it is not registered.
  std::optional<initiator::BufferSlice> find(const void* address, size_t size) const;

 private:
  initiator::DataPath& data_path_;
  mutable SharedMutex mutex_;
  std::map<std::byte*, std::unique_ptr<initiator::Buffer>> buffers_;
};

}  // namespace pnfsrdma::library
