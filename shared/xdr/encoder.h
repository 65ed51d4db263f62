// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma::xdr {

// How many zero bytes follow `size` bytes of opaque data (RFC 4506, 3: everything is a multiple of four).
constexpr size_t padding(size_t size) {
  return (4 - size % 4) % 4;
}

// Appends XDR to a Bytes that belongs to the caller and must outlive it. Cannot fail. Not thread-safe.
class Encoder {
 public:
  explicit Encoder(Bytes& out) : out_(&out) {}
  // Counts instead of writing: what would encoding add?
  static Encoder counter() { return Encoder(); }

  void put_u32(uint32_t value);
  void put_u64(uint64_t value);
  // opaque name[n]: the bytes and their padding.
  void put_fixed(ByteSpan bytes);
  // opaque name<>: length, bytes, padding.
  void put_opaque(ByteSpan bytes);
  // The same with the bytes still to come: the caller fills the returned span before anything else is put, so
  // that bulk data (READ) goes from its source straight into the record. Not on a counter().
  MutableByteSpan reserve_opaque(size_t size);

  // Where the next byte goes, in the whole Bytes (0 based; what a counter() has counted).
  size_t position() const { return out_ ? out_->size() : counted_; }
  // Overwrites four bytes put earlier: counts and statuses that are known late. On a counter: nothing.
  void patch_u32(size_t position, uint32_t value);
  // Takes back everything from `position` on.
  void truncate(size_t position);

 private:
  Encoder() = default;
  std::byte* grow(size_t size);

  Bytes* out_ = nullptr;
  size_t counted_ = 0;
};

}  // namespace pnfsrdma::xdr
