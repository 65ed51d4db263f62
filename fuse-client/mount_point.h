// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fuse-client/fuse_header.h"
#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

class FileSystem;

// A mounted FUSE session: mounted by the constructor's factory, unmounted when it goes. Owned by run_mount().
class MountPoint {
 public:
  static Result<MountPoint> mount(FileSystem& file_system, const std::vector<std::string>& arguments,
                                  const std::string& path);
  MountPoint(MountPoint&& other) noexcept;
  MountPoint& operator=(MountPoint&&) = delete;
  ~MountPoint();

  fuse_session* session() const { return session_; }
  // Lazily, if it is in use. Idempotent.
  void unmount();
  // The kernel has given the connection up (umount -f, or an abort through /sys/fs/fuse).
  bool aborted_by_kernel() const;

 private:
  explicit MountPoint(fuse_session* session) : session_(session) {}
  fuse_session* session_ = nullptr;
  bool mounted_ = false;
};

}  // namespace pnfsrdma::fuse_client
