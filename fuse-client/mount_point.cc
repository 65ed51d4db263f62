// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_point.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "fuse-client/answer_flags.h"
#include "fuse-client/file_system.h"
#include "fuse-client/fuse_operations.h"

namespace pnfsrdma::fuse_client {

Result<MountPoint> MountPoint::mount(FileSystem& file_system, const std::vector<std::string>& arguments,
                                     const std::string& path) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  fuse_args args{};
  args.argc = static_cast<int>(pointers.size());
  args.argv = pointers.data();
  const fuse_lowlevel_ops operations = fuse_operations();
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, &file_system);
  fuse_opt_free_args(&args);
  if (session == nullptr) return fail(EINVAL, "libfuse refuses the mount options (see the line above)");
  MountPoint point(session);
  if (fuse_session_mount(session, path.c_str()) != 0) {
    return fail(EPERM,
                fmt::format("mounting on {} failed (see the line above): is fuse3 installed, does /dev/fuse "
                            "exist, are you root?",
                            path));
  }
  point.mounted_ = true;
  TRY(extend_answers(session));
  return point;
}

MountPoint::MountPoint(MountPoint&& other) noexcept
    : session_(std::exchange(other.session_, nullptr)), mounted_(std::exchange(other.mounted_, false)) {}

MountPoint::~MountPoint() {
  if (session_ == nullptr) return;
  unmount();
  fuse_session_destroy(session_);
}

void MountPoint::unmount() {
  if (std::exchange(mounted_, false)) fuse_session_unmount(session_);
}

bool MountPoint::aborted_by_kernel() const {
  pollfd watched{.fd = fuse_session_fd(session_), .events = 0, .revents = 0};
  return ::poll(&watched, 1, 0) > 0 && (watched.revents & (POLLERR | POLLNVAL)) != 0;
}

}  // namespace pnfsrdma::fuse_client
