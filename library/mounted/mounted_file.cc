// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/mounted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "library/mounted/mounted_watch.h"

namespace pnfsrdma::library::mounted {
namespace {

// `transfer` moves what is left behind `done` bytes, as pread(2) and pwrite(2) do.
template <typename Transfer>
Result<size_t> move_all(size_t count, std::string_view what, Transfer transfer) {
  for (size_t done = 0;;) {
    const ssize_t moved = done < count ? transfer(done) : 0;
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && done == 0) return std::unexpected(Error::from_errno(std::string(what)));
    if (moved <= 0) return done;  // what was moved counts; an error comes again
    done += static_cast<size_t>(moved);
  }
}

Result<> outcome_of(int result, std::string_view what) {
  if (result != 0) return std::unexpected(Error::from_errno(std::string(what)));
  return {};
}

Result<> check_kind(mode_t mode, std::string_view path) {
  if (S_ISDIR(mode)) return fail(EISDIR, fmt::format("{} is a directory", path));
  if (!S_ISREG(mode)) return fail(EINVAL, fmt::format("{} is not a regular file", path));
  return {};
}

ring::WordChange number_of(WordChange::Kind kind) {
  switch (kind) {
    case WordChange::Kind::kStore:
      break;
    case WordChange::Kind::kCompareAndSwap:
      return ring::WordChange::kCompareAndSwap;
    case WordChange::Kind::kFetchAndAdd:
      return ring::WordChange::kFetchAndAdd;
  }
  return ring::WordChange::kStore;
}

// The mount tells an errno only.
std::string_view why_no_word(int error) {
  switch (error) {
    case EINVAL:
      return "the file ends before the end of the word";
    case ENOTSUP:
      return "mount or brick are of a version that changes no words, the file's data does not go by RDMA, or "
             "the "
             "mount has the option writeback";
    case EAGAIN:
      return "no memory of the file is granted just now; nothing was changed";
    case EIO:
      return "whether the word was changed, or that is durable, is not known: the mount's log says why";
    default:
      return "change of a word";
  }
}

struct flock lock_of(int type, uint64_t offset, uint64_t length) {
  struct flock lock{};
  lock.l_type = static_cast<int16_t>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = static_cast<off_t>(length);
  return lock;
}

std::string_view why_no_signal(int error) {
  if (error == EIO)
    return "something that was written is lost, or cannot be made durable: the mount's log says why";
  return why_no_events(error, "signal");
}

}  // namespace

MountedFile::MountedFile(MountConnection& connection, FileDescriptor file, int flags)
    : OpenFile(connection, flags), connection_(connection), file_(std::move(file)) {
  ring::Attach attach{.secret = connection.secret()};
  if (::ioctl(file_.get(), ring::kAttach, &attach) == 0) number_ = attach.file;
}

Result<std::unique_ptr<MountedFile>> MountedFile::open(MountConnection& connection, const Names& names,
                                                       std::string_view path, int flags, mode_t mode) {
  // Nobody waits for the other end of a FIFO.
  auto opened = names.open(path, flags | O_DIRECT | O_NONBLOCK | O_NOCTTY, mode);
  if (!opened && opened.error().number() == EINVAL) {
    TRY_ASSIGN(const struct stat status, names.status(path));
    TRY(check_kind(status.st_mode, path));  // what has no direct I/O
  }
  TRY_ASSIGN(FileDescriptor file, std::move(opened));
  struct stat status{};
  TRY(outcome_of(::fstat(file.get(), &status), path));
  TRY(check_kind(status.st_mode, path));
  return std::unique_ptr<MountedFile>(new MountedFile(connection, std::move(file), flags));
}

// A child that has not called exec(3) yet keeps the open file, and its locks, alive.
Result<> MountedFile::close() {
  if (locked_) (void)unlock(0, 0);
  return outcome_of(::close(file_.release()), "close");
}

Result<size_t> MountedFile::read(void* buffer, size_t count, uint64_t offset) {
  return move_all(count, "read", [&](size_t done) {
    return ::pread(file_.get(), static_cast<std::byte*>(buffer) + done, count - done,
                   static_cast<off_t>(offset + done));
  });
}

Result<size_t> MountedFile::write(const void* buffer, size_t count, uint64_t offset, bool durable) {
  if (appends()) {
    TRY(append(buffer, count, durable));
    return count;
  }
  return move_all(count, "write", [&](size_t done) {
    const iovec piece{static_cast<std::byte*>(const_cast<void*>(buffer)) + done, count - done};
    return ::pwritev2(file_.get(), &piece, 1, static_cast<off_t>(offset + done), durable ? RWF_DSYNC : 0);
  });
}

Result<uint64_t> MountedFile::append_piece(const SharedMemory& memory, size_t at, size_t length,
                                           bool durable) {
  ring::Append append{.flags = durable ? ring::kDurable : 0,
                      .secret = connection_.secret(),
                      .memory = memory.number(),
                      .memory_offset = at,
                      .length = length};
  if (::ioctl(file_.get(), ring::kAppend, &append) != 0) return std::unexpected(Error::from_errno("append"));
  return append.offset;
}

