// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"

namespace pnfsrdma::xdr {

// Why bytes from outside are not a value of the wanted type.
enum class DecodeError {
  kNone = 0,
  kTruncated,     // the bytes end too early
  kBound,         // longer than the type allows
  kPadding,       // padding that is not zero
  kBool,          // a bool that is neither 0 nor 1
  kEnumerator,    // an enumerator nobody has defined
  kDiscriminant,  // a union has no arm for it
  kDepth,         // nested too deeply
  kTrailing,      // bytes left over behind the value
  kInvalid,       // a rule of the type itself (types with their own xdr_decode)
};
const char* to_string(DecodeError error);

// Nested lists and optionals deeper than this are refused. No wire type of ours comes near.
inline constexpr unsigned kDepthMax = 32;

// Reads XDR from a span it does not own. Every method returns false, and keeps the first error, when the
// bytes do not hold what is asked for; what it was to fill is then unspecified. Never reads beyond the span.
// Not thread-safe.
class Decoder {
 public:
  explicit Decoder(ByteSpan in) : in_(in) {}

  [[nodiscard]] bool get_u32(uint32_t& value);
  [[nodiscard]] bool get_u64(uint64_t& value);
  // opaque name[n]: fills `bytes`.
  [[nodiscard]] bool get_fixed(MutableByteSpan bytes);
  // opaque name<max>: a view into the input.
  [[nodiscard]] bool get_opaque(ByteSpan& view, size_t max);
  // A list's length, checked against its bound and against the bytes that are left (each item has at least
  // four).
  [[nodiscard]] bool get_count(uint32_t& count, size_t max);

  // Records the error; returns false, so that `return decoder.fail(…)` reads well.
  bool fail(DecodeError error);
  DecodeError error() const { return error_; }
  size_t remaining() const { return in_.size() - position_; }
  size_t position() const { return position_; }
  // What has not been read yet.
  ByteSpan rest() const { return in_.subspan(position_); }

  [[nodiscard]] bool enter() { return depth_++ < kDepthMax || fail(DecodeError::kDepth); }
  void leave() { --depth_; }

 private:
  [[nodiscard]] bool take(size_t size, ByteSpan& view);
  [[nodiscard]] bool skip_padding(size_t size);

  ByteSpan in_;
  size_t position_ = 0;
  unsigned depth_ = 0;
  DecodeError error_ = DecodeError::kNone;
};

}  // namespace pnfsrdma::xdr
