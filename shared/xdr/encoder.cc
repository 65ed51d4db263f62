// SPDX-License-Identifier: Apache-2.0
#include "shared/xdr/encoder.h"

#include <array>

#include "shared/base/check.h"

namespace pnfsrdma::xdr {
namespace {

constexpr std::array<std::byte, sizeof(uint64_t)> kZeros{};

}  // namespace

// Space for `size` more bytes; null on a counter.
inline std::byte* Encoder::grow(size_t size) {
  if (!out_) {
    counted_ += size;
    return nullptr;
  }
  const size_t start = out_->size();
  // Numbers by insert(), which the compiler turns into a store; resize() is a call that puts zeros there.
  if (size <= kZeros.size()) {
    out_->insert(out_->end(), kZeros.begin(), kZeros.begin() + static_cast<ptrdiff_t>(size));
  } else {
    out_->resize(start + size);
  }
  return out_->data() + start;
}

// Most of what is encoded are these two: no padding, and a size the compiler knows.
void Encoder::put_u32(uint32_t value) {
  if (std::byte* to = grow(sizeof value)) store_big_endian(to, value);
}

void Encoder::put_u64(uint64_t value) {
  if (std::byte* to = grow(sizeof value)) store_big_endian(to, value);
}

void Encoder::put_fixed(ByteSpan bytes) {
  const size_t pad = padding(bytes.size());
  if (!out_) {
    counted_ += bytes.size() + pad;
    return;
  }
  // insert() and not resize(): bulk data is written once, not zeroed first.
  out_->insert(out_->end(), bytes.begin(), bytes.end());
  if (pad > 0) out_->insert(out_->end(), kZeros.begin(), kZeros.begin() + static_cast<ptrdiff_t>(pad));
}

void Encoder::put_opaque(ByteSpan bytes) {
  CHECK(bytes.size() <= UINT32_MAX);
  put_u32(static_cast<uint32_t>(bytes.size()));
  put_fixed(bytes);
}

MutableByteSpan Encoder::reserve_opaque(size_t size) {
  CHECK(out_ && size <= UINT32_MAX);
  put_u32(static_cast<uint32_t>(size));
  return {grow(size + padding(size)), size};
}

void Encoder::patch_u32(size_t position, uint32_t value) {
  if (!out_) return;
  CHECK(position + sizeof value <= out_->size());
  store_big_endian(out_->data() + position, value);
}

void Encoder::truncate(size_t position) {
  CHECK(out_ && position <= out_->size());
  out_->resize(position);
}

}  // namespace pnfsrdma::xdr
