// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/fuse_operations.h"

#include <sys/stat.h>

#include "fuse-client/answer_flags.h"
#include "fuse-client/file_system.h"
#include "fuse-client/mount_status.h"

namespace pnfsrdma::fuse_client {
namespace {

// More than can ever be held up.
constexpr unsigned kBackgroundMax = 2 * kParkedRequestsMax;
// Linux 5.10; from 5.8 on an invalidation overtakes the answer to a question that was asked before it.
constexpr unsigned kMinorOfOvertakenAnswers = 32;

FileSystem& of(fuse_req_t request) {
  return *static_cast<FileSystem*>(fuse_req_userdata(request));
}

}  // namespace

bool negotiate(fuse_conn_info* connection, const MountOptions& options, bool posix_acls) {
  const auto want = [&](unsigned capability, bool wanted) {
    if (wanted) {
      connection->want |= connection->capable & capability;
    } else {
      connection->want &= ~capability;
    }
  };
  connection->max_write = initiator::kBufferPayload;
  connection->max_read = initiator::kBufferPayload;
  connection->max_readahead = initiator::kBufferPayload;
  // Buffered reads and write-back are background requests: twelve of them (the kernel's default) that wait for a
  // silent brick would be all there are.
  connection->max_background = kBackgroundMax;
  connection->congestion_threshold = kBackgroundMax;
  want(FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS, true);
  // READDIR brings all attributes anyhow. The kernel's own guess (AUTO) leaves most entries of a large
  // directory without, and a LOOKUP for each.
  want(FUSE_CAP_READDIRPLUS, options.attributes_with_names);
  want(FUSE_CAP_READDIRPLUS_AUTO, false);
  // Pages go when a getattr shows another size or mtime: close-to-open between opens. What mtime it is shown:
  // page_stamp.h.
  want(FUSE_CAP_AUTO_INVAL_DATA, true);
  // Copying into and out of a registered buffer is what RDMA needs; pipes would only add a step.
  want(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, false);
  // Truncation at open is a SETATTR of its own: it has to give layouts back first.
  want(FUSE_CAP_ATOMIC_O_TRUNC, false);
  // open_by_handle_at(2) of what the kernel has forgotten: LOOKUP of "." and "..".
  want(FUSE_CAP_EXPORT_SUPPORT, true);
  want(FUSE_CAP_POSIX_LOCKS, !options.posix_locks_local());
  want(FUSE_CAP_FLOCK_LOCKS, !options.flocks_local());
  // Its second version is asked for: answer_flags.h.
  want(FUSE_CAP_HANDLE_KILLPRIV, false);
  want(FUSE_CAP_WRITEBACK_CACHE, options.writeback);
  // The kernel reads ACLs and decides by them, and forgets them with the attributes. It also begins to decide by modes
  // where it was not asked to. The umask is of no meaning where the directory has a default ACL, which only the server
  // knows.
  want(FUSE_CAP_POSIX_ACL, posix_acls && options.default_permissions);
  want(FUSE_CAP_DONT_MASK, posix_acls);
  return !options.writeback && connection->proto_minor >= kMinorOfOvertakenAnswers;
}

fuse_lowlevel_ops fuse_operations() {
  using Request = fuse_req_t;
  using Node = fuse_ino_t;
  fuse_lowlevel_ops table{};
  table.init = [](void* userdata, fuse_conn_info* connection) {
    FileSystem& file_system = *static_cast<FileSystem*>(userdata);
    if (negotiate(connection, file_system.options(), file_system.has_posix_acls())) file_system.keep_pages();
    init_is_answered_next();
  };
  table.lookup = [](Request r, Node parent, const char* name) { of(r).lookup(r, parent, name); };
  table.forget = [](Request r, Node node, uint64_t lookups) { of(r).forget(r, node, lookups); };
  table.forget_multi = [](Request r, size_t count, fuse_forget_data* forgets) {
    of(r).forget_multi(r, count, forgets);
  };
  // stat(2) and fstat(2) come without a descriptor.
  table.getattr = [](Request r, Node node, fuse_file_info* info) { of(r).getattr(r, node, info != nullptr); };
  table.setattr = [](Request r, Node node, struct stat* wanted, int to_set, fuse_file_info*) {
    of(r).setattr(r, node, *wanted, to_set);
  };
  table.access = [](Request r, Node node, int mask) { of(r).access(r, node, mask); };
  table.mknod = [](Request r, Node parent, const char* name, mode_t mode, dev_t device) {
    of(r).mknod(r, parent, name, mode, device);
  };
  table.mkdir = [](Request r, Node parent, const char* name, mode_t mode) {
    of(r).mkdir(r, parent, name, mode);
  };
  table.symlink = [](Request r, const char* target, Node parent, const char* name) {
    of(r).symlink(r, target, parent, name);
  };
  table.readlink = [](Request r, Node node) { of(r).readlink(r, node); };
  table.unlink = [](Request r, Node parent, const char* name) { of(r).remove(r, parent, name); };
  table.rmdir = [](Request r, Node parent, const char* name) { of(r).remove(r, parent, name); };
  table.rename = [](Request r, Node parent, const char* name, Node new_parent, const char* new_name,
                    unsigned flags) { of(r).rename(r, parent, name, new_parent, new_name, flags); };
  table.link = [](Request r, Node node, Node new_parent, const char* new_name) {
    of(r).link(r, node, new_parent, new_name);
  };
  table.open = [](Request r, Node node, fuse_file_info* info) { of(r).open(r, node, info); };
  table.create = [](Request r, Node parent, const char* name, mode_t mode, fuse_file_info* info) {
    of(r).create(r, parent, name, mode, info);
  };
  table.release = [](Request r, Node, fuse_file_info* info) { of(r).release(r, info); };
  table.read = [](Request r, Node, size_t size, off_t offset, fuse_file_info* info) {
    of(r).read(r, size, offset, info);
  };
  table.write = [](Request r, Node node, const char* data, size_t size, off_t offset, fuse_file_info* info) {
    of(r).write(r, node, data, size, offset, info);
  };
  table.flush = [](Request r, Node, fuse_file_info* info) { of(r).flush(r, info); };
  table.fsync = [](Request r, Node, int data_only, fuse_file_info* info) {
    of(r).fsync(r, data_only != 0, info);
  };
  table.fallocate = [](Request r, Node node, int mode, off_t offset, off_t length, fuse_file_info* info) {
    of(r).fallocate(r, node, mode, static_cast<uint64_t>(offset), static_cast<uint64_t>(length), info);
  };
  table.lseek = [](Request r, Node, off_t offset, int whence, fuse_file_info* info) {
    of(r).lseek(r, static_cast<uint64_t>(offset), whence, info);
  };
  table.copy_file_range = [](Request r, Node, off_t from_offset, fuse_file_info* from, Node target,
                             off_t to_offset, fuse_file_info* to, size_t count, int) {
    of(r).copy_file_range(r, from, static_cast<uint64_t>(from_offset), target, to,
                          static_cast<uint64_t>(to_offset), count);
  };
  table.ioctl = [](Request r, Node node, unsigned command, void*, fuse_file_info* info, unsigned flags,
                   const void* in, size_t in_size, size_t) {
    of(r).ioctl(r, node, command, {static_cast<const std::byte*>(in), in_size}, (flags & FUSE_IOCTL_DIR) != 0,
                info);
  };
  table.getlk = [](Request r, Node, fuse_file_info* info, struct flock* lock) { of(r).getlk(r, info, lock); };
  table.setlk = [](Request r, Node node, fuse_file_info* info, struct flock* lock, int waits) {
    of(r).setlk(r, node, info, *lock, waits != 0);
  };
  table.flock = [](Request r, Node node, fuse_file_info* info, int operation) {
    of(r).flock(r, node, info, operation);
  };
  table.opendir = [](Request r, Node node, fuse_file_info* info) { of(r).opendir(r, node, info); };
  table.readdir = [](Request r, Node node, size_t size, off_t offset, fuse_file_info* info) {
    of(r).readdir(r, node, size, offset, info, false);
  };
  table.readdirplus = [](Request r, Node node, size_t size, off_t offset, fuse_file_info* info) {
    of(r).readdir(r, node, size, offset, info, true);
  };
  table.releasedir = [](Request r, Node, fuse_file_info* info) { of(r).releasedir(r, info); };
  // The server's metadata is durable when it answers.
  table.fsyncdir = [](Request r, Node, int, fuse_file_info*) { fuse_reply_err(r, 0); };
  table.statfs = [](Request r, Node node) { of(r).statfs(r, node); };
  table.getxattr = [](Request r, Node node, const char* name, size_t size) {
    of(r).getxattr(r, node, name, size);
  };
  table.listxattr = [](Request r, Node node, size_t size) { of(r).listxattr(r, node, size); };
  table.setxattr = [](Request r, Node node, const char* name, const char* value, size_t size, int flags) {
    of(r).setxattr(r, node, name, {value, size}, flags);
  };
  table.removexattr = [](Request r, Node node, const char* name) { of(r).removexattr(r, node, name); };
  return table;
}

}  // namespace pnfsrdma::fuse_client
