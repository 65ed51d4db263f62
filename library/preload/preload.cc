// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "library/preload/shortcut.h"

// The C library's functions in front of which this library stands (LD_PRELOAD). What is not listed here never comes
// here, and needs not: the kernel knows all that there is to know of a descriptor at any time.
namespace pnfsrdma::preload {
namespace {

constinit Shortcut shortcut;
int report_to = -1;  // for statistics, when the program ends

template <size_t kSize>
struct Name {
  char text[kSize];
  constexpr Name(const char (&name)[kSize]) { std::copy(name, name + kSize, text); }
};

// The function that the program would have called without us.
template <Name kName, typename Function>
Function* next() {
  static std::atomic<void*> kept;
  void* function = kept.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = ::dlsym(RTLD_NEXT, kName.text);
    if (function == nullptr) std::abort();
    kept.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(function);
}

std::optional<ssize_t> move(bool is_read, int file, const void* memory, size_t count,
                            std::optional<off_t> offset) {
  const iovec piece{const_cast<void*>(memory), count};
  return shortcut.take(
      {.descriptor = file, .is_read = is_read, .vector = &piece, .count = 1, .offset = offset});
}

std::optional<ssize_t> move(bool is_read, int file, const iovec* vector, int count,
                            std::optional<off_t> offset) {
  if (count < 0 || count > 1024) return std::nullopt;  // an error that the kernel tells
  return shortcut.take(
      {.descriptor = file, .is_read = is_read, .vector = vector, .count = count, .offset = offset});
}

int opened(int file, int flags) {
  if (file >= 0) shortcut.opened(file, flags);
  return file;
}

__attribute__((constructor)) void begin() {
  (void)::pthread_atfork(nullptr, [] { shortcut.forked_from_here(); }, [] { shortcut.is_child(); });
  const char* const reads = std::getenv("PNFSRDMA_PRELOAD_READS");
  if (reads != nullptr && std::strcmp(reads, "kernel") == 0) shortcut.keep_reads();
  const char* const alone = std::getenv("PNFSRDMA_PRELOAD_ALONE");
  if (alone != nullptr && std::strcmp(alone, "ring") == 0) shortcut.take_alone();
  const char* const wanted = std::getenv("PNFSRDMA_PRELOAD_STATISTICS");
  if (wanted == nullptr || *wanted == '\0') return;
  // Of its own: a program may have closed its standard error by then.
  report_to = static_cast<int>(
      *wanted == '/' ? kernel(SYS_openat, AT_FDCWD, wanted, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)
                     : kernel(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, 512));
}

__attribute__((destructor)) void end() {
  if (report_to < 0) return;
  char line[512];
  const size_t length = shortcut.statistics().print(line, sizeof line);
  (void)kernel(SYS_write, report_to, line, length);
}

}  // namespace
}  // namespace pnfsrdma::preload

using namespace pnfsrdma::preload;

#define EXPORTED extern "C" __attribute__((visibility("default")))

// --- read(2) and write(2), and what the compiler makes of them with _FORTIFY_SOURCE

#define READ_LIKE(NAME, PARAMETERS, ARGUMENTS, OFFSET)                             \
  EXPORTED ssize_t NAME PARAMETERS {                                               \
    if (const auto moved = move(true, file, memory, count, OFFSET)) return *moved; \
    return next<#NAME, ssize_t PARAMETERS>() ARGUMENTS;                            \
  }
#define WRITE_LIKE(NAME, PARAMETERS, ARGUMENTS, OFFSET)                             \
  EXPORTED ssize_t NAME PARAMETERS {                                                \
    if (const auto moved = move(false, file, memory, count, OFFSET)) return *moved; \
    return next<#NAME, ssize_t PARAMETERS>() ARGUMENTS;                             \
  }

READ_LIKE(read, (int file, void* memory, size_t count), (file, memory, count), std::nullopt)
READ_LIKE(pread, (int file, void* memory, size_t count, off_t offset), (file, memory, count, offset), offset)
READ_LIKE(pread64, (int file, void* memory, size_t count, off64_t offset), (file, memory, count, offset),
          offset)
READ_LIKE(readv, (int file, const iovec* memory, int count), (file, memory, count), std::nullopt)
READ_LIKE(preadv, (int file, const iovec* memory, int count, off_t offset), (file, memory, count, offset),
          offset)
READ_LIKE(preadv64, (int file, const iovec* memory, int count, off64_t offset), (file, memory, count, offset),
          offset)
WRITE_LIKE(write, (int file, const void* memory, size_t count), (file, memory, count), std::nullopt)
WRITE_LIKE(pwrite, (int file, const void* memory, size_t count, off_t offset), (file, memory, count, offset),
           offset)
WRITE_LIKE(pwrite64, (int file, const void* memory, size_t count, off64_t offset),
           (file, memory, count, offset), offset)
