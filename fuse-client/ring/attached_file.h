// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "fuse-client/inode.h"

namespace pnfsrdma::fuse_client {

// An open file of the kernel as a program's ring knows it: what its descriptor may do, and no more.
struct AttachedFile {
  const OpenFile* open_file = nullptr;  // which one: not to be used
  std::shared_ptr<Inode> inode;
  std::shared_ptr<initiator::FileIo> data;
  bool readable = false;
  bool writable = false;  // and a write goes where it says
  bool durable = false;   // O_DSYNC
  // Guarded by the RingServer: operations under way, and whether their program has ended.
  size_t in_flight = 0;
  bool orphaned = false;
};

}  // namespace pnfsrdma::fuse_client
