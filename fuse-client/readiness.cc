// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/readiness.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "shared/base/syslog.h"

namespace pnfsrdma::fuse_client {
namespace {

// 0 when the child has reported; else its exit code, as it has printed why.
[[noreturn]] void wait_for(pid_t child, int from_child) {
  char ready = 0;
  ssize_t count = 0;
  do {
    count = ::read(from_child, &ready, 1);
  } while (count < 0 && errno == EINTR);
  if (count == 1) ::_exit(EXIT_SUCCESS);
  int status = 0;
  if (::waitpid(child, &status, 0) == child && WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::_exit(EXIT_FAILURE);
}

}  // namespace

Result<> Readiness::go_to_background() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::unexpected(Error::from_errno("pipe"));
  FileDescriptor from_child(ends[0]);
  to_parent_ = FileDescriptor(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return std::unexpected(Error::from_errno("fork"));
  if (child > 0) {
    to_parent_.reset();
    wait_for(child, from_child.get());
  }
  log_to_syslog("pnfsrdma-fuse");
  return {};
}

void Readiness::report() {
  if (!to_parent_) return;
  // Not before it is mounted: an automounter (systemd's, autofs) knows who may pass its trap by the process
  // group, and has everybody else wait for the mount.
  (void)::setsid();
  const char ready = 1;
  (void)!::write(to_parent_.get(), &ready, 1);
  to_parent_.reset();
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(null.get(), fd);
  // Holds no directory of another file system busy.
  (void)!::chdir("/");
}

}  // namespace pnfsrdma::fuse_client