WRITE_LIKE(writev, (int file, const iovec* memory, int count), (file, memory, count), std::nullopt)
WRITE_LIKE(pwritev, (int file, const iovec* memory, int count, off_t offset), (file, memory, count, offset),
           offset)
WRITE_LIKE(pwritev64, (int file, const iovec* memory, int count, off64_t offset),
           (file, memory, count, offset), offset)

// `room`: the size of `memory`, as the compiler knows it. Less than `count`: the C library ends the program.
#define CHECKED_READ(NAME, PARAMETERS, ARGUMENTS, OFFSET)                            \
  EXPORTED ssize_t NAME PARAMETERS {                                                 \
    if (count <= room) {                                                             \
      if (const auto moved = move(true, file, memory, count, OFFSET)) return *moved; \
    }                                                                                \
    return next<#NAME, ssize_t PARAMETERS>() ARGUMENTS;                              \
  }

CHECKED_READ(__read_chk, (int file, void* memory, size_t count, size_t room), (file, memory, count, room),
             std::nullopt)
CHECKED_READ(__pread_chk, (int file, void* memory, size_t count, off_t offset, size_t room),
             (file, memory, count, offset, room), offset)
CHECKED_READ(__pread64_chk, (int file, void* memory, size_t count, off64_t offset, size_t room),
             (file, memory, count, offset, room), offset)

// With flags it is the kernel's; at -1 it is at the position.
#define FLAGGED(NAME, IS_READ, OFFSET)                                                                      \
  EXPORTED ssize_t NAME(int file, const iovec* vector, int count, OFFSET offset, int flags) {               \
    const auto at = offset == -1 ? std::nullopt : std::optional<off_t>(offset);                             \
    if (flags == 0) {                                                                                       \
      if (const auto moved = move(IS_READ, file, vector, count, at)) return *moved;                         \
    }                                                                                                       \
    return next<#NAME, ssize_t(int, const iovec*, int, OFFSET, int)>()(file, vector, count, offset, flags); \
  }

FLAGGED(preadv2, true, off_t)
FLAGGED(preadv64v2, true, off64_t)
FLAGGED(pwritev2, false, off_t)
FLAGGED(pwritev64v2, false, off64_t)

// --- what makes a descriptor

#define OPEN_LIKE(NAME, PARAMETERS, ...)                                                      \
  EXPORTED int NAME(PARAMETERS, int flags, ...) {                                             \
    mode_t mode = 0;                                                                          \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                         \
      va_list arguments;                                                                      \
      va_start(arguments, flags);                                                             \
      mode = va_arg(arguments, mode_t);                                                       \
      va_end(arguments);                                                                      \
    }                                                                                         \
    return opened(next<#NAME, int(PARAMETERS, int, ...)>()(__VA_ARGS__, flags, mode), flags); \
  }
#define FOLDER_AND_PATH int folder, const char *path

OPEN_LIKE(open, const char* path, path)
OPEN_LIKE(open64, const char* path, path)
OPEN_LIKE(openat, FOLDER_AND_PATH, folder, path)
OPEN_LIKE(openat64, FOLDER_AND_PATH, folder, path)

EXPORTED int creat(const char* path, mode_t mode) {
  return opened(next<"creat", int(const char*, mode_t)>()(path, mode), O_WRONLY);
}
EXPORTED int creat64(const char* path, mode_t mode) {
  return opened(next<"creat64", int(const char*, mode_t)>()(path, mode), O_WRONLY);
}
EXPORTED int __open_2(const char* path, int flags) {
  return opened(next<"__open_2", int(const char*, int)>()(path, flags), flags);
}
EXPORTED int __open64_2(const char* path, int flags) {
  return opened(next<"__open64_2", int(const char*, int)>()(path, flags), flags);
}
EXPORTED int __openat_2(int folder, const char* path, int flags) {
  return opened(next<"__openat_2", int(int, const char*, int)>()(folder, path, flags), flags);
}
EXPORTED int __openat64_2(int folder, const char* path, int flags) {
  return opened(next<"__openat64_2", int(int, const char*, int)>()(folder, path, flags), flags);
}

EXPORTED int dup(int file) noexcept {
  const int copy = next<"dup", int(int)>()(file);
  if (copy >= 0) shortcut.copied(file, copy);
  return copy;
}
EXPORTED int dup2(int file, int target) noexcept {
  const int copy = next<"dup2", int(int, int)>()(file, target);
  if (copy >= 0) shortcut.copied(file, copy);
  return copy;
}
EXPORTED int dup3(int file, int target, int flags) noexcept {
  const int copy = next<"dup3", int(int, int, int)>()(file, target, flags);
  if (copy >= 0) shortcut.copied(file, copy);
  return copy;
}

// Whoever filters its own system calls does this first, and could not bear ours.
EXPORTED int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP) shortcut.stop();
  return next<"prctl", int(int, ...)>()(option, words[0], words[1], words[2], words[3]);
}
