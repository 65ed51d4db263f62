// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "fuse-client/inode.h"

// One file that the kernel knows, and what the server says of it.
namespace pnfsrdma::fuse_client::inode_case {

using namespace std::chrono_literals;

inline nfs4::FileHandle handle(std::string_view text) {
  return nfs4::FileHandle(as_bytes(text));
}

inline client::FileAttributes attributes(uint64_t change, off_t size = 10) {
  client::FileAttributes file;
  file.change = change;
  file.status.st_mode = S_IFREG | 0644;
  file.status.st_size = size;
  return file;
}

inline nfs4::Stateid stateid(uint8_t other, uint32_t seqid) {
  nfs4::Stateid made;
  made.seqid = seqid;
  made.other.fill(std::byte{other});
  return made;
}

class InodeTest : public testing::Test {
 protected:
  Inode inode{handle("f"), 1};
  static constexpr Inode::Versions kNow{.data = 7};
  const AttributeTimeouts timeouts;
  const SteadyTime start = SteadyTime(1h);
};

}  // namespace pnfsrdma::fuse_client::inode_case
