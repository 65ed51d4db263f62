// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "shared/base/bytes.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::library::session {

// Memory that is registered with the transports of a connection, and that children of a fork(2) do not have meanwhile.
class SessionMemory {
 public:
  enum class Kind : uint8_t { kMappedHere, kPrograms };

  // kMappedHere: it is unmapped with this, or at once if it cannot be registered.
  static Result<std::unique_ptr<SessionMemory>> make(initiator::DataPath& data_path, MutableByteSpan memory,
                                                     Kind kind);
  ~SessionMemory();
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  initiator::BufferSlice slice(size_t offset, size_t count) const { return buffer_->slice(offset, count); }

 private:
  SessionMemory(MutableByteSpan memory, Kind kind) : memory_(memory), kind_(kind) {}

  const MutableByteSpan memory_;
  const Kind kind_;
  std::unique_ptr<initiator::Buffer> buffer_;
};

}  // namespace pnfsrdma::library::session