Result<uint64_t> MountedFile::append(const void* buffer, size_t count, bool durable) {
  if (!writable()) return fail(EBADF, "the file is not open for writing");
  if (count == 0) {
    TRY_ASSIGN(const struct stat status, this->status());
    return static_cast<uint64_t>(status.st_size);
  }
  const auto shared = connection_.find(buffer, count);
  std::unique_ptr<SharedMemory> bounce;
  if (!shared) {
    TRY_ASSIGN(bounce, connection_.take_bounce());
  }
  uint64_t first = 0;
  Result<> outcome;
  for (size_t done = 0; done < count && outcome; done += MountConnection::kBounceSize) {
    const size_t length = std::min(count - done, MountConnection::kBounceSize);
    if (!shared) std::memcpy(bounce->data(), static_cast<const std::byte*>(buffer) + done, length);
    const auto at = shared ? append_piece(shared.memory(), shared.offset() + done, length, durable)
                           : append_piece(*bounce, 0, length, durable);
    if (done == 0 && at) first = *at;
    if (!at)
      outcome = done == 0 ? std::unexpected(at.error())
                          : fail(EIO, fmt::format("{} of {} bytes were appended", done, count));
  }
  if (bounce) connection_.give_back(std::move(bounce));
  TRY(outcome);
  return first;
}

Result<> MountedFile::sync(bool data_only) {
  return outcome_of(data_only ? ::fdatasync(file_.get()) : ::fsync(file_.get()), "sync");
}

Result<> MountedFile::truncate(uint64_t size) {
  return outcome_of(::ftruncate(file_.get(), static_cast<off_t>(size)), "truncate");
}

Result<struct stat> MountedFile::status() {
  struct stat status{};
  TRY(outcome_of(::fstat(file_.get(), &status), "stat"));
  return status;
}

Result<uint64_t> MountedFile::change_word(const WordChange& change) {
  ring::ChangeWord word{.flags = change.durable ? ring::kDurable : 0,
                        .change = static_cast<uint32_t>(number_of(change.kind)),
                        .offset = change.offset,
                        .operand = change.operand,
                        .expected = change.expected};
  if (::ioctl(file_.get(), ring::kChangeWord, &word) == 0) return word.before;
  const int error = errno == ENOTTY ? ENOTSUP : errno;
  return fail(error, std::string(why_no_word(error)));
}

static_assert(OpenFile::kVerifiedBytesMax <= ring::kVerifyBytesMax);

Result<OpenFile::Verified> MountedFile::verify(std::span<const pnfsrdma_range> ranges) {
  Verified verified;
  while (!ranges.empty()) {
    ring::Verify verify{.count =
                            static_cast<uint32_t>(std::min<size_t>(ranges.size(), ring::kVerifyRangesMax))};
    for (size_t i = 0; i < verify.count; ++i) verify.ranges[i] = {ranges[i].offset, ranges[i].length};
    if (::ioctl(file_.get(), ring::kVerify, &verify) != 0) {
      const int error = errno == ENOTTY ? ENOTSUP : errno;
      return fail(error, error == EINVAL ? "the file ends before the end of a range" : "verification");
    }
    verified.medium = verified.medium && verify.medium != 0;
    verified.checksums.insert(verified.checksums.end(), verify.checksums.begin(),
                              verify.checksums.begin() + verify.count);
    ranges = ranges.subspan(verify.count);
  }
  return verified;
}

Result<std::unique_ptr<Watch>> MountedFile::watch(const pnfsrdma_range& range) {
  return MountedWatch::make(*this, connection_, file_.get(), range);
}

// Locks of the open file description: they are this file's, whatever else the process has open.
Result<> MountedFile::lock(const LockWish& wish) {
  struct flock lock = lock_of(wish.exclusive ? F_WRLCK : F_RDLCK, wish.offset, wish.length);
  locked_ = true;
  if (wish.timeout_ms < 0) return outcome_of(::fcntl(file_.get(), F_OFD_SETLKW, &lock), "lock");
  LockWait wait(wish.timeout_ms);
  for (;;) {
    if (::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0) return {};
    if (errno != EAGAIN && errno != EACCES) return std::unexpected(Error::from_errno("lock"));
    TRY(wait.pause());
  }
}

Result<> MountedFile::unlock(uint64_t offset, uint64_t length) {
  struct flock lock = lock_of(F_UNLCK, offset, length);
  return outcome_of(::fcntl(file_.get(), F_OFD_SETLK, &lock), "unlock");
}

Result<bool> MountedFile::may_lock(const LockWish& wish) {
  struct flock lock = lock_of(wish.exclusive ? F_WRLCK : F_RDLCK, wish.offset, wish.length);
  TRY(outcome_of(::fcntl(file_.get(), F_OFD_GETLK, &lock), "lock"));
  return lock.l_type == F_UNLCK;
}

Result<> MountedFile::signal(const pnfsrdma_range& range, uint64_t value) {
  ring::Signal signal{.offset = range.offset, .length = range.length, .value = value};
  if (::ioctl(file_.get(), ring::kSignal, &signal) == 0) return {};
  const int error = errno == ENOTTY ? ENOTSUP : errno;
  return fail(error, std::string(why_no_signal(error)));
}

}  // namespace pnfsrdma::library::mounted
