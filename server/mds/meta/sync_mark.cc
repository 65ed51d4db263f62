// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/sync_mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr const char* kFile = "/sync-mark";
constexpr mode_t kMode = 0600;
constexpr size_t kPieceBytes = size_t{1} << 20;

// secret, sequence, and a sum over both, big-endian: cut off anywhere and filled up with zeros, the sum is
// wrong.
SyncMark::Mark encode(uint64_t secret, uint64_t synced) {
  SyncMark::Mark mark;
  auto* at = reinterpret_cast<std::byte*>(mark.data());
  store_big_endian(at, secret);
  store_big_endian(at + sizeof(secret), synced);
  uint32_t sum = 0x811c9dc5;  // FNV-1a: against chance. Malice would have to know the secret
  for (size_t i = 0; i < 2 * sizeof(uint64_t); ++i) sum = (sum ^ static_cast<uint8_t>(mark[i])) * 0x01000193;
  store_big_endian(at + 2 * sizeof(uint64_t), sum);
  return mark;
}

struct Decoded {
  uint64_t secret = 0;
  uint64_t synced = 0;
};
std::optional<Decoded> decode(std::string_view bytes) {
  const auto* at = reinterpret_cast<const std::byte*>(bytes.data());
  const Decoded found{load_big_endian<uint64_t>(at), load_big_endian<uint64_t>(at + sizeof(uint64_t))};
  const SyncMark::Mark sound = encode(found.secret, found.synced);
  if (bytes != std::string_view(sound.data(), sound.size())) return std::nullopt;
  return found;
}

Result<> sync_directory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0) return std::unexpected(Error::from_errno("syncing " + directory));
  return {};
}

}  // namespace

Result<std::unique_ptr<SyncMark>> SyncMark::open(const std::string& directory, Random& random) {
  const std::string path = directory + kFile;
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
  if (!file) return std::unexpected(Error::from_errno("opening " + path));
  Mark stored{};
  const ssize_t size = pread(file.get(), stored.data(), stored.size(), 0);
  if (size < 0) return std::unexpected(Error::from_errno("reading " + path));
  if (const auto found = decode({stored.data(), stored.size()}); found && found->secret != 0) {
    std::unique_ptr<SyncMark> mark(new SyncMark(std::move(file), found->secret));
    mark->now_ = found->synced;
    return mark;
  }
  if (size > 0) log_warning("meta", "sync-mark-unreadable path={} what=\"it is recreated\"", path);
  std::unique_ptr<SyncMark> mark(new SyncMark(std::move(file), random.next_u64() | 1));
  TRY(mark->set_back(0));
  TRY(sync_directory(directory));
  return mark;
}

SyncMark::Mark SyncMark::mark() const {
  return encode(secret_, synced());
}

Result<uint64_t> SyncMark::highest_in(const std::string& path) const {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::unexpected(Error::from_errno("opening " + path));
  const Mark any = encode(secret_, 0);
  const std::string_view secret(any.data(), sizeof(secret_));
  std::vector<char> piece(kPieceBytes);
  uint64_t highest = 0;
  size_t kept = 0;  // the end of the piece before, where a mark may have begun
  while (true) {
    const ssize_t got = read(file.get(), piece.data() + kept, piece.size() - kept);
    if (got < 0) return std::unexpected(Error::from_errno("reading " + path));
    if (got == 0) return highest;
    const std::string_view bytes(piece.data(), kept + static_cast<size_t>(got));
    for (size_t at = bytes.find(secret); at != bytes.npos && at + kBytes <= bytes.size();
         at = bytes.find(secret, at + 1)) {
      if (const auto found = decode(bytes.substr(at, kBytes))) highest = std::max(highest, found->synced);
    }
    kept = std::min(bytes.size(), kBytes - 1);
    std::copy(bytes.end() - static_cast<long>(kept), bytes.end(), piece.begin());
  }
}

Result<> SyncMark::write(const FileDescriptor& file, uint64_t synced) const {
  const Mark bytes = encode(secret_, synced);
  const ssize_t written = pwrite(file.get(), bytes.data(), bytes.size(), 0);
  if (written < 0) return std::unexpected(Error::from_errno("writing the mark of the last sync"));
  return {};
}

void SyncMark::note(uint64_t synced) {
  auto file = file_.lock();
  if (synced <= now_) return;
  now_.store(synced, std::memory_order_release);
  const Result<> written = write(file->fd, synced);
  if (!written && !std::exchange(file->failed, true))
    log_warning("meta", "sync-mark-not-written error=\"{}\"", written.error().to_string());
}

Result<> SyncMark::set_back(uint64_t synced) {
  auto file = file_.lock();
  now_.store(synced, std::memory_order_release);
  TRY(write(file->fd, synced));
  if (fdatasync(file->fd.get()) != 0)
    return std::unexpected(Error::from_errno("syncing the mark of the last sync"));
  return {};
}

}  // namespace pnfsrdma::mds
