// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/init_answer.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace pnfsrdma::fuse_client {
namespace {

// FUSE_DIRECT_IO_ALLOW_MMAP, which older headers do not have.
constexpr uint64_t kDirectIoAllowMmap = uint64_t{1} << 36;
constexpr uint64_t kFlags = kDirectIoAllowMmap | FUSE_HANDLE_KILLPRIV_V2;

thread_local bool answers_init = false;

ssize_t write_answer(int fd, iovec* pieces, int count, void*) {
  if (std::exchange(answers_init, false)) (void)add_init_flags({pieces, static_cast<size_t>(count)});
  return ::writev(fd, pieces, count);
}

ssize_t read_request(int fd, void* buffer, size_t size, void*) {
  return ::read(fd, buffer, size);
}

}  // namespace

void init_is_answered_next() {
  answers_init = true;
}

bool add_init_flags(std::span<const iovec> answer) {
  fuse_out_header header{};
  fuse_init_out init{};
  if (answer.size() != 2 || answer[0].iov_len != sizeof header) return false;
  std::memcpy(&header, answer[0].iov_base, sizeof header);
  // What kernels before 2.6.39 were answered ends in front of the second word of flags.
  if (header.error != 0 || answer[1].iov_len < offsetof(fuse_init_out, flags2) + sizeof init.flags2)
    return false;
  std::memcpy(&init, answer[1].iov_base, std::min(sizeof init, answer[1].iov_len));
  init.flags |= static_cast<uint32_t>(kFlags) | FUSE_INIT_EXT;
  init.flags2 |= static_cast<uint32_t>(kFlags >> 32);
  std::memcpy(answer[1].iov_base, &init, std::min(sizeof init, answer[1].iov_len));
  return true;
}

Result<> extend_init_answer(fuse_session* session) {
  fuse_custom_io io{};
  io.writev = write_answer;
  io.read = read_request;
  const int error = fuse_session_custom_io(session, &io, fuse_session_fd(session));
  if (error != 0) return fail(error < 0 ? -error : error, "fuse_session_custom_io");
  return {};
}

}  // namespace pnfsrdma::fuse_client
