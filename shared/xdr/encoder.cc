// SPDX-License-Identifier: Apache-2.0
#include "shared/xdr/encoder.h"

#include <algorithm>
#include <array>

#include "shared/base/check.h"

namespace pnfsrdma::xdr {
namespace {

constexpr std::array<std::byte, sizeof(uint64_t)> kZeros{};

}  // namespace

void Encoder::flush() {
  if (next_ == stage_) return;
  out_->insert(out_->end(), stage_, next_);
  next_ = stage_;
}

// Space for `size` more bytes; null on a counter.
std::byte* Encoder::grow(size_t size) {
  if (!out_) {
    counted_ += size;
    return nullptr;
  }
  flush();
  const size_t start = out_->size();
  // Numbers by insert(), which the compiler turns into a store; resize() is a call that puts zeros there.
  if (size <= kZeros.size()) {
    out_->insert(out_->end(), kZeros.begin(), kZeros.begin() + static_cast<ptrdiff_t>(size));
  } else {
    out_->resize(start + size);
  }
  return out_->data() + start;
}

void Encoder::put_fixed(ByteSpan bytes) {
  const size_t pad = padding(bytes.size());
  if (!out_) {
    counted_ += bytes.size() + pad;
    return;
  }
  if (static_cast<size_t>(stage_end_ - next_) >= bytes.size() + pad) {
    next_ = std::ranges::copy(bytes, next_).out;
    next_ = std::fill_n(next_, pad, std::byte{});
    return;
  }
  flush();
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
  CHECK(position + sizeof value <= this->position());
  const size_t written = out_->size();
  CHECK(position >= written || position + sizeof value <= written);
  store_big_endian(position < written ? out_->data() + position : stage_ + (position - written), value);
}

void Encoder::truncate(size_t position) {
  CHECK(out_ && position <= this->position());
  const size_t written = out_->size();
  next_ = position < written ? stage_ : stage_ + (position - written);
  if (position < written) out_->resize(position);
}

Encoder::Staging::Staging(Encoder& encoder) : encoder_(encoder.out_ && !encoder.stage_ ? &encoder : nullptr) {
  if (!encoder_) return;
  encoder_->stage_ = encoder_->next_ = bytes_.data();
  encoder_->stage_end_ = bytes_.data() + bytes_.size();
}

Encoder::Staging::~Staging() {
  if (!encoder_) return;
  encoder_->flush();
  encoder_->stage_ = encoder_->next_ = encoder_->stage_end_ = nullptr;
}

}  // namespace pnfsrdma::xdr
