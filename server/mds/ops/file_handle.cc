// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/file_handle.h"

namespace pnfsrdma::mds {

namespace {

inline constexpr uint16_t kHandleVersion = 1;
inline constexpr size_t kHandleSize = 20;

}  // namespace

nfs4::FileHandle encode_handle(const ObjectHandle& handle) {
  nfs4::FileHandle bytes(kHandleSize);
  store_big_endian(bytes.data(), kHandleVersion);
  store_big_endian(bytes.data() + 2, handle.export_id);
  store_big_endian(bytes.data() + 4, handle.inode);
  store_big_endian(bytes.data() + 12, handle.generation);
  return bytes;
}

std::expected<ObjectHandle, nfs4::Status> decode_handle(const nfs4::FileHandle& bytes) {
  if (bytes.size() != kHandleSize || load_big_endian<uint16_t>(bytes.data()) != kHandleVersion) {
    return std::unexpected(nfs4::Status::kBadHandle);
  }
  return ObjectHandle{.export_id = load_big_endian<uint16_t>(bytes.data() + 2),
                      .inode = load_big_endian<uint64_t>(bytes.data() + 4),
                      .generation = load_big_endian<uint64_t>(bytes.data() + 12)};
}

}  // namespace pnfsrdma::mds
