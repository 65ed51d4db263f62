// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/content.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>

namespace pnfsrdma::cli {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

// The next byte that is in no hole; `size`: there is none. Where holes are not known all is data.
uint64_t next_data(int file, uint64_t offset, uint64_t size) {
  const off_t found = lseek(file, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return std::min(static_cast<uint64_t>(found), size);
  return errno == ENXIO ? size : offset;
}

// All of the piece, with zeros where the file has become shorter.
Result<> read_piece(int file, std::span<char> piece, uint64_t offset) {
  while (!piece.empty()) {
    const ssize_t count = pread(file, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno, "read");
    if (count == 0) break;
    piece = piece.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  std::ranges::fill(piece, '\0');
  return {};
}

Result<> write_piece(int file, std::span<const char> piece, uint64_t offset) {
  while (!piece.empty()) {
    const ssize_t count = pwrite(file, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno, "write");
    piece = piece.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

}  // namespace

Result<FileDescriptor> open_file(const Entry& file) {
  FileDescriptor opened(
      openat(file.directory, file.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened) return fail(errno, "open");
  struct stat status{};
  if (fstat(opened.get(), &status) != 0) return fail(errno, "stat");
  if (!S_ISREG(status.st_mode)) return fail(ESTALE, "open");
  return opened;
}

Result<std::string> target_of(const Entry& link) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = readlinkat(link.directory, link.name.c_str(), target.data(), target.size());
  if (size < 0) return fail(errno, "readlink");
  target.resize(static_cast<size_t>(size));
  return target;
}

Result<bool> same_bytes(const Entry& before, const Entry& after) {
  TRY_ASSIGN(const FileDescriptor first, open_file(before));
  TRY_ASSIGN(const FileDescriptor second, open_file(after));
  const uint64_t size = before.status.size;
  std::string one(kPiece, '\0');
  std::string other(kPiece, '\0');
  for (uint64_t offset = 0;;) {
    offset = std::min(next_data(first.get(), offset, size), next_data(second.get(), offset, size));
    const size_t length = std::min<uint64_t>(kPiece, size - offset);
    if (length == 0) return true;
    TRY(read_piece(first.get(), std::span(one).first(length), offset));
    TRY(read_piece(second.get(), std::span(other).first(length), offset));
    if (std::memcmp(one.data(), other.data(), length) != 0) return false;
    offset += length;
  }
}

Result<> copy_bytes(int source, int target, uint64_t size) {
  std::string piece(kPiece, '\0');
  for (uint64_t offset = next_data(source, 0, size); offset < size;) {
    const off_t hole = lseek(source, static_cast<off_t>(offset), SEEK_HOLE);
    const uint64_t end = hole < 0 ? size : std::min(static_cast<uint64_t>(hole), size);
    const size_t length = std::min<uint64_t>(kPiece, std::max(end, offset + 1) - offset);
    TRY(read_piece(source, std::span(piece).first(length), offset));
    TRY(write_piece(target, std::span(piece).first(length), offset));
    offset = next_data(source, offset + length, size);
  }
  if (ftruncate(target, static_cast<off_t>(size)) != 0) return fail(errno, "truncate");
  return {};
}

}  // namespace pnfsrdma::cli
