// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/private_data.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::rdma::verbs {
namespace {

constexpr std::byte kMagic[2] = {std::byte{'p'}, std::byte{'R'}};
constexpr std::byte kNativeFlush{1};
constexpr std::byte kAtomicWrite{2};

}  // namespace

Bytes encode_private_data(const PrivateData& data) {
  if (!data.prefixed) return data.user;
  CHECK(data.user.size() <= kUserPrivateDataMax);
  std::byte flags{0};
  if (data.native_flush) flags |= kNativeFlush;
  if (data.atomic_write) flags |= kAtomicWrite;
  Bytes bytes = {kMagic[0], kMagic[1], flags, static_cast<std::byte>(data.user.size())};
  bytes.insert(bytes.end(), data.user.begin(), data.user.end());
  return bytes;
}

PrivateData decode_private_data(ByteSpan bytes) {
  PrivateData data;
  const bool magic = bytes.size() >= kPrefixSize && std::ranges::equal(bytes.first(2), kMagic);
  const size_t length = magic ? static_cast<size_t>(bytes[3]) : 0;
  if (!magic || length > bytes.size() - kPrefixSize) {
    data.user.assign(bytes.begin(), bytes.end());
    return data;
  }
  data.prefixed = true;
  data.native_flush = (bytes[2] & kNativeFlush) != std::byte{0};
  data.atomic_write = (bytes[2] & kAtomicWrite) != std::byte{0};
  const ByteSpan user = bytes.subspan(kPrefixSize, length);
  data.user.assign(user.begin(), user.end());
  return data;
}

}  // namespace pnfsrdma::rdma::verbs
