// SPDX-License-Identifier: Apache-2.0
#include "shared/xdr/decoder.h"

#include <endian.h>

#include <cstring>

#include "shared/xdr/encoder.h"

namespace pnfsrdma::xdr {

const char* to_string(DecodeError error) {
  switch (error) {
    case DecodeError::kNone:
      return "none";
    case DecodeError::kTruncated:
      return "truncated";
    case DecodeError::kBound:
      return "longer than allowed";
    case DecodeError::kPadding:
      return "padding is not zero";
    case DecodeError::kBool:
      return "bool is neither 0 nor 1";
    case DecodeError::kEnumerator:
      return "unknown enumerator";
    case DecodeError::kDiscriminant:
      return "unknown discriminant";
    case DecodeError::kDepth:
      return "nested too deeply";
    case DecodeError::kTrailing:
      return "trailing bytes";
    case DecodeError::kInvalid:
      return "invalid value";
  }
  return "unknown";
}

bool Decoder::fail(DecodeError error) {
  if (error_ == DecodeError::kNone) error_ = error;
  return false;
}

bool Decoder::take(size_t size, ByteSpan& view) {
  if (size > remaining()) return fail(DecodeError::kTruncated);
  view = in_.subspan(position_, size);
  position_ += size;
  return true;
}

bool Decoder::skip_padding(size_t size) {
  ByteSpan pad;
  if (!take(padding(size), pad)) return false;
  for (const std::byte byte : pad) {
    if (byte != std::byte{0}) return fail(DecodeError::kPadding);
  }
  return true;
}

bool Decoder::get_u32(uint32_t& value) {
  ByteSpan view;
  if (!take(sizeof value, view)) return false;
  std::memcpy(&value, view.data(), sizeof value);
  value = be32toh(value);
  return true;
}

bool Decoder::get_u64(uint64_t& value) {
  ByteSpan view;
  if (!take(sizeof value, view)) return false;
  std::memcpy(&value, view.data(), sizeof value);
  value = be64toh(value);
  return true;
}

bool Decoder::get_fixed(MutableByteSpan bytes) {
  ByteSpan view;
  if (!take(bytes.size(), view)) return false;
  if (!bytes.empty()) std::memcpy(bytes.data(), view.data(), bytes.size());
  return skip_padding(bytes.size());
}

bool Decoder::get_opaque(ByteSpan& view, size_t max) {
  uint32_t size = 0;
  if (!get_u32(size)) return false;
  if (size > max) return fail(DecodeError::kBound);
  return take(size, view) && skip_padding(size);
}

bool Decoder::get_count(uint32_t& count, size_t max) {
  if (!get_u32(count)) return false;
  if (count > max) return fail(DecodeError::kBound);
  if (count > remaining() / 4) return fail(DecodeError::kTruncated);
  return true;
}

}  // namespace pnfsrdma::xdr
