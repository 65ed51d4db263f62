// SPDX-License-Identifier: Apache-2.0
#include "library/preload/shortcut.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

namespace pnfsrdma::preload {
namespace {

#ifndef SYS_cachestat
constexpr long kCacheStat = 451;
#else
constexpr long kCacheStat = SYS_cachestat;
#endif
struct CacheRange {
  uint64_t offset, length;
};
struct CacheStat {
  uint64_t cached, dirty, under_write_back, evicted, recently_evicted;
};

constexpr size_t kPage = 4096;

constexpr mode_t kGroupExecutes = S_ISGID | S_IXGRP;

bool clears_privileges(mode_t mode) {
  return (mode & S_ISUID) != 0 || (mode & kGroupExecutes) == kGroupExecutes;
}

bool is_limited() {
  rlimit limit{};
  return kernel(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY;
}

ssize_t result_of(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

class UnderWay {
 public:
  explicit UnderWay(std::atomic<int>& count) : is_alone(count.fetch_add(1) == 0), count_(count) {}
  ~UnderWay() { --count_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  const bool is_alone;

 private:
  std::atomic<int>& count_;
};

size_t length_of(const Call& call) {
  size_t length = 0;
  for (int i = 0; i < call.count; ++i) {
    if (call.vector[i].iov_len > MountRing::kPlaceSize) return SIZE_MAX;
    length += call.vector[i].iov_len;
  }
  return length;
}

}  // namespace

// What the kernel says of the descriptor, at the time of the call.
struct Shortcut::Look {
  DescriptorTable::Entry entry;
  size_t length = 0;
  int flags = 0;
  uint64_t offset = 0;
  uint64_t device = 0;
  struct statx status{};
  uint32_t mount = Mounts::kNone;
  MountRing* ring = nullptr;
};

// A child that shares the parent's memory (vfork(2)) has descriptors of its own.
bool Shortcut::belongs_here() {
  int owner = process_.load(std::memory_order_relaxed);
  const int self = process();
  return owner == self || (owner == 0 && (process_.compare_exchange_strong(owner, self) || owner == self));
}

void Shortcut::opened(int descriptor, int flags) {
  if (stopped_.load(std::memory_order_relaxed) || !belongs_here()) return;
  (flags & (O_APPEND | O_PATH | O_DIRECTORY)) != 0 ? table_.forget(descriptor) : table_.opened(descriptor);
}

void Shortcut::copied(int from, int to) {
  if (belongs_here()) table_.copied(from, to);
}

void Shortcut::forked_from_here() {
  table_.share_all();
}

void Shortcut::is_child() {
  table_.forget_all();
  mounts_.abandon();
  under_way_ = 0;  // the parent's
  process_ = 0;
}

std::optional<ssize_t> Shortcut::take(const Call& call) {
  if (!table_.knows(call.descriptor) || stopped_.load(std::memory_order_relaxed) || !belongs_here())
    return std::nullopt;
  Look look;
  look.entry = table_.find(call.descriptor);
  if (look.entry.state == DescriptorTable::State::kUnknown) return std::nullopt;
  auto reason = this->look(call, look);
  const UnderWay one(under_way_);
  if (!reason && one.is_alone && !takes_alone_) return ask_kernel(call);
  if (!reason) reason = attach(call, look);
  if (reason) {
    // It may have been forgotten on the way: then it is none of a mount's.
    if (look.device != 0) statistics_.by_kernel(*reason);
    return std::nullopt;
  }
  if (!call.offset) return take_at_position(call, look);
  return run(call, look);
}

// None: the kernel may do it all.
std::optional<ssize_t> Shortcut::run(const Call& call, const Look& look) {
  const int64_t moved = look.ring->run({.opcode = call.is_read ? ring::Opcode::kRead : ring::Opcode::kWrite,
                                        .file = look.entry.attached.file,
                                        .offset = look.offset,
                                        .length = look.length,
                                        .vector = call.vector,
                                        .count = call.count});
  if (moved != static_cast<int64_t>(look.length)) {
    if (moved == -EBADF) table_.refused(call.descriptor);
    statistics_.by_kernel(look.ring->is_gone() ? Reason::kGone : Reason::kHandedBack);
    return std::nullopt;
  }
  statistics_.by_ring(call.is_read, look.length);
  if (call.is_read) table_.read_up_to(call.descriptor, look.offset + look.length);
  return moved;
}

// By us, so that it is known how long it is under way.
ssize_t Shortcut::ask_kernel(const Call& call) {
  statistics_.by_kernel(Reason::kAlone);
  if (!call.offset)
    return result_of(kernel(call.is_read ? SYS_readv : SYS_writev, call.descriptor, call.vector, call.count));
  return result_of(kernel(call.is_read ? SYS_preadv : SYS_pwritev, call.descriptor, call.vector, call.count,
                          *call.offset, 0));
}

// Why not. Cheap questions first.
std::optional<Reason> Shortcut::look(const Call& call, Look& look) {
  const long flags = kernel(SYS_fcntl, call.descriptor, F_GETFL);
  const int access = static_cast<int>(flags) & O_ACCMODE;
  if (flags < 0 || (flags & O_PATH) != 0 || access == O_ACCMODE ||
      access == (call.is_read ? O_WRONLY : O_RDONLY))
    return Reason::kFlags;  // an error that the kernel tells
  look.flags = static_cast<int>(flags);
  if (kernel(SYS_statx, call.descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
             &look.status) < 0)
    return Reason::kUnsure;
  const uint64_t device = makedev(look.status.stx_dev_major, look.status.stx_dev_minor);
  const Attached& known = look.entry.attached;
  if (!S_ISREG(look.status.stx_mode) || (look.entry.state == DescriptorTable::State::kAttached &&
                                         (known.device != device || known.inode != look.status.stx_ino))) {
    table_.forget(call.descriptor);
    return Reason::kFlags;
  }
  if (look.entry.state == DescriptorTable::State::kOpened) {
    look.mount = mounts_.of(call.descriptor, device);
    if (look.mount == Mounts::kNone) table_.forget(call.descriptor);
    if (look.mount == Mounts::kNone || look.mount == Mounts::kLater) return Reason::kRefused;
  }
  look.device = device;
  if (look.entry.state == DescriptorTable::State::kRefused) return Reason::kRefused;
  look.length = length_of(call);
  if (look.length == 0 || look.length > MountRing::kPlaceSize) return Reason::kLength;
  if (!call.is_read && (look.flags & O_APPEND) != 0) return Reason::kAppend;
  if (!call.is_read && (look.flags & O_SYNC) == O_SYNC) return Reason::kSync;
  if (!call.is_read && clears_privileges(look.status.stx_mode)) return Reason::kPrivileges;
  if (!call.is_read && is_limited()) return Reason::kLimit;
  if (!call.offset && look.entry.is_shared) return Reason::kShared;
  const off_t offset = call.offset ? *call.offset : kernel(SYS_lseek, call.descriptor, off_t{0}, SEEK_CUR);
  if (offset < 0) return Reason::kFlags;
  look.offset = static_cast<uint64_t>(offset);
  if (look.length > look.status.stx_size || look.offset > look.status.stx_size - look.length)
    return Reason::kEnd;
  const bool is_direct = (look.flags & O_DIRECT) != 0;
  if (call.is_read && !is_direct && keeps_reads_) return Reason::kKept;
  if (call.is_read && !is_direct && look.offset == table_.next_read(call.descriptor)) {
    table_.read_up_to(call.descriptor, look.offset + look.length);
    return Reason::kSequence;
  }
  const CacheRange range{look.offset / kPage * kPage, look.length + look.offset % kPage};
  CacheStat pages{};
  if (kernel(kCacheStat, call.descriptor, &range, &pages, 0) < 0)
    return is_direct ? std::nullopt : std::optional(Reason::kUnsure);
  if (pages.cached != 0 || pages.dirty != 0 || pages.under_write_back != 0) return Reason::kCached;
  return std::nullopt;
}

std::optional<Reason> Shortcut::attach(const Call& call, Look& look) {
  if (look.entry.state == DescriptorTable::State::kAttached) {
    look.ring = mounts_.ring(look.entry.attached.mount);
    return look.ring != nullptr ? std::nullopt : std::optional(Reason::kGone);
  }
  look.ring = mounts_.ring(look.mount);
  if (look.ring == nullptr) return Reason::kGone;
  const int64_t file = look.ring->attach(call.descriptor);
  if (file < 0) {
    table_.refused(call.descriptor);
    return Reason::kRefused;
  }
  look.entry.attached = {look.mount, static_cast<uint32_t>(file), look.device, look.status.stx_ino};
  table_.attached(call.descriptor, look.entry.attached);
  return std::nullopt;
}

// lseek(2) takes the range, one for each who asks, whoever shares the position. What the ring does not do then is done
// there, by the kernel.
std::optional<ssize_t> Shortcut::take_at_position(const Call& call, const Look& look) {
  const auto length = static_cast<off_t>(look.length);
  const long behind = kernel(SYS_lseek, call.descriptor, length, SEEK_CUR);
  if (behind < length) return std::nullopt;
  const off_t offset = behind - length;
  std::optional<ssize_t> taken;
  if (static_cast<uint64_t>(offset) == look.offset) taken = run(call, look);
  const long moved = taken ? *taken
                           : kernel(call.is_read ? SYS_preadv : SYS_pwritev, call.descriptor, call.vector,
                                    call.count, offset, 0);
  if (moved != length) (void)kernel(SYS_lseek, call.descriptor, std::max(moved, 0L) - length, SEEK_CUR);
  return result_of(moved);
}

}  // namespace pnfsrdma::preload
