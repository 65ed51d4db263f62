// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
  class Staging;

  explicit Encoder(Bytes& out) : out_(&out) {}
  // Counts instead of writing: what would encoding add?
  static Encoder counter() { return Encoder(); }

  void put_u32(uint32_t value) { put_number(value); }
  void put_u64(uint64_t value) { put_number(value); }
  // opaque name[n]: the bytes and their padding.
  void put_fixed(ByteSpan bytes);
  // opaque name<>: length, bytes, padding.
  void put_opaque(ByteSpan bytes);
  // The same with the bytes still to come: the caller fills the returned span before anything else is put, so
  // that bulk data (READ) goes from its source straight into the record. Not on a counter().
  MutableByteSpan reserve_opaque(size_t size);

  // Where the next byte goes, in the whole Bytes (0 based; what a counter() has counted).
  size_t position() const { return (out_ ? out_->size() : counted_) + staged(); }
  // Overwrites four bytes put earlier: counts and statuses that are known late. On a counter: nothing.
  void patch_u32(size_t position, uint32_t value);
  // Takes back everything from `position` on.
  void truncate(size_t position);

 private:
  Encoder() = default;
  template <typename T>
  void put_number(T value) {
    if (static_cast<size_t>(stage_end_ - next_) >= sizeof value) {
      store_big_endian(next_, value);
      next_ += sizeof value;
    } else if (std::byte* to = grow(sizeof value)) {
      store_big_endian(to, value);
    }
  }
  std::byte* grow(size_t size);
  size_t staged() const { return static_cast<size_t>(next_ - stage_); }
  // What is staged goes to the Bytes.
  void flush();

  Bytes* out_ = nullptr;
  size_t counted_ = 0;
  // Of the Staging that lives: where it begins, what is free of it, where it ends. All null without one.
  std::byte* stage_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* stage_end_ = nullptr;
};

// While it lives, small things that are put wait on the stack and reach the Bytes together: a store each,
// where they would be an insertion each. For what has many of them: attributes, a stored value. The Bytes are
// whole when it has ended; positions are right all the time. One inside another one, or on a counter(), does
// nothing.
class Encoder::Staging {
 public:
  explicit Staging(Encoder& encoder);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

 private:
  static constexpr size_t kBytes = 512;

  Encoder* encoder_;                     // null: does nothing
  std::array<std::byte, kBytes> bytes_;  // NOLINT(*-member-init): written before they are read
};

}  // namespace pnfsrdma::xdr
