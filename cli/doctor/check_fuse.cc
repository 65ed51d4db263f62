// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/checks.h"

namespace pnfsrdma::cli {
namespace {

constexpr uint32_t kSetUserId = 04000;

Finding fuse_device(const Host& host) {
  if (!host.exists("/dev/fuse")) {
    return {"/dev/fuse", Verdict::kProblem, "missing: nothing can be mounted", "modprobe fuse"};
  }
  if (!host.may_open("/dev/fuse")) {
    return {"/dev/fuse", Verdict::kProblem, "this user may not open it", "chmod 666 /dev/fuse"};
  }
  return {"/dev/fuse", Verdict::kOk, "there, and may be opened", ""};
}

Finding fusermount(const Host& host) {
  const std::string path = host.program("fusermount3");
  const bool root = host.user() == 0;
  if (path.empty()) {
    return {"fusermount3", root ? Verdict::kWarning : Verdict::kProblem,
            root ? "missing: root mounts without it, other users cannot" : "missing: only root can mount",
            "apt-get install fuse3"};
  }
  if ((host.mode(path) & kSetUserId) == 0) {
    return {"fusermount3", root ? Verdict::kWarning : Verdict::kProblem,
            path + " is not set-user-id: only root can mount", "chmod u+s " + path};
  }
  return {"fusermount3", Verdict::kOk, path, ""};
}

// mount(8) calls it for -t pnfsrdma and for fstab.
Finding mount_helper(const Host& host) {
  for (const char* path : {"/sbin/mount.pnfsrdma", "/usr/sbin/mount.pnfsrdma"}) {
    if (host.exists(path)) return {"mount helper", Verdict::kOk, path, ""};
  }
  const std::string program = host.program("pnfsrdma-fuse");
  if (program.empty()) {
    return {"mount helper", Verdict::kWarning,
            "the client is not installed: mount -t pnfsrdma says \"unknown filesystem type\"",
            "install the package pnfsrdma-fuse"};
  }
  return {"mount helper", Verdict::kWarning,
          "no /sbin/mount.pnfsrdma: mount -t pnfsrdma and fstab do not work",
          "ln -s " + program + " /sbin/mount.pnfsrdma"};
}

Finding user_allow_other(const Host& host) {
  const auto text = host.read("/etc/fuse.conf");
  const bool allowed = text && ("\n" + *text).find("\nuser_allow_other") != std::string::npos;
  if (allowed || host.user() == 0) {
    return {"fuse.conf", Verdict::kOk,
            allowed ? "user_allow_other is set" : "root may use -o allow_other anyhow", ""};
  }
  return {"fuse.conf", Verdict::kWarning, "a mount of this user is for this user alone",
          "echo user_allow_other >>/etc/fuse.conf   (then mount with -o allow_other)"};
}

}  // namespace

Findings check_fuse(const Host& host) {
  return {fuse_device(host), fusermount(host), mount_helper(host), user_allow_other(host)};
}

}  // namespace pnfsrdma::cli
