// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/attributes.h"

#include <array>

#include "shared/xdr/codec.h"

namespace pnfsrdma::nfs4 {
namespace {

// Of the table's bitmap.
constexpr size_t kAttributeWords = 3;

// The values of all attributes set, in the order of their numbers.
void encode_values(xdr::Encoder& encoder, const Attributes& attributes) {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  if (attributes.member) xdr::encode(encoder, *attributes.member);
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
}

// As xdr::encode(encoder, attributes.mask()) without an allocation: a READDIR does it for each entry.
void encode_mask(xdr::Encoder& encoder, const Attributes& attributes) {
  std::array<uint32_t, kAttributeWords> words{};
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  words[(number) / 32] |= uint32_t{attributes.member.has_value()} << (number) % 32;
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  size_t count = words.size();
  while (count > 0 && words[count - 1] == 0) --count;
  encoder.put_u32(static_cast<uint32_t>(count));
  for (size_t word = 0; word < count; ++word) encoder.put_u32(words[word]);
}

bool decode_values(xdr::Decoder& decoder, const Bitmap& mask, Attributes& attributes) {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  if (mask.test(Attribute::enumerator) && !xdr::decode(decoder, attributes.member.emplace())) return false;
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  return true;
}

}  // namespace

Attributes::Attributes() = default;
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

Bitmap Attributes::mask() const {
  Bitmap mask;
  mask.reserve(kAttributeWords);
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  if (member) mask.set(Attribute::enumerator);
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  return mask;
}

void Attributes::keep_only(const Bitmap& wanted) {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  if (!wanted.test(Attribute::enumerator)) member.reset();
  PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
}

void xdr_encode(xdr::Encoder& encoder, const Attributes& attributes) {
  const xdr::Encoder::Staging staging(encoder);
  encode_mask(encoder, attributes);
  const size_t length_at = encoder.position();
  encoder.put_u32(0);
  const size_t start = encoder.position();
  encode_values(encoder, attributes);
  encoder.patch_u32(length_at, static_cast<uint32_t>(encoder.position() - start));
}

bool xdr_decode(xdr::Decoder& decoder, Attributes& attributes) {
  Bitmap mask;
  ByteSpan values;
  if (!xdr::decode(decoder, mask) || !decoder.get_opaque(values, kAttributeBytesMax)) return false;
  attributes = Attributes();
  if (!known_attributes().contains(mask)) {
    attributes.unsupported = true;
    return true;
  }
  xdr::Decoder value_decoder(values);
  if (!decode_values(value_decoder, mask, attributes)) return decoder.fail(value_decoder.error());
  if (value_decoder.remaining() > 0) return decoder.fail(xdr::DecodeError::kTrailing);
  return true;
}

bool operator==(const Attributes& one, const Attributes& other) {
  return one.unsupported == other.unsupported && xdr::encode_to_bytes(one) == xdr::encode_to_bytes(other);
}

const Bitmap& known_attributes() {
  static const Bitmap known = [] {
    Bitmap all;
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) all.set(Attribute::enumerator);
    PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
    return all;
  }();
  return known;
}

const char* name_of(Attribute attribute) {
  switch (attribute) {
#define PNFSRDMA_ATTRIBUTE(number, enumerator, member, type) \
  case Attribute::enumerator:                                \
    return #member;
    PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_ATTRIBUTE)
#undef PNFSRDMA_ATTRIBUTE
  }
  return nullptr;
}

}  // namespace pnfsrdma::nfs4
