// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "fuse-client/file_system.h"

// getlk, setlk, flock, and what a close has to do with them. Who has got a lock sees the file as the one
// before left it: what was written is known to the server before the lock is given up, and pages of before
// are dropped before it is said to be given. flock is a lock on the whole file, as with every NFS client.
namespace pnfsrdma::fuse_client {
namespace {

constexpr nfs4::LockRange kWholeFile{0, UINT64_MAX, true};

// What libfuse has made of the kernel's range: length 0 is to the end.
nfs4::LockRange range_of(const struct flock& lock) {
  const auto first = static_cast<uint64_t>(lock.l_start);
  const uint64_t last = lock.l_len == 0 ? UINT64_MAX : first + static_cast<uint64_t>(lock.l_len) - 1;
  return {first, last, lock.l_type == F_WRLCK};
}

}  // namespace

LockWish FileSystem::wish_of(fuse_req_t request, const fuse_file_info* info, LockOwner owner,
                             const nfs4::LockRange& range) {
  LockWish wish;
  wish.inode = open_file(info).inode;
  wish.owner = owner;
  wish.range = range;
  wish.credential = credential(request);
  wish.process = fuse_req_ctx(request)->pid;
  wish.open_file = info->fh;
  return wish;
}

void FileSystem::getlk(fuse_req_t request, fuse_file_info* info, struct flock* lock) {
  const OpenFile& file = open_file(info);
  const LockOwner owner{LockOwner::Kind::kPosix, info->lock_owner};
  const auto denied = parts_.lock_calls.test(wish_of(request, info, owner, range_of(*lock)));
  if (!denied) {
    fuse_reply_err(request, to_number(denied.error()));
    return;
  }
  struct flock answer{};
  answer.l_type = F_UNLCK;
  constexpr auto kEnd = static_cast<uint64_t>(INT64_MAX);
  if (*denied && (*denied)->offset <= kEnd) {
    const nfs4::LockDenied& other = **denied;
    answer.l_type = other.type == nfs4::LockType::kRead ? F_RDLCK : F_WRLCK;
    answer.l_start = static_cast<off_t>(other.offset);
    answer.l_len = other.length > kEnd - other.offset ? 0 : static_cast<off_t>(other.length);
    // The number of another host's process would say nothing here.
    const bool ours = other.owner.client_id == parts_.session.clientid();
    answer.l_pid = ours ? file.inode->locks().process_of(other.owner.owner) : 0;
  }
  fuse_reply_lock(request, &answer);
}

void FileSystem::setlk(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, const struct flock& lock,
                       bool waits) {
  const OpenFile& file = open_file(info);
  const LockOwner owner{LockOwner::Kind::kPosix, info->lock_owner};
  if (lock.l_type == F_UNLCK) {
    fuse_reply_err(request, unlock(file, owner, range_of(lock)));
    return;
  }
  ask_to_lock_here(request, file);
  LockWish wish = wish_of(request, info, owner, range_of(lock));
  wish.process = lock.l_pid;
  acquire(request, node, std::move(wish), waits);
}

void FileSystem::flock(fuse_req_t request, fuse_ino_t node, fuse_file_info* info, int operation) {
  const OpenFile& file = open_file(info);
  const LockOwner owner{LockOwner::Kind::kFlock, info->fh};
  const int what = operation & ~LOCK_NB;
  if (what == LOCK_UN) {
    fuse_reply_err(request, unlock(file, owner, kWholeFile));
    return;
  }
  const bool exclusive = what == LOCK_EX;
  // As it is the byte-range lock of a file opened so (nfs(5), flock(2)): the kernel has not asked.
  if (exclusive ? !file.writable : !file.readable) {
    fuse_reply_err(request, EBADF);
    return;
  }
  ask_to_lock_here(request, file);
  acquire(request, node, wish_of(request, info, owner, {0, UINT64_MAX, exclusive}),
          (operation & LOCK_NB) == 0);
}

// The first lock of a file that is open to read and write asks for a write delegation, by an OPEN of its own: one
// call, as LOCK would be. Under it neither this lock nor its end nor the next ones ask anybody. Where there is none
// to be had, or the name leads elsewhere by now, the lock is the server's.
void FileSystem::ask_to_lock_here(fuse_req_t request, const OpenFile& file) {
  const std::shared_ptr<Inode>& inode = file.inode;
  const SteadyTime now = parts_.clock.now();
  const bool may_want =
      parts_.options.default_permissions && parts_.options.attributes.file_min > std::chrono::seconds(0);
  if (!file.readable || !file.writable || !may_want) return;
  const auto name = inode->name();
  if (!name || inode->has_old_name(now) || !inode->asks_to_lock_here(now)) return;
  if (!inode->begin_open_if_wanted()) return;
  auto [operations, open_at] = opens_.request(*inode, name.get(), nfs4::kShareAccessBoth, true);
  const Question question = ask(inode.get());
  CompoundReply reply;
  (void)call(request, std::move(operations), reply, true);
  const auto* opened = reply.result<nfs4::OpenResponse>(open_at);
  const auto* attributes = reply.result<nfs4::GetAttributesResponse>(open_at + 1);
  if (opened == nullptr || attributes == nullptr) {
    opens_.close_if_last(inode, inode->open_failed());
    return;
  }
  const auto granted = opens_.granted(
      inode, question, {*opened, attributes->attributes, nfs4::kShareAccessBoth}, credential(request));
  if (granted) opens_.close_if_last(inode, inode->release());
}

void FileSystem::acquire(fuse_req_t request, fuse_ino_t node, LockWish wish, bool waits) {
  wish.waits = waits;
  const Question question = ask(wish.inode.get());
  const auto given = parts_.lock_calls.lock(wish);
  if (given) {
    lock_given(request, node, wish.inode, question, *given);
  } else if (waits && given.error().number() == EAGAIN) {
    auto waiting = std::make_unique<BlockedLocks::Waiting>();
    waiting->request = request;
    waiting->node = node;
    waiting->wish = std::move(wish);
    parts_.blocked_locks.add(std::move(waiting));
  } else {
    fuse_reply_err(request, to_number(given.error()));
  }
}

bool FileSystem::try_lock_again(BlockedLocks::Waiting& waiting) {
  const Question question = ask(waiting.wish.inode.get());
  Result<LockCalls::Given> given = fail(EINTR, "LOCK");
  if (!waiting.interrupted) given = parts_.lock_calls.lock(waiting.wish);
  if (!given && given.error().number() == EAGAIN) return false;
  BlockedLocks::let_go(waiting);
  if (given) {
    lock_given(waiting.request, waiting.node, waiting.wish.inode, question, *given);
  } else {
    fuse_reply_err(waiting.request, to_number(given.error()));
  }
  return true;
}

// Pages survive only if nobody else has changed the file since the kernel forgot those of before.
void FileSystem::lock_given(fuse_req_t request, fuse_ino_t node, const std::shared_ptr<Inode>& file,
                            const Question& question, const LockCalls::Given& given) {
  const auto& attributes = given.attributes;
  std::optional<uint64_t> foreign_changes;
  if (given.here) foreign_changes = file->foreign_changes();
  if (!given.here) file->data_changes();
  if (attributes) {
    beliefs_.judge_pages(*file, question, *attributes);
    if (question.data) {
      question.data->server_size(static_cast<uint64_t>(attributes->status.st_size), question.data_version,
                                 question.asked_at);
    }
    (void)file->learn(*attributes, question.asked_at, parts_.options.attributes, std::nullopt);
    foreign_changes = file->foreign_changes();
  }
  if (foreign_changes && file->pages_renewed_at(*foreign_changes)) {
    fuse_reply_err(request, 0);
    return;
  }
  // No worker waits for it: pages may wait for workers.
  parts_.invalidator.pages(node, [request, file, foreign_changes] {
    if (foreign_changes) file->pages_renewed(*foreign_changes);
    fuse_reply_err(request, 0);
  });
}

int FileSystem::unlock(const OpenFile& file, LockOwner owner, const nfs4::LockRange& range, bool last) {
  if (!file.inode->locks().has(owner)) return 0;
  // The size is known to the server before anybody else may look. What goes wrong is for fsync and close to
  // say.
  (void)file.data->hand_over();
  const Result<> unlocked = parts_.lock_calls.unlock(*file.inode, owner, range, last);
  parts_.blocked_locks.look(*file.inode);
  return unlocked ? 0 : to_number(unlocked.error());
}

// POSIX: closing any descriptor of a file drops all locks the process has on it.
void FileSystem::drop_posix_locks(const OpenFile& file, uint64_t owner) {
  (void)unlock(file, {LockOwner::Kind::kPosix, owner}, kWholeFile, true);
}

// Those of flock and F_OFD_SETLK, which the kernel leaves to us: of the latter it does not even say so. What is
// a process's was dropped when it closed its descriptor; what it has locked since was by another open file.
void FileSystem::drop_open_file_locks(const OpenFile& file, uint64_t open_file) {
  for (const LockOwner owner : file.inode->locks().owners_by(open_file)) {
    (void)unlock(file, owner, kWholeFile, true);
  }
}

}  // namespace pnfsrdma::fuse_client
