// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace pnfsrdma::fuse_client {

// How long the thread, of this host, may make a file: RLIMIT_FSIZE (getrlimit(2)), which the kernel looks at where it
// sees a write, and not where a file grows by an ioctl(2). UINT64_MAX: there is none, or the thread cannot be asked (it
// is gone, or in another PID namespace). One system call, and three where this process has no CAP_SYS_RESOURCE.
uint64_t file_size_limit(pid_t thread);
// The same of /proc/<tid>/limits.
uint64_t file_size_limit_in(std::string_view limits);

}  // namespace pnfsrdma::fuse_client
