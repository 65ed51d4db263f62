// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"
#include "shared/base/check.h"
#include "shared/base/result.h"

namespace pnfsrdma::rdma {

// Rights of a region; any combination.
enum class Access : uint8_t {
  kLocalRead = 0,   // always there: source of WRITE and SEND
  kLocalWrite = 1,  // sink of READ and receive
  kRemoteRead = 2,
  kRemoteWrite = 4,
  kRemoteFlush = 8,  // the peer may flush it natively; needs a Flusher on a software transport
  kShared = 16,      // no right: others store to it when they like, so a checksum holds for a copy of it only
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool allows(Access rights, Access wanted) {
  return (static_cast<uint8_t>(rights) & static_cast<uint8_t>(wanted)) == static_cast<uint8_t>(wanted);
}

// The base of each transport's protection domain: regions and queue pairs of one domain work together, others
// do not.
class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;
};

// How a software responder makes bytes persistent when the peer flushes. Called from the connection's thread;
// may block.
class Flusher {
 public:
  virtual ~Flusher() = default;
  virtual Result<> flush(MutableByteSpan memory) = 0;
};

// Memory named for local use by a queue pair of the region's domain: a value.
struct LocalSlice {
  std::byte* address = nullptr;
  uint32_t length = 0;
  uint32_t key = 0;
};

// Memory of the other side: a value that a peer has told us. `address` is in the peer's numbering.
struct RemoteSlice {
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t key = 0;

  bool contains(uint64_t offset, uint64_t count) const {
    return offset <= length && count <= length - offset;
  }
  // `count` bytes from `offset`. The caller has checked contains().
  RemoteSlice slice(uint64_t offset, uint64_t count) const {
    CHECK(contains(offset, count));
    return {address + offset, count, key};
  }
};

// Registered memory. Owns the registration, not the bytes. Its destructor ends all remote access before it
// returns (see transport.h); it may be called from any thread, also while the peer is writing.
class Region {
 public:
  virtual ~Region() = default;
  virtual MutableByteSpan memory() const = 0;
  virtual uint32_t local_key() const = 0;
  // What to tell the peer: {address, length, key}.
  virtual RemoteSlice remote() const = 0;

  LocalSlice slice(size_t offset, uint32_t count) const {
    CHECK(offset <= memory().size() && count <= memory().size() - offset);
    return {memory().data() + offset, count, local_key()};
  }
};

}  // namespace pnfsrdma::rdma
