// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/answer_flags.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "fuse-client/birth_question.h"

namespace pnfsrdma::fuse_client {
namespace {

// FUSE_DIRECT_IO_ALLOW_MMAP, which older headers do not have.
constexpr uint64_t kDirectIoAllowMmap = uint64_t{1} << 36;
constexpr uint64_t kFlags = kDirectIoAllowMmap | FUSE_HANDLE_KILLPRIV_V2;

// FOPEN_PARALLEL_DIRECT_WRITES, the same.
constexpr uint32_t kParallelDirectWrites = 1 << 6;

using AddFlags = bool (*)(std::span<const iovec> answer);
thread_local AddFlags add_to_next = nullptr;

ssize_t write_answer(int fd, iovec* pieces, int count, void*) {
  if (const AddFlags add = std::exchange(add_to_next, nullptr))
    (void)add({pieces, static_cast<size_t>(count)});
  if (const BirthQuestion* question = BirthQuestion::current()) {
    const auto answer = question->answer_from({pieces, static_cast<size_t>(count)});
    if (answer) return ::write(fd, answer->data(), answer->size());
  }
  return ::writev(fd, pieces, count);
}

ssize_t read_request(int fd, void* buffer, size_t size, void*) {
  return ::read(fd, buffer, size);
}

bool is_success(std::span<const iovec> answer) {
  fuse_out_header header{};
  if (answer.size() != 2 || answer[0].iov_len != sizeof header) return false;
  std::memcpy(&header, answer[0].iov_base, sizeof header);
  return header.error == 0;
}

}  // namespace

void init_is_answered_next() {
  add_to_next = add_init_flags;
}

void direct_open_is_answered_next() {
  add_to_next = add_direct_open_flags;
}

bool add_direct_open_flags(std::span<const iovec> answer) {
  fuse_open_out open{};
  if (!is_success(answer)) return false;
  // Of a FUSE_CREATE behind the new entry.
  const size_t size = answer[1].iov_len;
  if (size != sizeof open && size != sizeof(fuse_entry_out) + sizeof open) return false;
  std::byte* const at = static_cast<std::byte*>(answer[1].iov_base) + (size - sizeof open);
  std::memcpy(&open, at, sizeof open);
  open.open_flags |= kParallelDirectWrites;
  std::memcpy(at, &open, sizeof open);
  return true;
}

bool add_init_flags(std::span<const iovec> answer) {
  fuse_init_out init{};
  // What kernels before 2.6.39 were answered ends in front of the second word of flags.
  if (!is_success(answer) || answer[1].iov_len < offsetof(fuse_init_out, flags2) + sizeof init.flags2)
    return false;
  std::memcpy(&init, answer[1].iov_base, std::min(sizeof init, answer[1].iov_len));
  init.flags |= static_cast<uint32_t>(kFlags) | FUSE_INIT_EXT;
  init.flags2 |= static_cast<uint32_t>(kFlags >> 32);
  std::memcpy(answer[1].iov_base, &init, std::min(sizeof init, answer[1].iov_len));
  return true;
}

Result<> extend_answers(fuse_session* session) {
  fuse_custom_io io{};
  io.writev = write_answer;
  io.read = read_request;
  const int error = fuse_session_custom_io(session, &io, fuse_session_fd(session));
  if (error != 0) return fail(error < 0 ? -error : error, "fuse_session_custom_io");
  return {};
}

}  // namespace pnfsrdma::fuse_client
